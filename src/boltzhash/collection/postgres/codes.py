"""The codes of the documents that a filter lets through, for a ranking by words and codes."""

from __future__ import annotations

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
