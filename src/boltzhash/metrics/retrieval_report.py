"""One object that holds how good answers are: prints itself, exports itself, says how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.metrics import tables
from boltzhash.metrics.report import check_values
from boltzhash.metrics.significance import CONFIDENCE, Estimate, estimates
from boltzhash.metrics.tables import Cell, Table

Values = NDArray[np.float64]

NO_DIFFERENCE = "the interval of every difference has 0 in it"


@dataclass(frozen=True)
class RetrievalReport:
    """A value for each question, way of searching and measure, and what follows from them.

    :func:`~boltzhash.metrics.evaluate_answers` makes one.

    Attributes
    ----------
    per_question
        Way → measure → one value for each question.
    left_out, unknown_questions, missing_documents
        How many questions have no relevant document, how many judged ones were not given, and how many
        relevant documents cannot be found since they are not there.
    means
        (way, measure) → mean over questions, with its interval.
    differences
        (way, measure) → mean difference from the first way on the same questions, with its interval.

    Examples
    --------
    >>> words, both = np.array([0.2, 0.5, 0.9]), np.array([0.3, 0.6, 1.0])
    >>> print(RetrievalReport({"words": {"nDCG@10": words}, "both": {"nDCG@10": both}}))
    3 questions, 95 % bootstrap intervals over them in brackets
                  nDCG@10
    words         0.533 (0.200 to 0.900)
    both          *0.633 (0.300 to 1.000)
    both - words  +0.100 (+0.100 to +0.100) !
    * best; ! the interval of the difference is on one side of 0
    """

    per_question: Mapping[str, Mapping[str, Values]]
    left_out: int = 0
    unknown_questions: int = 0
    missing_documents: int = 0
    resamples: int = 10_000
    random_state: int = 0

    def __post_init__(self) -> None:
        if not self.per_question:
            raise ValueError("a report needs at least one way of searching, got none")
        check_values(self.per_question)

    @property
    def ways(self) -> list[str]:
        return list(self.per_question)

    @property
    def measures(self) -> list[str]:
        return list(self.per_question[self.ways[0]])

    @property
    def n_questions(self) -> int:
        return len(self.per_question[self.ways[0]][self.measures[0]])

    def mean(self, way: str, measure: str) -> float:
        return self.means[way, measure].mean

    def __str__(self) -> str:
        return tables.text(self._table())

    def to_markdown(self) -> str:
        """A Markdown table: means with intervals, then differences from the first way."""
        return tables.markdown(self._table())

    def as_json(self) -> dict[str, Any]:
        """What ``boltzhash evaluate --json`` prints."""
        return {
            "questions": self.n_questions,
            "left_out": self.left_out,
            "unknown_questions": self.unknown_questions,
            "missing_documents": self.missing_documents,
            "confidence": CONFIDENCE,
            "ways": {
                way: {m: self.means[way, m]._asdict() for m in self.measures} for way in self.ways
            },
            "differences_from": self.ways[0],
            "differences": {
                way: {m: self.differences[way, m]._asdict() for m in self.measures}
                for way in self.ways[1:]
            },
        }

    @cached_property
    def means(self) -> dict[tuple[str, str], Estimate]:
        return self._estimated(self.ways, lambda way, measure: self.per_question[way][measure])

    @cached_property
    def differences(self) -> dict[tuple[str, str], Estimate]:
        first = self.per_question[self.ways[0]]
        return self._estimated(
            self.ways[1:], lambda way, measure: self.per_question[way][measure] - first[measure]
        )

    def _estimated(
        self, ways: list[str], values: Callable[[str, str], Values]
    ) -> dict[tuple[str, str], Estimate]:
        keys = [(way, measure) for way in ways for measure in self.measures]
        if not keys:
            return {}
        columns = np.stack([values(*key) for key in keys], axis=1)
        found = estimates(columns, resamples=self.resamples, random_state=self.random_state)
        return dict(zip(keys, found, strict=True))

    def _table(self) -> Table:
        rows = [[Cell(way), *(self._mean(way, m) for m in self.measures)] for way in self.ways]
        first = self.ways[0]
        for way in self.ways[1:]:
            cells = [_difference(self.differences[way, m]) for m in self.measures]
            rows.append([Cell(f"{way} - {first}"), *cells])
        return Table(self._title(), ["", *self.measures], rows, self._note())

    def _title(self) -> str:
        intervals = f"{100 * CONFIDENCE:g} % bootstrap intervals over them in brackets"
        parts = [f"{self.n_questions} questions, {intervals}"]
        if self.left_out:
            parts.append(f"left out: {self.left_out} without a relevant document")
        if self.unknown_questions:
            parts.append(f"judged, but not among the questions: {self.unknown_questions}")
        if self.missing_documents:
            parts.append(f"relevant, but not there to be found: {self.missing_documents} documents")
        return "; ".join(parts)

    def _mean(self, way: str, measure: str) -> Cell:
        found = self.means[way, measure]
        best = max(self.mean(other, measure) for other in self.ways)
        is_best = f"{found.mean:.3f}" == f"{best:.3f}"  # what looks the same is marked the same
        return Cell(str(found), len(self.ways) > 1 and is_best)

    def _note(self) -> str:
        """What the marks mean; nothing if there is nothing to compare."""
        if len(self.ways) == 1:
            return ""
        found = any(one.excludes_zero for one in self.differences.values())
        return "! the interval of the difference is on one side of 0" if found else NO_DIFFERENCE


def _difference(difference: Estimate) -> Cell:
    mean, low, high = difference
    mark = "!" if difference.excludes_zero else ""
    return Cell(f"{mean:+.3f} ({low:+.3f} to {high:+.3f})", marks=mark)
