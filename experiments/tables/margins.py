"""Margins of CorrSH and SemanticHasher over others, the paper's margin, and the effect of noise on it.

Only result files are read. Positive is in favour of the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from experiments import paper
from experiments.results.files import read_all
from experiments.runs.sweeps import LENGTHS, MAIN
from experiments.tables.cells import PROTOCOLS, by_length, by_protocol, markdown, row, signed
from experiments.tables.intervals import difference

Figures = Sequence[float | None]  # a row of the paper's tables


class Margin(NamedTuple):
    """One recipe under some protocols: our settings and those of what they are compared with."""

    recipe: str
    ours: str
    other: str
    protocols: tuple[str, ...] = PROTOCOLS


AGAINST_NASH = [
    Margin("as published", "CorrSH-published", "NASH-published"),
    Margin("as published, no noise", "v10-k10-noise-0", "NASH-published"),
    Margin("SemanticHasher, defaults", "SemanticHasher", "NASH", ("label-free",)),
]
AGAINST_RBSH = [
    Margin("as published", "CorrSH-published", "RBSH-published"),
    Margin("as published, no noise", "CorrSH-published-no-noise", "RBSH-published"),
    Margin("SemanticHasher, defaults", "SemanticHasher", "RBSH", ("label-free",)),
]
NOISE_ROWS = {
    "NASH-published": "NASH: noise by the network",
    "v0-k1-noise-0": "CorrSH, v = 0, k = 1, no noise",
    "v10-k10-noise-0": "CorrSH, v = k = 10, no noise",
    "v0-k1-noise-0.5": "CorrSH, v = 0, k = 1, noise .5",
    "v0-k1-noise-1": "CorrSH, v = 0, k = 1, noise 1 to .9",
    "CorrSH-published": "CorrSH, v = k = 10, noise 1 to .9",
}


def over_nash_table() -> str:
    """CorrSH minus NASH: the paper's, and ours with an interval."""
    printed = {
        corpus: (paper.TABLES[corpus]["CorrSH"], paper.TABLES[corpus]["NASH"]) for corpus in MAIN
    }
    return _table(printed, AGAINST_NASH, ("tables", "noise", "quality"))


def over_rbsh_table() -> str:
    """CorrSH minus RBSH, with RBSH's preprocessing."""
    printed = {corpus: (both["CorrSH"], both["RBSH"]) for corpus, both in paper.APPENDIX.items()}
    return _table(printed, AGAINST_RBSH, ("appendix",))


def _table(
    printed: Mapping[str, tuple[Figures, Figures]],
    margins: list[Margin],
    experiments: tuple[str, ...],
) -> str:
    measured = by_protocol(read_all(*experiments))
    rows = []
    for corpus, both in printed.items():
        pairs = zip(*both, strict=True)
        theirs = [signed(a - b) for a, b in pairs if a is not None and b is not None]
        rows.append([corpus, "the paper's, published", *theirs])
        for margin in margins:
            for protocol in margin.protocols:
                ours = by_length(measured[protocol], margin.ours, corpus)
                others = by_length(measured[protocol], margin.other, corpus)
                intervals = [
                    difference(a or (), b or ()) for a, b in zip(ours, others, strict=True)
                ]
                if any(intervals):
                    shown = [str(interval) if interval else "" for interval in intervals]
                    rows.append([corpus, f"{margin.recipe}, {protocol}", *shown])
    return markdown(["corpus", "", *map(str, LENGTHS)], rows)


def noise_table() -> str:
    """CorrSH with more and less noise before the decoder, with and without couplings, beside NASH."""
    protocols = ("published", "label-free")
    found = by_protocol(read_all("noise", "tables"))
    rows = []
    for corpus in MAIN:
        measured = ("v0-k1-noise-1", corpus, 8) in found["published"]
        for settings, name in NOISE_ROWS.items():
            values = [
                found[p].get((settings, corpus, bits)) for bits in (8, 128) for p in protocols
            ]
            if measured:
                rows += row([corpus, name], values)
    head = [f"{bits}, {protocol}" for bits in (8, 128) for protocol in protocols]
    return markdown(["corpus", "", "seeds", *head], rows)
