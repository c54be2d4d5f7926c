"""What is told of codes that were measured on one's own texts: of one model, and of several."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any, NamedTuple

from boltzhash.metrics import tables
from boltzhash.metrics.significance import CONFIDENCE, Estimate
from boltzhash.metrics.tables import Cell, Table

WIDTH = 100
FEW_WORDS = (
    12  # picks were wrong on titles of 5 and headlines of 6 words, right on texts of 32 and more
)
IN_BRACKETS = f"{100 * CONFIDENCE:g} % bootstrap intervals over them in brackets"
IN_SAMPLE = (
    "Documents that the model was fitted on agree better than new ones: to compare lengths or methods "
    "on documents that were held out, give --bits or --method."
)


class Halves(NamedTuple):
    """How far codes agree on what is near to the halves of documents.

    Attributes
    ----------
    documents
        How many documents were cut in halves.
    among, nearest
        How many may be near to them, and how many of these are looked at.
    words
        How many words a document that was cut has, in the median.
    latent_semantics
        What cosines of latent semantics reach on the same documents, None where it would take long.
    """

    documents: int
    among: int
    nearest: int
    words: float
    latent_semantics: Estimate | None

    @property
    def chance(self) -> float:
        """What codes that say nothing agree on."""
        return self.nearest / self.among

    def caution(self) -> str | None:
        """What to beware of, if documents are short."""
        if self.words >= FEW_WORDS:
            return None
        return (
            f"These documents have {self.words:g} words in the median: of texts this short, agreement "
            "does not tell which method is better (docs/quality.md); --labels does, if there are some."
        )

    def meaning(self) -> str:
        """The measure in a sentence, with what to hold it against."""
        beside = f"chance would give {self.chance:.3f}"
        if self.latent_semantics is not None:
            beside = (
                f"latent semantics of the same documents have {self.latent_semantics}, {beside}"
            )
        return (
            f"Agreement: the words of a document are dealt out to two halves; of the {self.nearest} "
            f"documents nearest to one half, the share that is nearest to the other half as well. "
            f"{beside[0].upper()}{beside[1:]}."
        )

    def as_json(self) -> dict[str, Any]:
        latent = self.latent_semantics
        return {
            "halved": self.documents,
            "among": self.among,
            "nearest": self.nearest,
            "median_words": self.words,
            "chance": self.chance,
            "latent_semantics": None if latent is None else latent._asdict(),
            "confidence": CONFIDENCE,
        }


class Labelled(NamedTuple):
    """Which documents are asked, and among which, when precision is measured by a field of metadata.

    ``chance`` is the precision of documents that are drawn at random, ``without`` how many documents
    have no label: those are left out.
    """

    field: str
    k: int
    queries: int
    among: int
    without: int
    chance: float

    @property
    def measure(self) -> str:
        return f"precision@{self.k}"

    def meaning(self) -> str:
        left_out = f"; {self.without} without are left out" if self.without else ""
        return (
            f"Precision: of the {self.k} documents nearest to each of {self.queries}, the share that "
            f"has a {self.field!r} in common with it, among {self.among} that have one{left_out}. "
            f"Chance would give {self.chance:.3f}."
        )


class Measured(NamedTuple):
    """One model: how far its codes agree, and their precision if there are labels.

    ``seconds`` is how long it took to fit, None if it was there.
    """

    method: str
    bits: int
    agreement: Estimate
    precision: Estimate | None = None
    seconds: float | None = None

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "method": self.method,
            "bits": self.bits,
            "bytes_per_document": self.bits // 8,
            "agreement": self.agreement._asdict(),
        }
        if self.precision is not None:
            found["precision"] = self.precision._asdict()
        if self.seconds is not None:
            found["seconds"] = round(self.seconds, 1)
        return found


@dataclass(frozen=True)
class CodesReport:
    """How good the codes of one or several models are on the same texts.

    :func:`~boltzhash.metrics.evaluate_codes` and :func:`~boltzhash.metrics.compare_hashers` make one.

    Attributes
    ----------
    models
        What was measured of each.
    halves
        What the agreement was measured with.
    labelled
        What the precision was measured with, None without labels.

    Examples
    --------
    >>> good, poor = Estimate(0.4, 0.38, 0.42), Estimate(0.2, 0.19, 0.21)
    >>> models = [Measured("ITQ", 64, good, None, 2.0), Measured("LSH", 64, poor, None, 1.0)]
    >>> report = CodesReport(models, Halves(900, 9000, 300, 50, None))
    >>> print(str(report).partition("Agreement")[0])
    900 documents in halves, 95 % bootstrap intervals over them in brackets
    method  bits  bytes a document  agreement                seconds
    ITQ     64    8                 *0.400 (0.380 to 0.420)  2.0
    LSH     64    8                 0.200 (0.190 to 0.210)   1.0
    <BLANKLINE>
    """

    models: list[Measured]
    halves: Halves
    labelled: Labelled | None = None

    @property
    def best(self) -> Measured:
        """The model with the highest agreement."""
        return max(self.models, key=lambda model: model.agreement.mean)

    @property
    def shortest(self) -> Measured:
        """The shortest codes whose interval overlaps with that of the best; of several, the best."""
        bar = self.best.agreement.low
        as_good = [model for model in self.models if model.agreement.high >= bar]
        return min(as_good, key=lambda model: (model.bits, -model.agreement.mean))

    def __str__(self) -> str:
        told = [self.halves.meaning()]
        if self.labelled is not None:
            told.append(self.labelled.meaning())
        if len(self.models) > 1:
            told.append(
                f"The shortest codes whose interval overlaps with that of the best: "
                f"{self.shortest.method}, {self.shortest.bits} bits."
            )
        elif self.models[0].seconds is None:
            told.append(IN_SAMPLE)
        if caution := self.halves.caution():
            told.append(caution)
        return "\n".join([tables.text(self._table()), *(textwrap.fill(t, WIDTH) for t in told)])

    def as_json(self) -> dict[str, Any]:
        """What ``boltzhash evaluate --json`` prints."""
        found: dict[str, Any] = {**self.halves.as_json(), "labels": None}
        if self.labelled is not None:
            found["labels"] = self.labelled._asdict()
        found["models"] = [model.as_json() for model in self.models]
        if len(self.models) > 1:
            found["shortest"] = {"method": self.shortest.method, "bits": self.shortest.bits}
        return found

    def _table(self) -> Table:
        header = ["method", "bits", "bytes a document", "agreement"]
        if self.labelled is not None:
            header.append(self.labelled.measure)
        if self.models[0].seconds is not None:
            header.append("seconds")
        title = f"{self.halves.documents} documents in halves, {IN_BRACKETS}"
        return Table(title, header, [self._row(model) for model in self.models], "")

    def _row(self, model: Measured) -> list[Cell]:
        several = len(self.models) > 1
        cells = [Cell(model.method), Cell(str(model.bits)), Cell(str(model.bits // 8))]
        cells.append(Cell(str(model.agreement), several and model is self.best))
        if model.precision is not None:
            means = [other.precision.mean for other in self.models if other.precision is not None]
            cells.append(Cell(str(model.precision), several and model.precision.mean == max(means)))
        if model.seconds is not None:
            cells.append(Cell(f"{model.seconds:.1f}"))
        return cells
