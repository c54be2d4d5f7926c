"""The measure that needs no labels beside precision by labels: how it ranks runs, and what it picks.

Runs of seed 0 at the lengths of the sweep ``label-free``; precision is that of val, so that nothing is
picked on test.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import NamedTuple

from scipy.stats import spearmanr

from experiments.results.files import read_all
from experiments.runs.sweeps import EXPERIMENTS
from experiments.tables.cells import markdown, short

LISTED = EXPERIMENTS["label-free"]
CORPORA = tuple(dict.fromkeys(run.corpus for run in LISTED))
LENGTHS = tuple(dict.fromkeys(run.bits for run in LISTED))
SETTINGS = {run.settings.name: run.settings.method for run in LISTED} | {
    "SemanticHasher": "SemanticHasher"
}
SHOWN = {
    "no-neighbours": "SemanticHasher without neighbours",
    "one-training": "SemanticHasher, one training",
    "one-scale": "SemanticHasher, one scale",
}


class Point(NamedTuple):
    """A run: how far its codes agree, and how precise they are."""

    settings: str
    bits: int
    agreement: float
    precision: float


def points(corpus: str) -> list[Point]:
    """The runs of a corpus, each once."""
    found: dict[tuple[str, int], Point] = {}
    for result in read_all("label-free", "quality", "quality-unseen"):
        key = (result["settings"], result["bits"])
        is_meant = result["corpus"] == corpus and result["seed"] == 0 and key[1] in LENGTHS
        if is_meant and key[0] in SETTINGS and "agreement" in result:
            point = Point(*key, result["agreement"], result["val_precision"])
            found.setdefault(key, point)
    return list(found.values())


def ranks_table() -> str:
    """Spearman's rank correlation of agreement and precision, by corpus."""
    rows = []
    for corpus in CORPORA:
        own = points(corpus)
        by_length = [[p for p in own if p.bits == bits] for bits in LENGTHS]
        variants = [
            [p for p in some if SETTINGS[p.settings] == "SemanticHasher"] for some in by_length
        ]
        by_settings = [[p for p in own if p.settings == settings] for settings in SETTINGS]
        groups = [[own], *([some] for some in by_length), variants, by_settings]
        if own:
            rows.append([corpus, str(len(own)), *map(_mean_correlation, groups)])
    head = ["corpus", "runs", "all", *(f"methods, {bits} bits" for bits in LENGTHS)]
    return markdown([*head, "settings of SemanticHasher", "lengths"], rows)


def _mean_correlation(groups: Iterable[list[Point]]) -> str:
    """Over groups of at least three runs.

    >>> up, down = ([Point("", 8, x, y) for x, y in enumerate(s)] for s in ((1, 2, 3), (3, 1, 2)))
    >>> _mean_correlation([up]), _mean_correlation([up, down]), _mean_correlation([up[:2]])
    ('1.00', '.25', '')
    """
    values = [
        spearmanr([p.agreement for p in some], [p.precision for p in some]).statistic
        for some in groups
        if len(some) > 2
    ]
    if not values:
        return ""
    shown = f"{abs(statistics.fmean(values)):.2f}".removeprefix("0")
    return f"−{shown}" if statistics.fmean(values) < 0 else shown


def picks_table() -> str:
    """What is lost against the best run of a corpus: picked by agreement, or by the other corpora."""
    known = {corpus: points(corpus) for corpus in CORPORA}
    rows = []
    for corpus, own in known.items():
        if not own:
            continue
        others = [run for other, runs in known.items() if other != corpus for run in runs]
        by_length = [[p for p in own if p.bits == bits] for bits in LENGTHS]
        agreed = [_lost(some, max(some, key=lambda p: p.agreement)) for some in (*by_length, own)]
        elsewhere = [_lost(some, _best_elsewhere(some, others)) for some in (*by_length, own)]
        rows.append([corpus, "the highest agreement", *agreed])
        rows.append([corpus, "the best of the other corpora", *elsewhere])
    return markdown(["corpus", "picked by", *map(str, LENGTHS), "any length"], rows)


def _best_elsewhere(offered: list[Point], others: list[Point]) -> Point:
    """The run whose settings and length have the highest mean precision on other corpora."""

    def mean_precision(point: Point) -> float:
        same = [p.precision for p in others if p[:2] == point[:2]]
        return statistics.fmean(same) if same else 0.0

    return max(offered, key=mean_precision)


def _lost(offered: list[Point], picked: Point) -> str:
    """By how much the picked run is below the best, and what it is.

    >>> runs = [Point("ITQ", 8, 0.2, 0.5), Point("NASH", 8, 0.1, 0.52)]
    >>> _lost(runs, runs[0]), _lost(runs, runs[1])
    ('.020 ITQ', '.000 NASH')
    """
    cost = max(point.precision for point in offered) - picked.precision
    length = "" if len({point.bits for point in offered}) == 1 else f", {picked.bits}"
    return f"{short(cost)} {SHOWN.get(picked.settings, picked.settings)}{length}"
