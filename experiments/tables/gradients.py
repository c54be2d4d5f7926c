"""Bias and variance of the gradient estimators, from what ``runs/gradient_estimators.py`` measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from experiments.results.files import read_all
from experiments.tables.cells import markdown, short

NAMES = {
    "straight-through": "straight-through",
    "gumbel-softmax, hard": "Gumbel-softmax, hard",
    "gumbel-softmax, soft": "Gumbel-softmax, soft",
    "reinforce": "REINFORCE",
    "arm": "ARM",
    "rebar": "REBAR",
    "relax": "RELAX, trained",
}
UNBIASED = ("reinforce", "arm", "rebar", "relax")


def bias_table() -> str:
    """Bias ± its standard error of the estimators that have one."""
    names = [name for name in NAMES if name not in UNBIASED]
    return _table(names, lambda p: f"{short(p['bias'])} ± {short(max(p['standard_error'], 0.001))}")


def variance_table() -> str:
    """Variance of one draw over the squared norm of the gradient."""
    return _table(list(NAMES), lambda p: three_digits(p["variance"]))


def three_digits(value: float) -> str:
    """Three digits, of large numbers all.

    >>> [three_digits(x) for x in (0.0289, 9.654, 237.2, 5908.7)]
    ['.029', '9.65', '237', '5,909']
    """
    if value < 1:
        return short(value)
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _table(names: list[str], shown: Callable[[dict[str, Any]], str]) -> str:
    points = [point for result in read_all("gradient-estimators") for point in result["points"]]
    xs = sorted({point["x"] for point in points})
    found = {(point["estimator"], point["x"]): point for point in points}
    head = [f"{x:.2f}".rstrip("0").rstrip(".") for x in xs]
    rows = [[NAMES[name], *(shown(found[name, x]) for x in xs)] for name in names if points]
    return markdown([r"\|r\|", *head], rows)
