"""Which documents a filter lets through, asked of SQLite. Values are parameters, never SQL."""

from __future__ import annotations

import itertools
import sqlite3
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.collection.filters import Compared, Condition, OneOf
from boltzhash.collection.schema import stored_value

Mask = NDArray[np.bool_]

_VALUES_AT_ONCE = 500
_FETCH = 10_000


def allowed_places(
    connection: sqlite3.Connection, conditions: list[Condition], last_place: int
) -> Mask | None:
    """Of each place, whether all conditions hold for it; None where there are no conditions."""
    allowed: Mask | None = None
    for condition in conditions:
        if isinstance(condition, OneOf):
            mask = _one_of(connection, condition, last_place)
        else:
            mask = _compared(connection, condition, last_place)
        allowed = mask if allowed is None else allowed & mask
    return allowed


def _one_of(connection: sqlite3.Connection, condition: OneOf, last_place: int) -> Mask:
    mask = np.zeros(last_place + 1, dtype=np.bool_)
    values = iter(condition.values)
    while some := [stored_value(v) for v in itertools.islice(values, _VALUES_AT_ONCE)]:
        marks = ", ".join("?" * len(some))
        _mark(connection, mask, condition.field, f"value IN ({marks})", some)
    if condition.or_missing:
        present = np.zeros_like(mask)
        _mark(connection, present, condition.field, "TRUE", [])
        mask |= ~present
    return mask


def _compared(connection: sqlite3.Connection, condition: Compared, last_place: int) -> Mask:
    terms, values = ["TRUE"], []
    for operator, value in condition.comparisons:  # the operators were checked against a list
        if value is None:
            continue  # != None: any value will do
        terms.append(f"value {operator} ?")
        values.append(stored_value(value))
        if operator != "!=":  # SQLite puts all text after all numbers; we do not compare the two
            kinds = "'text'" if isinstance(value, str) else "'integer', 'real'"
            terms.append(f"typeof(value) IN ({kinds})")
    mask = np.zeros(last_place + 1, dtype=np.bool_)
    _mark(connection, mask, condition.field, " AND ".join(terms), values)
    return mask


def _mark(
    connection: sqlite3.Connection, mask: Mask, field: str, term: str, values: list[Any]
) -> None:
    cursor = connection.execute(
        f"SELECT place FROM fields WHERE field = ? AND {term}", (field, *values)
    )
    while rows := cursor.fetchmany(_FETCH):
        mask[[place for (place,) in rows]] = True
