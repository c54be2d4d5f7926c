"""Codes: the nearest, and those that a filter lets through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection.filters import Condition
from boltzhash.collection.postgres.filters import Clause, clause_of
from boltzhash.collection.postgres.rows import bits_of, code_of
from boltzhash.collection.store import Mask, Places, Rows, State
from boltzhash.search.hits import Hits

_FEW = 10_000  # places that are looked up one by one instead of filtering all documents again

Run = Callable[..., Any]


class PostgresCodes:
    """The table of codes with a number; ``run`` gives the cursor of a statement that reads it."""

    def __init__(self, run: Run, state: State, number: int) -> None:
        self._run, self._state = run, state
        self.table = f"codes_{number} AS codes"
        self.with_documents = f"{self.table} JOIN documents USING (place)"

    def source(self, conditions: list[Condition]) -> str:
        """The tables in which codes are filtered."""
        return self.with_documents if conditions else self.table

    def rows(self) -> Rows:
        found = self._run(
            f"SELECT place, code::text, known FROM {self.table} ORDER BY place"
        ).fetchall()
        codes = b"".join(code_of(bits) for _, bits, _ in found)
        return Rows(
            np.array([row[0] for row in found], dtype=np.int64),
            np.frombuffer(codes, np.uint8).reshape(len(found), self._state.n_bits // 8),
            np.array([row[2] for row in found], dtype=np.bool_),
        )

    def at(self, places: Places) -> Codes:
        """The packed codes at places, shape (n, n_bits / 8)."""
        rows = self._run(
            f"SELECT place, code::text FROM {self.table} WHERE place = ANY (%s)", [places.tolist()]
        )
        found = {place: code_of(bits) for place, bits in rows}
        packed = b"".join(found[place] for place in places.tolist())
        return np.frombuffer(packed, np.uint8).reshape(len(places), self._state.n_bits // 8)

    def within(
        self, code: Codes, radius: int, conditions: list[Condition]
    ) -> tuple[str, list[Any]]:
        """A statement for places and distances up to a radius, and its parameters."""
        where, bits = clause_of(conditions, "documents.fields"), bits_of(code.tobytes())
        near = (
            f"SELECT place, {distance_to(bits)} AS distance FROM {self.source(conditions)} "
            f"WHERE {distance_to(bits)} <= %s AND {where.sql}"
        )
        return near, [bits, bits, radius, *where.parameters]

    def nearest(self, code: Codes, k: int, conditions: list[Condition]) -> tuple[str, list[Any]]:
        """A statement for places and distances of the k nearest, and its parameters."""
        where, bits = clause_of(conditions, "documents.fields"), bits_of(code.tobytes())
        near = (
            f"SELECT place, {distance_to(bits)} AS distance FROM {self.source(conditions)} "
            f"WHERE {where.sql} ORDER BY distance, place LIMIT %s"
        )
        return near, [bits, *where.parameters, k]


class FilteredCodes:
    """The codes that a filter lets through, as a ranking takes them."""

    def __init__(
        self, run: Run, codes: PostgresCodes, conditions: list[Condition], allowed: Mask | None
    ) -> None:
        self._run = run
        self._codes = codes
        self._conditions = conditions
        self._allowed = allowed  # by the filter
        self.codes_at = codes.at

    def top_k(self, query: Codes, k: int, allowed: Mask | None, /) -> Hits:
        """The k nearest of those let through, in order of (distance, insertion)."""
        bits = bits_of(query.tobytes())
        source, where = self._among(allowed)
        rows = self._run(
            f"SELECT place, {distance_to(bits)} AS distance FROM {source} "
            f"WHERE {where.sql} ORDER BY distance, place LIMIT %s",
            [bits, *where.parameters, k],
        ).fetchall()
        found = np.array(rows, dtype=np.int64).reshape(len(rows), 2)
        return Hits(found[:, 0], found[:, 1].astype(np.int32))

    def _among(self, allowed: Mask | None) -> tuple[str, Clause]:
        """In which tables to look, and for what: for a few places, or for what is not ruled out."""
        if allowed is None:
            return self._codes.table, clause_of([], "")
        kept = np.flatnonzero(allowed)
        if len(kept) <= _FEW:
            return self._codes.table, Clause("place = ANY (%s)", [kept.tolist()])
        where = clause_of(self._conditions, "documents.fields")
        left_out = np.flatnonzero(~allowed if self._allowed is None else self._allowed & ~allowed)
        if len(left_out):
            where = Clause(
                f"{where.sql} AND place <> ALL (%s)", [*where.parameters, left_out.tolist()]
            )
        return self._codes.source(self._conditions), where


def distance_to(bits: str) -> str:
    """The distance of a row's code, for the bits as a parameter."""
    return f"hamming_distance(code, %s::bit({len(bits)}))"
