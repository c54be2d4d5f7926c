"""Cells of tables: the seeds of a setting, their mean and spread, Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

Result = dict[str, Any]
Cell = tuple[str, str, int]  # settings, corpus, bits


def cells(results: Iterable[Result], protocol: str = "label-free") -> dict[Cell, list[float]]:
    """Test precision of every seed, by settings, corpus and length."""
    found: dict[Cell, list[float]] = {}
    for result in results:
        if protocol in result["precision"]:
            key = (result["settings"], result["corpus"], result["bits"])
            found.setdefault(key, []).append(result["precision"][protocol])
    return found


def spread(values: list[float] | None) -> str:
    """Mean (lowest–highest) without leading zeros; empty where nothing was run.

    >>> spread([0.5, 0.6]), spread([0.25]), spread(None)
    ('.550 (.500–.600)', '.250', '')
    """
    if not values:
        return ""
    mean = short(statistics.mean(values))
    return mean if len(values) == 1 else f"{mean} ({short(min(values))}–{short(max(values))})"


def short(value: float | None) -> str:
    """Three digits without the leading zero."""
    return "" if value is None else f"{value:.3f}".removeprefix("0")


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
