"""One object that holds an evaluation: prints itself, exports itself, says what is significant."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.arguments import Number, check
from boltzhash.codes import Codes
from boltzhash.errors import needs_extra
from boltzhash.metrics import ranking, tables
from boltzhash.metrics.codes import CodeStatistics, code_statistics
from boltzhash.metrics.significance import holm, paired_permutation
from boltzhash.metrics.tables import Cell, Table
from boltzhash.metrics.ties import TIES, Groups, Labels, by_distance, group, pairs

Values = NDArray[np.float64]

MEASURES = ("precision@100", "recall@100", "map", "ndcg@100", "within@2")
SHOWN_STATISTICS = ("balance", "correlation", "distinct", "entropy")
LETTERS = string.ascii_letters  # one names each method in a table


class _Measure(NamedTuple):
    """How a measure is computed from groups of ties, and whether those must be distances."""

    of: Callable[[Groups], Values]
    by_distance: bool = False


def evaluate(
    methods: Mapping[str, tuple[Codes, Codes]],
    *,
    query_labels: Labels,
    labels: Labels,
    measures: Sequence[str] = MEASURES,
    ties: str = "expected",
    random_state: int = 0,
) -> Report:
    """Measure one or several methods on the same queries and compare them.

    Parameters
    ----------
    methods
        Name → (codes of the queries, codes of the database), packed.
    query_labels, labels : bool arrays (n, n_labels)
        A document is relevant when it shares a label with the query.
    measures
        Any of ``precision@K``, ``recall@K``, ``map``, ``map@K``, ``ndcg@K`` and ``within@R`` (precision
        within Hamming distance R).
    ties : "expected" or "insertion"
        The expectation over random tie order, or the order (distance, insertion).
    random_state
        Of the paired permutation test over the queries that compares every pair of methods on every
        measure, corrected by Holm's method for the number of pairs; p below .05 is significant.

    Examples
    --------
    >>> codes = np.array([[0], [1], [254], [255]], dtype=np.uint8)
    >>> labels = np.array([[True, False], [True, False], [False, True], [False, True]])
    >>> methods = {"good": (codes, codes), "constant": (0 * codes, 0 * codes)}
    >>> measures = ["precision@2", "within@1"]
    >>> print(evaluate(methods, query_labels=labels, labels=labels, measures=measures))
    4 queries, 4 documents, ties expected
       method    precision@2  within@1  balance  correlation  distinct  entropy
    a  good      *1.0000      *1.0000   1.0000   0.7500       4         2.0000
    b  constant  0.5000       0.5000    0.0000   0.0000       1         0.0000
    * best; no difference is significant (paired permutation test over 4 queries, 10000 resamples, \
Holm's correction for 1 pair, alpha 0.05)
    """
    if not methods:
        raise ValueError("methods must name at least one pair of codes, got none")
    check("ties", ties, *TIES)
    per_query = {}
    for name, (queries, codes) in methods.items():
        parsed = {measure: _parse(measure, len(codes)) for measure in measures}
        values: dict[str, list[Values]] = {measure: [] for measure in measures}
        n_bits = 8 * codes.shape[1]
        for block in pairs(queries, codes, query_labels, labels):
            ranked, distances = group(block, n_bits, ties), by_distance(block, n_bits)
            for measure, how in parsed.items():
                values[measure].append(how.of(distances if how.by_distance else ranked))
        per_query[name] = {measure: np.concatenate(v) for measure, v in values.items() if v}
    return Report(
        per_query=per_query,
        codes={name: code_statistics(codes) for name, (_, codes) in methods.items()},
        title=f"{len(query_labels)} queries, {len(labels)} documents, ties {ties}",
        random_state=random_state,
    )


def _parse(name: str, n_documents: int) -> _Measure:
    """
    >>> _parse("precision@0", 10)
    Traceback (most recent call last):
    ...
    ValueError: measure 'precision@0': K must be between 1 and the 10 documents
    """
    found = re.fullmatch(r"(precision|recall|ndcg|map|within)(?:@(\d+))?", name)
    if not found or (found[2] is None and found[1] != "map"):
        raise ValueError(
            "measures must be among precision@K, recall@K, map, map@K, ndcg@K, within@R (K, R "
            f"integers), got {name!r}"
        )
    kind, number = found[1], None if found[2] is None else int(found[2])
    if kind != "within" and number is not None and not 1 <= number <= n_documents:
        raise ValueError(f"measure {name!r}: K must be between 1 and the {n_documents} documents")
    if kind == "map":
        return _Measure(lambda groups: ranking.average_precision_at(groups, number))
    at = {
        "precision": ranking.precision_at,
        "recall": ranking.recall_at,
        "ndcg": ranking.ndcg_at,
        "within": ranking.precision_in_ball,
    }[kind]
    return _Measure(lambda groups: at(groups, number or 0), by_distance=kind == "within")


@dataclass(frozen=True)
class Report:
    """Values of each query for each method and measure, and what follows from them.

    :func:`evaluate` makes one. It can also be made from values computed before (means over
    seeds, say): ``Report({"method": {"measure": one value per query}})``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> weak = rng.random(50)
    >>> report = Report({"weak": {"score": weak}, "strong": {"score": weak + 0.1}})
    >>> round(report.mean("strong", "score") - report.mean("weak", "score"), 3)
    0.1
    >>> report.better("strong", "score")
    ['weak']
    """

    per_query: Mapping[str, Mapping[str, Values]]
    codes: Mapping[str, CodeStatistics] = field(default_factory=dict)
    title: str = ""
    alpha: float = 0.05
    resamples: int = 10_000
    random_state: int = 0
    p_values: Mapping[tuple[str, str, str], float] = field(init=False)

    def __post_init__(self) -> None:
        check("alpha", self.alpha, Number(above=0, below=1))
        if not 1 <= len(self.per_query) <= len(LETTERS):
            raise ValueError(
                f"a report covers 1 to {len(LETTERS)} methods, got {len(self.per_query)}"
            )
        check_values(self.per_query)
        object.__setattr__(self, "p_values", self._compare())

    @property
    def methods(self) -> list[str]:
        return list(self.per_query)

    @property
    def measures(self) -> list[str]:
        return list(self.per_query[self.methods[0]])

    @property
    def n_queries(self) -> int:
        return len(self.per_query[self.methods[0]][self.measures[0]])

    def mean(self, method: str, measure: str) -> float:
        return float(self.per_query[method][measure].mean())

    def p_value(self, one: str, other: str, *, measure: str) -> float:
        """The p-value of the difference between two methods, corrected for the number of pairs."""
        key = (measure, one, other)
        return self.p_values[key if key in self.p_values else (measure, other, one)]

    def better(self, method: str, measure: str) -> list[str]:
        """The methods that this one significantly beats."""
        return [
            other
            for other in self.methods
            if other != method
            and self.mean(method, measure) > self.mean(other, measure)
            and self.p_value(method, other, measure=measure) < self.alpha
        ]

    def _compare(self) -> dict[tuple[str, str, str], float]:
        p_values = {}
        couples = list(itertools.combinations(self.methods, 2))
        for measure in self.measures if couples else ():
            differences = np.stack(
                [self.per_query[a][measure] - self.per_query[b][measure] for a, b in couples],
                axis=1,
            )
            raw = paired_permutation(
                differences, resamples=self.resamples, random_state=self.random_state
            )
            for (a, b), p in zip(couples, holm(raw), strict=True):
                p_values[measure, a, b] = float(p)
        return p_values

    def __str__(self) -> str:
        return tables.text(self._table())

    def to_markdown(self) -> str:
        """A Markdown table; superscripts name the methods that a value significantly beats."""
        return tables.markdown(self._table())

    def to_latex(self) -> str:
        """A LaTeX tabular for the booktabs package."""
        return tables.latex(self._table())

    def to_frame(self) -> Any:
        """A pandas data frame: one row per method, one column per measure or statistic of the codes."""
        try:
            import pandas
        except ImportError:
            raise needs_extra("to_frame", "pandas", "pandas") from None
        rows = {
            method: {
                **{measure: self.mean(method, measure) for measure in self.measures},
                **(self.codes[method]._asdict() if method in self.codes else {}),
            }
            for method in self.methods
        }
        return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("method")

    def _table(self) -> Table:
        """Letter, method, measures and statistics of the codes, one row per method."""
        statistics = SHOWN_STATISTICS if self.codes else ()
        rows = []
        for letter, method in zip(LETTERS, self.methods, strict=False):
            cells = [Cell(letter if len(self.methods) > 1 else ""), Cell(method)]
            cells += [self._measured(method, measure) for measure in self.measures]
            for name in statistics:
                value = getattr(self.codes.get(method), name, None)
                cells.append(Cell("" if value is None else _number(value)))
            rows.append(cells)
        header = ["", "method", *self.measures, *statistics]
        return Table(self.title, header, rows, self._note() if len(self.methods) > 1 else "")

    def _measured(self, method: str, measure: str) -> Cell:
        value = self.mean(method, measure)
        best = max(self.mean(other, measure) for other in self.methods)
        worse = self.better(method, measure)
        marks = "".join(
            letter for letter, other in zip(LETTERS, self.methods, strict=False) if other in worse
        )
        return Cell(_number(value), best=len(self.methods) > 1 and value == best, marks=marks)

    def _note(self) -> str:
        """What the marks mean and how they were found."""
        n_pairs = len(self.methods) * (len(self.methods) - 1) // 2
        found = any(self.better(m, measure) for m in self.methods for measure in self.measures)
        how = (
            f"paired permutation test over {self.n_queries} queries, {self.resamples} resamples, "
            f"Holm's correction for {n_pairs} {'pair' if n_pairs == 1 else 'pairs'}, "
            f"alpha {self.alpha:g}"
        )
        what = "letters: significantly better than that method" if found else ""
        return f"{what or 'no difference is significant'} ({how})"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def check_values(per_query: Mapping[str, Mapping[str, Values]]) -> None:
    """All methods must have the same measures, and one finite value for each of the queries."""
    first, expected = next(iter(per_query.items()))
    if not expected:
        raise ValueError(f"{first} has no measure: a report needs at least one query and measure")
    n_queries = len(next(iter(expected.values())))
    for method, values in per_query.items():
        if list(values) != list(expected):
            raise ValueError(
                f"{method} has the measures {', '.join(values)}; {first} has {', '.join(expected)}"
            )
        for measure, array in values.items():
            if np.shape(array) != (n_queries,) or n_queries == 0 or not np.isfinite(array).all():
                raise ValueError(
                    f"{method}, {measure}: expected a finite value for each of {n_queries} queries "
                    f"(at least one), got shape {np.shape(array)}"
                )
