"""Which documents a filter lets through, asked of SQLite. Values are parameters, never SQL."""

from __future__ import annotations

from functools import reduce
from typing import Any, TypeVar

import numpy as np

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
from boltzhash.collection.sqlite.codes import PackedCodes
from boltzhash.collection.sqlite.database import Database
from boltzhash.collection.sqlite.schema import stored_value
from boltzhash.collection.store import FieldValue, Mask
from boltzhash.corpus.documents import Scalar

T = TypeVar("T")

_NO_PLACES = np.empty(0, dtype=np.int64)
_VALUES_AT_ONCE = 500
_KEPT = 16


class FieldFilter:
    """Answers conditions about one generation, and keeps the last answers.

    What is kept has a few bytes per document, however many were deleted. Threads share it: what it keeps
    is replaced, never changed.
    """

    def __init__(self, codes: PackedCodes) -> None:
        self._codes = codes
        self._n_places = codes.last + 1
        self._most = min(_KEPT, max(1, _KEPT * len(codes) // self._n_places))  # masks
        self._answers: dict[str, Mask] = {}
        self._columns: dict[str, Column] = {}

    def allowed(self, database: Database, conditions: list[Condition]) -> Mask | None:
        """For each place, whether all conditions hold; None if there are no conditions."""
        return self._answer(database, AllOf(tuple(conditions))) if conditions else None

    def everywhere(self) -> Mask:
        """For each place, whether there is a document."""
        mask = self._answers.get("")
        if mask is None:
            mask = np.zeros(self._n_places, dtype=np.bool_)
            mask[self._codes.places()] = True
            self._answers = _kept(self._answers, "", mask, self._most)
        return mask

    def column(self, database: Database, field: str) -> Column:
        """All values of a field."""
        column = self._columns.get(field)
        if column is None:
            column = _column(database, field)
            self._columns = _kept(self._columns, field, column)
        return column

    def _answer(self, database: Database, condition: Condition) -> Mask:
        key = repr(condition)  # as keys of a dict, 1 and True would be the same
        mask = self._answers.get(key)
        if mask is None:
            mask = self._worked_out(database, condition)
            self._answers = _kept(self._answers, key, mask, self._most)
        return mask

    def _worked_out(self, database: Database, condition: Condition) -> Mask:
        if isinstance(condition, Not):
            return self.everywhere() & ~self._answer(database, condition.condition)
        if isinstance(condition, AllOf):
            masks = [self._answer(database, each) for each in condition.conditions]
            return reduce(np.logical_and, masks or [self.everywhere()])
        if isinstance(condition, AnyOf):
            masks = [self._answer(database, each) for each in condition.conditions]
            return reduce(np.logical_or, masks or [np.zeros(self._n_places, dtype=np.bool_)])
        return _Fields(database, self._n_places).places_of(condition)


def _kept(before: dict[str, T], key: str, value: T, most: int = _KEPT) -> dict[str, T]:
    return dict([*before.items(), (key, value)][-most:])


class _Fields:
    """The table of fields: a row for each value, and an empty blob for what is a list or an object."""

    def __init__(self, database: Database, n_places: int) -> None:
        self._database = database
        self._n_places = n_places

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
        ((places,),) = self._database.rows(
            f"SELECT group_concat(place) FROM fields WHERE field = ? AND {term}", (field, *values)
        )
        if places is not None:
            mask[np.fromstring(places, dtype=np.int64, sep=",")] = True
        return mask


def _column(database: Database, field: str) -> Column:
    """In SQLite's order of values, which is numbers, strings, blobs: ours."""
    values, counts, places = [], [], []
    for value, n, some in database.rows(
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


def field_values(database: Database, most: int) -> dict[str, list[FieldValue]]:
    """The commonest values of each field, at most ``most``; those of a list are its members."""
    values: dict[str, list[FieldValue]] = {}
    # A blob is how true, false, lists and objects are kept: see schema.stored_value.
    for field, value, count in database.rows(
        "SELECT field, value, n FROM (SELECT field, value, count(*) AS n, row_number() "
        "OVER (PARTITION BY field ORDER BY count(*) DESC, value) AS rank FROM fields "
        "WHERE value != x'' GROUP BY field, value) WHERE rank <= ? ORDER BY field, rank",
        (most,),
    ):
        values.setdefault(field, []).append(FieldValue(_original(value), count))
    return values


def _original(value: Any) -> Any:
    """What ``stored_value`` was given."""
    return bool(value[0]) if isinstance(value, bytes) else value
