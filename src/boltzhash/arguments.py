"""Checks of constructor arguments, each with a message that says what was given."""

from __future__ import annotations

import math
from numbers import Integral, Real


def check_integer(name: str, value: object, at_least: int, expected: str) -> None:
    """
    >>> check_integer("rank", -1, 0, "an integer of 0 or more")
    Traceback (most recent call last):
    ...
    ValueError: rank must be an integer of 0 or more, got -1
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < at_least:
        raise ValueError(f"{name} must be {expected}, got {value!r}")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """
    >>> check_choice("bound", "tight", ("rearranged", "printed"))
    Traceback (most recent call last):
    ...
    ValueError: bound must be one of 'rearranged', 'printed', got 'tight'
    """
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_number(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    below: float = math.inf,
) -> None:
    """
    >>> check_number("dropout", 1.5, at_least=0, below=1)
    Traceback (most recent call last):
    ...
    ValueError: dropout must be a number of at least 0 and below 1, got 1.5
    """
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        if above < number < below and at_least <= number <= at_most:
            return
    limits = [
        f"above {above:g}" if above > -math.inf else "",
        f"of at least {at_least:g}" if at_least > -math.inf else "",
        f"at most {at_most:g}" if at_most < math.inf else "",
        f"below {below:g}" if below < math.inf else "",
    ]
    raise ValueError(f"{name} must be a number {' and '.join(filter(None, limits))}, got {value!r}")
