"""Declared constraints of arguments, and one check that names what was expected and what came."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real


@dataclass(frozen=True)
class Integer:
    """Whole numbers from ``at_least`` to ``at_most``."""

    at_least: int
    at_most: float = math.inf

    def holds(self, value: object) -> bool:
        if not isinstance(value, Integral) or isinstance(value, bool):
            return False
        return self.at_least <= int(value) <= self.at_most

    def __str__(self) -> str:
        if self.at_most < math.inf:
            return f"an integer from {self.at_least} to {self.at_most}"
        return (
            "a positive integer" if self.at_least == 1 else f"an integer of {self.at_least} or more"
        )


@dataclass(frozen=True)
class Number:
    """Real numbers within bounds."""

    above: float = -math.inf
    at_least: float = -math.inf
    at_most: float = math.inf
    below: float = math.inf

    def holds(self, value: object) -> bool:
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        number = float(value)
        return self.above < number < self.below and self.at_least <= number <= self.at_most

    def __str__(self) -> str:
        limits = {"above": self.above, "of at least": self.at_least}
        limits |= {"at most": self.at_most, "below": self.below}
        said = [f"{name} {limit:g}" for name, limit in limits.items() if math.isfinite(limit)]
        return f"a number {' and '.join(said)}"


@dataclass(frozen=True)
class Each:
    """Tuples and lists of so many values, all under one constraint."""

    constraint: Integer | Number
    at_least: int = 0
    at_most: float = math.inf

    def holds(self, value: object) -> bool:
        if not isinstance(value, tuple | list) or not self.at_least <= len(value) <= self.at_most:
            return False
        return all(self.constraint.holds(each) for each in value)

    def __str__(self) -> str:
        n = f"{self.at_least} values" if self.at_least == self.at_most else "values"
        return f"a tuple of {n}, each {self.constraint}"


# Allowed arguments: constraints, bool for True or False, and values that are allowed themselves.
Constraints = Mapping[str, Sequence[object]]


def check(name: str, value: object, *allowed: object) -> None:
    """Raise a ValueError unless the value is one of those that are allowed.

    >>> check("rank", -1, Integer(0), "full")
    Traceback (most recent call last):
    ...
    ValueError: rank must be an integer of 0 or more or 'full', got -1
    """
    if any(_holds(each, value) for each in allowed):
        return
    if all(isinstance(each, str) for each in allowed) and len(allowed) > 1:
        expected = f"one of {', '.join(map(repr, allowed))}"
    else:
        expected = " or ".join(map(_shown, allowed))
    raise ValueError(f"{name} must be {expected}, got {value!r}")


def check_all(values: Mapping[str, object], constraints: Constraints) -> None:
    """Check the values that the table has constraints of."""
    for name, allowed in constraints.items():
        if name in values:
            check(name, values[name], *allowed)


def _holds(allowed: object, value: object) -> bool:
    if isinstance(allowed, Integer | Number | Each):
        return allowed.holds(value)
    if isinstance(allowed, type):
        return isinstance(value, allowed)
    return type(value) is type(allowed) and value == allowed


def _shown(allowed: object) -> str:
    if isinstance(allowed, Integer | Number | Each):
        return str(allowed)
    return "True or False" if allowed is bool else repr(allowed)
