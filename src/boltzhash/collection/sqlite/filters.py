"""Which documents a filter lets through, asked of SQLite. Values are parameters, never SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.collection.columns import Column
from boltzhash.collection.filters import (
    COMPARISONS,
    AllOf,
    AnyOf,
    Compared,
    Condition,
    Has,
    Not,
    OneOf,
    OnField,
)
from boltzhash.collection.sqlite.schema import stored_value
from boltzhash.collection.sqlite.snapshot import Snapshot
from boltzhash.collection.store import FieldValue
from boltzhash.corpus.documents import Scalar

Mask = NDArray[np.bool_]

_NO_PLACES = np.empty(0, dtype=np.int64)
_VALUES_AT_ONCE = 500
_KEPT = 16


class FieldFilter:
    """Answers conditions; keeps the answers to the last ones while the collection stays as it is.

    What is kept has a byte for each document, however many there were before.
    """

    def __init__(self) -> None:
        self._generation = -1
        self._answers: dict[str, Mask] = {}

    def allowed(
        self, connection: sqlite3.Connection, conditions: list[Condition], codes: Snapshot
    ) -> Mask | None:
        """For each place, whether all conditions hold; None if there are no conditions."""
        if not conditions:
            return None
        if codes.generation != self._generation:
            self._generation, self._answers = codes.generation, {}
        every, fields = AllOf(tuple(conditions)), _Fields(connection, codes)
        return codes.by_place(self._kept(repr(every), lambda: self._rows(every, fields)))

    def _rows(self, condition: Condition, fields: _Fields) -> Mask:
        if isinstance(condition, Not):
            return fields.everywhere() & ~self._rows(condition.condition, fields)
        if isinstance(condition, AllOf):
            masks = [self._rows(each, fields) for each in condition.conditions]
            return reduce(np.logical_and, masks or [fields.everywhere()])
        if isinstance(condition, AnyOf):
            masks = [self._rows(each, fields) for each in condition.conditions]
            return reduce(np.logical_or, masks or [np.zeros_like(fields.everywhere())])
        return self._kept(repr(condition), lambda: fields.rows_of(condition))

    def _kept(self, key: str, answer: Callable[[], Mask]) -> Mask:
        """By what is asked: as keys of a dict, 1 and True would be the same."""
        if key not in self._answers:
            mask = answer()
            if len(self._answers) == _KEPT:
                del self._answers[next(iter(self._answers))]
            self._answers[key] = mask
        return self._answers[key]


class _Fields:
    """The table of fields: a row for each value, and an empty blob for what is a list or an object."""

    def __init__(self, connection: sqlite3.Connection, codes: Snapshot) -> None:
        self._connection = connection
        self._codes = codes
        self._n_places = codes.last_place + 1

    def everywhere(self) -> Mask:
        return self._codes.live()

    def rows_of(self, condition: OnField) -> Mask:
        return self._codes.by_row(self.places_of(condition)).copy()  # not a part of that

    def places_of(self, condition: OnField) -> Mask:
        field = condition.field
        if isinstance(condition, Has):
            return self._where(field, "TRUE", [])
        if isinstance(condition, OneOf):
            return self._one_of(field, condition.values)
        if isinstance(condition, Compared):
            # SQLite puts all text after all numbers; we do not compare the two.
            kinds = "'text'" if isinstance(condition.value, str) else "'integer', 'real'"
            assert condition.operator in COMPARISONS  # it becomes SQL
            term = f"value {condition.operator} ? AND typeof(value) IN ({kinds})"
            return self._where(field, term, [stored_value(condition.value)])
        return self._contains(field, condition.value)

    def _one_of(self, field: str, values: tuple[Scalar, ...]) -> Mask:
        mask = np.zeros(self._n_places, dtype=np.bool_)
        for start in range(0, len(values), _VALUES_AT_ONCE):
            some = [stored_value(value) for value in values[start : start + _VALUES_AT_ONCE]]
            mask |= self._where(field, f"value IN ({', '.join('?' * len(some))})", some)
        return mask

    def _contains(self, field: str, value: Scalar) -> Mask:
        is_list = self._where(field, "value = x''", [])
        mask = is_list & self._one_of(field, (value,))
        if isinstance(value, str):
            has_part = "typeof(value) = 'text' AND instr(value, ?) > 0"
            mask |= ~is_list & self._where(field, has_part, [value])
        return mask

    def _where(self, field: str, term: str, values: list[Any]) -> Mask:
        mask = np.zeros(self._n_places, dtype=np.bool_)
        # One long string is three times as fast as one row per place.
        (places,) = self._connection.execute(
            f"SELECT group_concat(place) FROM fields WHERE field = ? AND {term}", (field, *values)
        ).fetchone()
        if places is not None:
            mask[np.fromstring(places, dtype=np.int64, sep=",")] = True
        return mask


class FieldColumns:
    """Whole fields; keeps the last ones while the collection stays as it is."""

    def __init__(self) -> None:
        self._generation = -1
        self._columns: dict[str, Column] = {}

    def column(self, connection: sqlite3.Connection, field: str, generation: int) -> Column:
        if generation != self._generation:
            self._generation, self._columns = generation, {}
        if field not in self._columns:
            if len(self._columns) == _KEPT:
                del self._columns[next(iter(self._columns))]
            self._columns[field] = _column(connection, field)
        return self._columns[field]


def _column(connection: sqlite3.Connection, field: str) -> Column:
    """In SQLite's order of values, which is numbers, strings, blobs: ours."""
    values, counts, places = [], [], []
    for value, n, some in connection.execute(
        "SELECT value, count(*), group_concat(place) FROM fields WHERE field = ? AND value != x'' "
        "GROUP BY value ORDER BY value",
        (field,),
    ):
        values.append(_original(value))
        counts.append(n)
        places.append(some)
    return Column(
        np.fromstring(",".join(places), dtype=np.int64, sep=",") if places else _NO_PLACES,
        np.repeat(np.arange(len(values)), counts),
        values,
    )


def field_values(connection: sqlite3.Connection, most: int) -> dict[str, list[FieldValue]]:
    """The commonest values of each field, at most ``most``; those of a list are its members."""
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
        "SELECT place, value FROM fields WHERE field = ?1 AND value != x'' AND NOT EXISTS "
        "(SELECT 1 FROM fields AS lists WHERE lists.field = ?1 AND lists.value = x'' "
        "AND lists.place = fields.place)",
        (field,),
    )
    return {place: _original(value) for place, value in rows}


def _original(value: Any) -> Any:
    """What ``stored_value`` was given."""
    return bool(value[0]) if isinstance(value, bytes) else value
