"""Rows written to the tables of a collection, inside a transaction that the caller holds."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from boltzhash.collection.sqlite.database import StateRow
from boltzhash.collection.sqlite.schema import (
    code_checksum,
    document_checksum,
    field_rows,
    passages_of,
)
from boltzhash.collection.store import already_there, twice_in_batch
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.encoding.coding import Coded, CodedPassage
from boltzhash.threads import in_batches

_DELETE_FIELD = "DELETE FROM fields WHERE field = ? AND value = ? AND place = ?"
_DELETED_AT_ONCE = 50_000

_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def add_rows(connection: sqlite3.Connection, batch: Sequence[Coded]) -> int:
    """Insert new documents; all are refused if an id is taken. Returns the place of the first."""
    first = _last_place(connection) + 1
    try:
        connection.executemany(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?)",
            (_document_row(place, coded.document) for place, coded in enumerate(batch, first)),
        )
    except sqlite3.IntegrityError:
        seen: set[Id] = set()
        for place, coded in enumerate(batch, first):
            id_ = coded.document.id
            if id_ in seen:
                raise twice_in_batch(id_) from None
            if _find(connection, id_) not in (None, place):
                raise already_there(id_) from None
            seen.add(id_)
        raise
    connection.executemany(
        "INSERT INTO codes VALUES (?, ?, ?, ?)",
        (code_row(place, coded.code, coded.known) for place, coded in enumerate(batch, first)),
    )
    connection.executemany(
        "INSERT INTO fields VALUES (?, ?, ?)",
        (
            row
            for place, coded in enumerate(batch, first)
            for row in field_rows(coded.document.metadata or {}, place)
        ),
    )
    _add_passages(connection, enumerate((coded.passages for coded in batch), first))
    connection.execute("UPDATE state SET n_documents = n_documents + ?", (len(batch),))
    return first


def upsert_rows(connection: sqlite3.Connection, state: StateRow, batch: Sequence[Coded]) -> None:
    """Insert new documents, or new contents for an id that exists, which keeps its place."""
    changed = []
    for coded in batch:
        place = _find(connection, coded.document.id)
        if place is None:
            add_rows(connection, [coded])
            continue
        _forget_fields(connection, place)
        _, *contents = _document_row(place, coded.document)
        connection.execute(
            "UPDATE documents SET id = ?, text = ?, metadata = ?, checksum = ? WHERE place = ?",
            (*contents, place),
        )
        connection.execute(
            "REPLACE INTO codes VALUES (?, ?, ?, ?)", code_row(place, coded.code, coded.known)
        )
        connection.execute("DELETE FROM next_codes WHERE place = ?", (place,))
        if state.passage_words is not None:
            _forget_passages(connection, place)
        _add_passages(connection, [(place, coded.passages)])
        connection.executemany(
            "INSERT INTO fields VALUES (?, ?, ?)", field_rows(coded.document.metadata or {}, place)
        )
        changed.append(place)
    _log_changes(connection, state, changed)


def delete_rows(connection: sqlite3.Connection, state: StateRow, ids: Iterable[Id]) -> int:
    """Delete documents; returns how many of the ids existed."""
    found = {_find(connection, id_) for id_ in ids}
    gone = sorted(place for place in found if place is not None)
    for some in in_batches(gone, _DELETED_AT_ONCE):
        fields = [row for place in some for row in _stored_fields(connection, place)]
        fields.sort(key=_as_in_the_table)
        connection.executemany(_DELETE_FIELD, fields)
        for table in ("documents", "codes", "next_codes"):
            places = ((place,) for place in some)
            connection.executemany(f"DELETE FROM {table} WHERE place = ?", places)
        for place in some if state.passage_words is not None else ():
            _forget_passages(connection, place)
    connection.execute("UPDATE state SET n_documents = n_documents - ?", (len(gone),))
    _log_changes(connection, state, gone)
    return len(gone)


def code_row(place: int, code: bytes, known: bool) -> tuple[int, bytes, int, int]:
    return place, code, int(known), code_checksum(place, code, int(known))


def passage_rows(
    place: int, passages: Iterable[CodedPassage]
) -> Iterator[tuple[int, bytes, int, int, int, int]]:
    for number, (span, code, known) in enumerate(passages, passages_of(place)[0]):
        yield number, code, int(known), code_checksum(number, code, int(known), *span), *span


def start_changes_anew(connection: sqlite3.Connection, generation: int) -> None:
    """Empty the log of changes: readers that are behind map all codes again."""
    connection.execute("DELETE FROM changes")
    connection.execute("DELETE FROM generations WHERE generation < ?", (generation,))
    connection.execute("UPDATE state SET changes_since = ?, n_changes = 0", (generation,))


def _log_changes(connection: sqlite3.Connection, state: StateRow, places: list[int]) -> None:
    """Note the places; if that is more than a reader would want to go through, start over."""
    if state.n_changes + len(places) > max(10_000, state.n_documents // 4):
        start_changes_anew(connection, state.generation)
        return
    connection.executemany(
        "INSERT OR IGNORE INTO changes VALUES (?, ?)", ((state.generation, p) for p in places)
    )
    connection.execute("UPDATE state SET n_changes = n_changes + ?", (len(places),))


def _add_passages(
    connection: sqlite3.Connection, passages: Iterable[tuple[int, Sequence[CodedPassage]]]
) -> None:
    """Of documents, by their places; nothing if the collection has no passages."""
    rows = [row for place, own in passages for row in passage_rows(place, own)]
    if rows:
        connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("UPDATE state SET n_passages = n_passages + ?", (len(rows),))


def _forget_passages(connection: sqlite3.Connection, place: int) -> None:
    own = passages_of(place)
    connection.execute("DELETE FROM next_passages WHERE passage BETWEEN ? AND ?", own)
    gone = connection.execute("DELETE FROM passages WHERE passage BETWEEN ? AND ?", own).rowcount
    connection.execute("UPDATE state SET n_passages = n_passages - ?", (gone,))


def _document_row(place: int, document: Document) -> tuple[int, Id, str, str, int]:
    metadata = _as_json(document.metadata or {})
    checksum = document_checksum(document.id, document.text, metadata)
    return place, document.id, document.text, metadata, checksum


def _find(connection: sqlite3.Connection, id_: Id) -> int | None:
    row = connection.execute("SELECT place FROM documents WHERE id = ?", (id_,)).fetchone()
    return row[0] if row is not None else None


def _last_place(connection: sqlite3.Connection) -> int:
    """The last place that was ever given out."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'documents'").fetchone()
    return row[0] if row is not None else 0


def _forget_fields(connection: sqlite3.Connection, place: int) -> None:
    connection.executemany(_DELETE_FIELD, _stored_fields(connection, place))


def _stored_fields(connection: sqlite3.Connection, place: int) -> Iterator[tuple[str, Any, int]]:
    (metadata,) = connection.execute(
        "SELECT metadata FROM documents WHERE place = ?", (place,)
    ).fetchone()
    return field_rows(json.loads(metadata), place)


def _as_in_the_table(row: tuple[str, Any, int]) -> tuple[str, str, Any, int]:
    """Rows that lie near each other are deleted together, so a page is written once."""
    field, value, place = row
    kind = "" if isinstance(value, int | float) else type(value).__name__
    return field, kind, value, place
