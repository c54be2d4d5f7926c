"""New codes for a switch to another model in PostgreSQL."""

from __future__ import annotations

from typing import Any

from boltzhash.collection.models import Coder
from boltzhash.collection.postgres.connection import PostgresConnection
from boltzhash.collection.postgres.filters import original_text
from boltzhash.collection.postgres.rows import bits_of
from boltzhash.encoding.coding import coded_texts


def rehash_some(
    connection: PostgresConnection, table: str, coder: Coder, last: int, batch: int
) -> Any:
    """Put new codes of some documents after a place into ``table``; returns their rows."""
    rows = connection.run(
        f"SELECT documents.place, text FROM documents LEFT JOIN {table} AS new USING (place) WHERE "
        "documents.place > %s AND new.place IS NULL ORDER BY documents.place LIMIT %s",
        [last, batch],
    ).fetchall()
    coded = coded_texts(coder.hasher, (original_text(text) for _, text in rows)) if rows else []
    connection.copy_rows(
        f"{table} (place, code, known)",
        (
            (place, bits_of(text.code), text.known)
            for (place, _), text in zip(rows, coded, strict=True)
        ),
    )
    return rows
