"""Which documents a filter lets through, asked of SQLite. Values are parameters, never SQL."""

from __future__ import annotations

import itertools
import sqlite3
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.collection.filters import Compared, Condition, OneOf
from boltzhash.collection.sqlite.schema import stored_value
from boltzhash.collection.store import FieldValue
from boltzhash.corpus.documents import Scalar

Mask = NDArray[np.bool_]

_VALUES_AT_ONCE = 500
_KEPT = 16


class FieldFilter:
    """Answers conditions; keeps the answers to the last ones while the collection stays as it is."""

    def __init__(self) -> None:
        self._generation = -1
        self._answers: dict[str, Mask] = {}

    def allowed(
        self,
        connection: sqlite3.Connection,
        conditions: list[Condition],
        generation: int,
        last_place: int,
    ) -> Mask | None:
        """For each place, whether all conditions hold; None if there are no conditions."""
        if generation != self._generation:
            self._generation, self._answers = generation, {}
        allowed: Mask | None = None
        for condition in conditions:
            key = repr(condition)  # as keys of a dict, 1 and True would be the same
            if key not in self._answers:
                if len(self._answers) == _KEPT:
                    del self._answers[next(iter(self._answers))]
                self._answers[key] = _places_of(connection, condition, last_place)
            mask = self._answers[key]
            allowed = mask if allowed is None else allowed & mask
        return allowed


def _places_of(connection: sqlite3.Connection, condition: Condition, last_place: int) -> Mask:
    mask = np.zeros(last_place + 1, dtype=np.bool_)
    if isinstance(condition, OneOf):
        _mark_one_of(connection, condition, mask)
    else:
        _mark_compared(connection, condition, mask)
    return mask


def _mark_one_of(connection: sqlite3.Connection, condition: OneOf, mask: Mask) -> None:
    values = iter(condition.values)
    while some := [stored_value(v) for v in itertools.islice(values, _VALUES_AT_ONCE)]:
        marks = ", ".join("?" * len(some))
        _mark(connection, mask, condition.field, f"value IN ({marks})", some)
    if condition.or_missing:
        present = np.zeros_like(mask)
        _mark(connection, present, condition.field, "TRUE", [])
        mask |= ~present


def _mark_compared(connection: sqlite3.Connection, condition: Compared, mask: Mask) -> None:
    terms, values = ["TRUE"], []
    for operator, value in condition.comparisons:  # the operators were checked against a list
        if value is None:
            continue  # != None: any value will do
        terms.append(f"value {operator} ?")
        values.append(stored_value(value))
        if operator != "!=":  # SQLite puts all text after all numbers; we do not compare the two
            kinds = "'text'" if isinstance(value, str) else "'integer', 'real'"
            terms.append(f"typeof(value) IN ({kinds})")
    _mark(connection, mask, condition.field, " AND ".join(terms), values)


def _mark(
    connection: sqlite3.Connection, mask: Mask, field: str, term: str, values: list[Any]
) -> None:
    # One long string is three times as fast as one row per place.
    (places,) = connection.execute(
        f"SELECT group_concat(place) FROM fields WHERE field = ? AND {term}", (field, *values)
    ).fetchone()
    if places is not None:
        mask[np.fromstring(places, dtype=np.int64, sep=",")] = True


def field_values(connection: sqlite3.Connection, most: int) -> dict[str, list[FieldValue]]:
    """The commonest values of each field, at most ``most``."""
    values: dict[str, list[FieldValue]] = {}
    # A blob is how true, false, lists and objects are kept: see schema.stored_value.
    for field, value, count in connection.execute(
        "SELECT field, value, n FROM (SELECT field, value, count(*) AS n, row_number() "
        "OVER (PARTITION BY field ORDER BY count(*) DESC, value) AS rank FROM fields "
        "WHERE value != x'' GROUP BY field, value) WHERE rank <= ? ORDER BY field, rank",
        (most,),
    ):
        values.setdefault(field, []).append(FieldValue(_original(value), count))
    return values


def values_of(connection: sqlite3.Connection, field: str) -> dict[int, Scalar]:
    """The value of a field by place, without lists and objects."""
    rows = connection.execute(
        "SELECT place, value FROM fields WHERE field = ? AND value != x''", (field,)
    )
    return {place: _original(value) for place, value in rows}


def _original(value: Any) -> Any:
    """What ``stored_value`` was given."""
    return bool(value[0]) if isinstance(value, bytes) else value
