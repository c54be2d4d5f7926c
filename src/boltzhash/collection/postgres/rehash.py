"""Switching to another model in PostgreSQL: one batch per transaction; the last one swaps the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from boltzhash.collection.models import Coder
from boltzhash.collection.postgres.connection import PostgresConnection
from boltzhash.collection.postgres.filters import original_text
from boltzhash.collection.postgres.rows import bits_of
from boltzhash.collection.postgres.schema import NOT_APPROXIMATE
from boltzhash.collection.store import OnBatch, Standing, rehash_taken_over
from boltzhash.encoding.coding import coded_texts
from boltzhash.hashers import Hasher


class Step(NamedTuple):
    """What a transaction did; the next continues after the place ``last``, which is None at the end."""

    n_new: int
    n_documents: int
    last: int | None


def rehash_all(step: Callable[[int], Step], n_done: int, on_batch: OnBatch | None) -> None:
    """``step(last)`` hashes what comes after that place, until the new codes are in use."""
    last: int | None = 0
    while last is not None:
        n_new, n_documents, last = step(last)
        n_done += n_new
        if on_batch is not None and last is not None:
            on_batch(n_done, n_documents)


def rehash_step(
    connection: PostgresConnection,
    coder: Coder,
    switch_words: Callable[[], None],
    standing: Standing,
    *,
    last: int,
    batch: int,
) -> Step:
    """Inside a transaction: hash some documents that have no new code, or switch, the words as well."""
    if standing.next_model != coder.model:
        raise rehash_taken_over(connection.shown)
    rows = connection.run(
        "SELECT documents.place, text FROM documents LEFT JOIN next_codes USING (place) WHERE "
        "documents.place > %s AND next_codes.place IS NULL ORDER BY documents.place LIMIT %s",
        [last, batch],
    ).fetchall()
    if not rows and last == 0:
        switch_words()  # first, since nobody can search once the codes are exchanged
        _exchange(connection, coder)
        return Step(0, standing.n_documents, None)
    if rows:
        _write_codes(connection, coder.hasher, rows)
    # After the last come those that changed meanwhile.
    return Step(len(rows), standing.n_documents, rows[-1][0] if rows else 0)


def _write_codes(connection: PostgresConnection, hasher: Hasher, rows: Any) -> None:
    coded = coded_texts(hasher, (original_text(text) for _, text in rows))
    connection.copy_rows(
        "next_codes (place, code, known)",
        (
            (place, bits_of(text.code), text.known)
            for (place, _), text in zip(rows, coded, strict=True)
        ),
    )


def _exchange(connection: PostgresConnection, coder: Coder) -> None:
    connection.run("DROP TABLE codes")
    connection.run(NOT_APPROXIMATE)
    connection.run("ALTER TABLE next_codes RENAME TO codes")
    connection.run(
        "UPDATE state SET model = %s, n_bits = %s, next_model = NULL, approximate = NULL",
        [coder.model, coder.hasher.n_bits],
    )
