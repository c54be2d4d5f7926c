"""Codes: the nearest, exactly or by the approximate index, and those that a filter lets through."""

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
CANDIDATES = [100, 200, 400, 1000]  # hnsw.ef_search; the last is pgvector's own limit
_SCANNED = 20_000  # hnsw.max_scan_tuples, until a connection has used pgvector
_TRIED = 2_000  # documents that a filter is tried on, by whole pages
_MORE_THAN_ENOUGH = 4  # times k that a search of the index should come by, so as to have found k


Run = Callable[..., Any]


class PostgresCodes:
    """The table of codes with a number; ``run`` gives the cursor of a statement that reads it."""

    def __init__(self, run: Run, state: State, number: int, *, scans_on: bool) -> None:
        self._run, self._state, self._number = run, state, number
        self.scans_on = scans_on
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

    def nearest(
        self, code: Codes, k: int, conditions: list[Condition], effort: int | None
    ) -> tuple[str, list[Any]]:
        """A statement for places and distances among which the k nearest are, and its parameters.

        Exactly without an effort, and where too few documents pass the filter for the index to find k.
        """
        where, source = clause_of(conditions, "documents.fields"), self.source(conditions)
        bits = bits_of(code.tobytes())
        if effort is not None:
            effort = min(max(k, effort), CANDIDATES[-1])
            if conditions and self.few_pass(conditions, k, self._n_looked_at(effort)):
                effort = None
        if effort is None:
            near = f"SELECT place, {distance_to(bits)} AS distance FROM {source} WHERE {where.sql}"
            return near, [bits, *where.parameters]
        self._run(f"SET LOCAL hnsw.ef_search = {effort}")
        if self.scans_on:
            self._run("SET LOCAL hnsw.iterative_scan = strict_order")  # k, even if filtered
        near = (  # with ties, of which those that were inserted first are taken
            f"SELECT place, distinct_codes.code <~> %s::bit({len(bits)}) AS distance "
            f"FROM distinct_codes_{self._number} AS distinct_codes JOIN {source} USING (code) "
            f"WHERE {where.sql} ORDER BY distance FETCH FIRST (%s) ROWS WITH TIES"
        )
        return near, [bits, *where.parameters, k]

    def _n_looked_at(self, effort: int) -> int:
        """How many codes a search of the index goes through at most, to find some that pass a filter."""
        if not self.scans_on:
            return effort
        (most,) = self._run("SELECT current_setting('hnsw.max_scan_tuples', true)").fetchone()
        return int(most or _SCANNED)

    def few_pass(self, conditions: list[Condition], k: int, n_looked_at: int) -> bool:
        """Whether too few of so many codes belong to documents that a filter lets through.

        It is tried on the documents of some pages, the same ones every time.
        """
        where = clause_of(conditions, "documents.fields")
        share = min(1.0, _TRIED / max(1, self._state.n_documents))
        tried, passing = self._run(
            f"SELECT count(*), count(*) FILTER (WHERE {where.sql}) "
            "FROM documents TABLESAMPLE SYSTEM (%s) REPEATABLE (0)",
            [*where.parameters, 100 * share],
        ).fetchone()
        return bool(passing * n_looked_at < _MORE_THAN_ENOUGH * k * tried)


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
    """The distance of a row; as a function it uses no index, which ``<~>`` would."""
    return f"hamming_distance(code, %s::bit({len(bits)}))"
