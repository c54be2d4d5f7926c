"""Cells of tables: the seeds of a setting, their mean and spread, Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from experiments.results.files import Result
from experiments.runs.sweeps import LENGTHS

# Best epoch on test, as the authors' code reports; test at the best epoch on val; the last epoch.
PROTOCOLS = ("published", "validation", "label-free")

Cell = tuple[str, str, int]  # settings, corpus, bits
Cells = dict[Cell, list[float]]


def cells(results: Iterable[Result], protocol: str = "label-free") -> Cells:
    """Test precision of every seed, by settings, corpus and length."""
    found: Cells = {}
    for result in results:
        if protocol in result["precision"]:
            key = (result["settings"], result["corpus"], result["bits"])
            found.setdefault(key, []).append(result["precision"][protocol])
    return found


def by_protocol(results: list[Result]) -> dict[str, Cells]:
    return {protocol: cells(results, protocol) for protocol in PROTOCOLS}


def by_length(found: Cells, settings: str, corpus: str) -> list[list[float] | None]:
    """The cells of a row that has a column for each length."""
    return [found.get((settings, corpus, bits)) for bits in LENGTHS]


def spread(values: list[float] | None) -> str:
    """Mean (lowest–highest) without leading zeros; empty where nothing was run.

    >>> spread([0.5, 0.6]), spread([0.25]), spread(None)
    ('.550 (.500–.600)', '.250', '')
    """
    if not values:
        return ""
    ends = "" if len(values) == 1 else f" ({short(min(values))}–{short(max(values))})"
    return mean(values) + ends


def mean(values: list[float] | None) -> str:
    """The mean alone; empty where nothing was run.

    >>> mean([0.5, 0.6]), mean(None)
    ('.550', '')
    """
    return short(statistics.mean(values)) if values else ""


def short(value: float | None) -> str:
    """Three digits without the leading zero."""
    return "" if value is None else f"{value:.3f}".removeprefix("0")


def signed(value: float) -> str:
    """Three digits with a sign.

    >>> signed(0.0123), signed(-0.2), signed(-0.0001)
    ('+.012', '−.200', '+.000')
    """
    return ("−" if round(value, 3) < 0 else "+") + short(abs(value))


def seeds(values: Iterable[list[float] | None]) -> str:
    """How many runs there are in each cell of a row: one number, or the fewest and the most.

    >>> seeds([[0.5, 0.6], None, [0.5, 0.7, 0.6]]), seeds([[0.1], [0.2]])
    ('2–3', '1')
    """
    counts = sorted({len(v) for v in values if v})
    return "–".join(map(str, (counts[0], counts[-1])[: len(counts)])) if counts else ""


def row(names: list[str], values: list[list[float] | None]) -> list[list[str]]:
    """The row of a table that tells its seeds and spreads; none where nothing was run.

    >>> row(["NASH", "tmc"], [[0.5, 0.6], None]), row(["NASH", "ng20"], [None, None])
    ([['NASH', 'tmc', '2', '.550 (.500–.600)', '']], [])
    """
    return [[*names, seeds(values), *map(spread, values)]] if any(values) else []


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
