"""Codes: the nearest, exactly or by the approximate index, and those that a filter lets through."""

from __future__ import annotations

from typing import Any

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection.filters import Condition
from boltzhash.collection.postgres.connection import PostgresConnection
from boltzhash.collection.postgres.filters import Clause, clause_of
from boltzhash.collection.postgres.rows import bits_of, code_of
from boltzhash.collection.store import Places
from boltzhash.search.hits import Hits
from boltzhash.search.ranking import Mask

_FEW = 10_000  # places that are looked up one by one instead of filtering all documents again
CANDIDATES = [100, 200, 400, 1000]  # hnsw.ef_search; the last is pgvector's own limit
_SCANNED = 20_000  # hnsw.max_scan_tuples, until a connection has used pgvector
_TRIED = 2_000  # documents that a filter is tried on, by whole pages
_MORE_THAN_ENOUGH = 4  # times k that a search of the index should come by, so as to have found k


class FilteredCodes:
    """``size`` is one more than the last place."""

    def __init__(
        self, connection: PostgresConnection, conditions: list[Condition], size: int
    ) -> None:
        self._run = connection.run
        self._conditions = conditions
        self.allowed = places_passing(connection, conditions, size) if conditions else None

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
            return "codes", clause_of([], "")
        kept = np.flatnonzero(allowed)
        if len(kept) <= _FEW:
            return "codes", Clause("place = ANY (%s)", [kept.tolist()])
        where = clause_of(self._conditions, "documents.fields")
        left_out = np.flatnonzero(~allowed if self.allowed is None else self.allowed & ~allowed)
        if len(left_out):
            where = Clause(
                f"{where.sql} AND place <> ALL (%s)", [*where.parameters, left_out.tolist()]
            )
        return source_of(self._conditions), where

    def codes_at(self, places: Places, /) -> Codes:
        """The packed codes at places, shape (n, n_bits / 8)."""
        rows = self._run(
            "SELECT place, code::text FROM codes WHERE place = ANY (%s)", [places.tolist()]
        )
        found = {place: code_of(bits) for place, bits in rows}
        (n_bits,) = self._run("SELECT n_bits FROM state").fetchone()
        packed = b"".join(found[place] for place in places.tolist())
        return np.frombuffer(packed, np.uint8).reshape(len(places), n_bits // 8)


def places_passing(connection: PostgresConnection, conditions: list[Condition], size: int) -> Mask:
    """Of each place, whether there is a document that the filter lets through."""
    where = clause_of(conditions, "documents.fields")
    (places,) = connection.run(
        f"SELECT string_agg(int8send(place), ''::bytea) FROM documents WHERE {where.sql}",
        where.parameters,
        binary=True,
    ).fetchone()
    mask = np.zeros(size, dtype=np.bool_)
    mask[np.frombuffer(places or b"", ">i8")] = True
    return mask


def nearest_codes(
    connection: PostgresConnection,
    code: Codes,
    k: int,
    conditions: list[Condition],
    effort: int | None,
) -> tuple[str, list[Any]]:
    """A statement for places and distances among which the k nearest are, and its parameters.

    Exactly without an effort, and where too few documents pass the filter for the index to find k.
    """
    where, source = clause_of(conditions, "documents.fields"), source_of(conditions)
    bits = bits_of(code.tobytes())
    if effort is not None:
        effort = min(max(k, effort), CANDIDATES[-1])
        if conditions and few_pass(connection, conditions, k, _n_looked_at(connection, effort)):
            effort = None
    if effort is None:
        near = f"SELECT place, {distance_to(bits)} AS distance FROM {source} WHERE {where.sql}"
        return near, [bits, *where.parameters]
    connection.run(f"SET LOCAL hnsw.ef_search = {effort}")
    if connection.scans_on:
        connection.run("SET LOCAL hnsw.iterative_scan = strict_order")  # k, even if filtered
    near = (  # with ties, of which those that were inserted first are taken
        f"SELECT place, distinct_codes.code <~> %s::bit({len(bits)}) AS distance "
        f"FROM distinct_codes JOIN {source} USING (code) WHERE {where.sql} "
        "ORDER BY distance FETCH FIRST (%s) ROWS WITH TIES"
    )
    return near, [bits, *where.parameters, k]


def _n_looked_at(connection: PostgresConnection, effort: int) -> int:
    """How many codes a search of the index goes through at most, to find some that pass a filter."""
    if not connection.scans_on:
        return effort
    (most,) = connection.run("SELECT current_setting('hnsw.max_scan_tuples', true)").fetchone()
    return int(most or _SCANNED)


def few_pass(
    connection: PostgresConnection, conditions: list[Condition], k: int, n_looked_at: int
) -> bool:
    """Whether too few of so many codes belong to documents that a filter lets through.

    It is tried on the documents of some pages, the same ones every time.
    """
    where = clause_of(conditions, "documents.fields")
    (n_documents,) = connection.run("SELECT n_documents FROM state").fetchone()
    share = min(1.0, _TRIED / max(1, n_documents))
    tried, passing = connection.run(
        f"SELECT count(*), count(*) FILTER (WHERE {where.sql}) "
        "FROM documents TABLESAMPLE SYSTEM (%s) REPEATABLE (0)",
        [*where.parameters, 100 * share],
    ).fetchone()
    return bool(passing * n_looked_at < _MORE_THAN_ENOUGH * k * tried)


def distance_to(bits: str) -> str:
    """The distance of a row; as a function it uses no index, which ``<~>`` would."""
    return f"hamming_distance(code, %s::bit({len(bits)}))"


def source_of(conditions: list[Condition]) -> str:
    """The tables in which codes are filtered."""
    return "codes JOIN documents USING (place)" if conditions else "codes"
