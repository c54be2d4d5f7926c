"""``where=``: the small language that filters documents by their metadata.

``{"year": 2020}`` equals, ``{"lang": ["de", "en"]}`` is one of, ``{"price": {">=": 3, "<": 5}}``
compares (``<  <=  >  >=  !=``); ``None`` is a field that is missing or null. All conditions must hold.

Types are kept apart: 1, "1" and true are three values (1 and 1.0 are one). ``<`` and the like compare
numbers with numbers and strings with strings, by code point. A list or an object is a value that
equals nothing and lies on no side of anything. ``{"!=": 3}`` means "has a value, and it is not 3", so
``{"!=": None}`` means "has a value".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from boltzhash.corpus.documents import Scalar, check_scalar, is_scalar

Where = Mapping[str, Any]

COMPARISONS = ("<", "<=", ">", ">=", "!=")


class OneOf(NamedTuple):
    """The field has one of these values, or none at all if ``or_missing``."""

    field: str
    values: tuple[Scalar, ...]
    or_missing: bool


class Compared(NamedTuple):
    """The field has a value for which all comparisons hold; any value satisfies ``!=`` None."""

    field: str
    comparisons: tuple[tuple[str, Scalar | None], ...]


Condition = OneOf | Compared


def parse_where(where: Where | None) -> list[Condition]:
    """The conditions of a filter, each checked.

    >>> parse_where({"lang": ["de", "en"], "year": {">=": 2020}})  # doctest: +NORMALIZE_WHITESPACE
    [OneOf(field='lang', values=('de', 'en'), or_missing=False),
     Compared(field='year', comparisons=(('>=', 2020),))]
    >>> parse_where({"year": {"=>": 2020}})
    Traceback (most recent call last):
    ...
    ValueError: where: field 'year' has the operator '=>'; expected one of < <= > >= !=
    """
    if where is None:
        return []
    if not isinstance(where, Mapping):
        raise TypeError(f"where must be a dict from fields to values, got {where!r}")
    return [_condition(field, wanted) for field, wanted in where.items()]


def _condition(field: object, wanted: object) -> Condition:
    if not isinstance(field, str):
        raise TypeError(f"where: the name of a field must be a string, got {field!r}")
    what = f"where: field {field!r}"
    if isinstance(wanted, Mapping):
        return Compared(field, _comparisons(wanted, what))
    values = wanted if isinstance(wanted, list | tuple | set | frozenset) else [wanted]
    for value in values:
        _check_value(value, what)
    return OneOf(field, tuple(v for v in values if is_scalar(v)), None in values)


def _comparisons(wanted: Mapping[Any, Any], what: str) -> tuple[tuple[str, Scalar | None], ...]:
    if not wanted:
        raise ValueError(f"{what} has no operator; expected one of {' '.join(COMPARISONS)}")
    for operator, value in wanted.items():
        if operator not in COMPARISONS:
            raise ValueError(
                f"{what} has the operator {operator!r}; expected one of {' '.join(COMPARISONS)}"
            )
        _check_value(value, what)
        if operator != "!=" and (value is None or isinstance(value, bool)):
            raise TypeError(f"{what}: {operator} takes a number or a string, got {value!r}")
    return tuple(wanted.items())


def _check_value(value: object, what: str) -> None:
    if value is None:
        return
    if not is_scalar(value):
        raise TypeError(
            f"{what} must be compared with a string, a number, true, false or None, got "
            f"{type(value).__name__} {value!r}"
        )
    check_scalar(value, what)
