"""Bring codes in memory and in codes.map up to a generation: SQLite is the truth."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from boltzhash.collection.sqlite.codes import Kind, PackedCodes, in_order, joined
from boltzhash.collection.sqlite.codes_file import CodesFile, read_codes_file, write_codes_file
from boltzhash.collection.sqlite.database import Database, StateRow
from boltzhash.collection.sqlite.schema import is_whole_code
from boltzhash.collection.store import Rows
from boltzhash.errors import CollectionError

_FETCH = 10_000
_MANY = 10_000  # codes in memory before they go into a file
_SHARE = 8  # or an eighth of all, if that is more: while many are added the file is seldom written
_AT_START = 10 * _MANY  # a process that has just begun writes it sooner


def follow(
    codes: PackedCodes | None, kind: Kind, folder: Path, database: Database, row: StateRow
) -> PackedCodes:
    """The codes of the generation ``row``, in whose transaction the database is.

    ``codes`` are those of another generation, if there are any; they stay as they are.
    """
    if codes is not None and codes.model == row.model and database.is_past(row, codes.version):
        most = max(_MANY, len(codes) // _SHARE)
    else:
        codes, most = _from_file(kind, folder, database, row), _AT_START
        if codes is None:
            codes = _from_database(kind, folder, database, row)
            most = -1 if kind.count(row) > _MANY else _MANY
    codes = _with_changes(codes, folder, database, row)
    if len(codes) != kind.count(row):
        raise CollectionError(
            f"{folder} is damaged: it counts {kind.count(row)} {kind.name} and has {len(codes)} codes"
        )
    return write_file(codes, folder) if codes.n_changed > most else codes


def is_worth_writing(codes: PackedCodes) -> bool:
    """Whether so much is not in codes.map that a writer puts it there when it closes."""
    return codes.n_changed > _MANY


def write_file(codes: PackedCodes, folder: Path) -> PackedCodes:
    """Put all codes into a new codes.map; returns them mapped."""
    path = folder / codes.kind.file
    contents = CodesFile(codes.model, codes.version, codes.last, codes.rows())
    write_codes_file(path, contents)
    written = read_codes_file(path, codes.model, contents.rows.codes.shape[1])
    if written is not None and written[:3] == contents[:3]:
        contents = written  # else keep them in memory
    return PackedCodes(codes.kind, *contents)


def _from_file(kind: Kind, folder: Path, database: Database, row: StateRow) -> PackedCodes | None:
    file = read_codes_file(folder / kind.file, row.model, row.n_bits // 8)
    if file is None or not database.is_past(row, file.version):
        return None
    return PackedCodes(kind, *file)


def _from_database(kind: Kind, folder: Path, database: Database, row: StateRow) -> PackedCodes:
    with database.plain_errors():
        cursor = database.connection.execute(
            f"SELECT {kind.key}, {kind.columns} FROM {kind.table} ORDER BY {kind.key}"
        )
        rows = _read(cursor, folder, kind, row.n_bits)
    last = int(rows.places[-1]) if len(rows.places) else 0
    return PackedCodes(kind, row.model, row.version, last, rows)


def _with_changes(
    codes: PackedCodes, folder: Path, database: Database, row: StateRow
) -> PackedCodes:
    """With the documents that were overwritten, deleted and added since."""
    kind, model, last = codes.kind, codes.model, codes.last
    if codes.version == row.version:
        return codes
    dropped: set[int] = set()

    def drop(batch: Sequence[Any]) -> list[Any]:
        dropped.update(document for document, *_ in batch)
        return [found for _, *found in batch if found[0] is not None]

    with database.plain_errors():
        changed = database.connection.execute(
            f"SELECT DISTINCT changes.place, {kind.table}.{kind.key}, {kind.columns} FROM changes "
            f"LEFT JOIN {kind.table} ON {kind.table}.{kind.key} BETWEEN changes.place << {kind.bits} "
            f"AND (changes.place + 1 << {kind.bits}) - 1 WHERE generation > ? AND changes.place <= ?",
            (codes.version.generation, last >> kind.bits),
        )
        overwritten = _read(changed, folder, kind, row.n_bits, drop)
        added = database.connection.execute(
            f"SELECT {kind.key}, {kind.columns} FROM {kind.table} WHERE {kind.key} > ? "
            f"ORDER BY {kind.key}",
            (last,),
        )
        new = _read(added, folder, kind, row.n_bits)
    stale, kept = codes.stale, codes.in_memory
    if dropped:
        documents = np.array(sorted(dropped), dtype=np.int64)
        fresh = ~np.isin(kept.places >> kind.bits, documents)
        kept = Rows(kept.places[fresh], kept.codes[fresh], kept.known[fresh])
        if len(codes.mapped.places):
            stale = np.zeros(len(codes.mapped.places), bool) if stale is None else stale.copy()
            stale[codes.mapped_rows_of(documents)] = True
    in_memory = joined(kept, overwritten, new)
    if len(overwritten.places):
        in_memory = in_order(in_memory)
    last = int(new.places[-1]) if len(new.places) else last
    return PackedCodes(kind, model, row.version, last, codes.mapped, stale, in_memory, codes.near)


def _read(
    cursor: sqlite3.Cursor,
    folder: Path,
    kind: Kind,
    n_bits: int,
    rows_of: Callable[[Sequence[Any]], Sequence[Any]] = lambda batch: batch,
) -> Rows:
    """The rows of a cursor, each compared with its checksum, a few thousand at a time."""
    places, codes, known = array("q"), bytearray(), bytearray()
    while batch := cursor.fetchmany(_FETCH):
        rows = rows_of(batch)
        for found in rows:
            if not is_whole_code(*found, n_bits=n_bits):
                number = found[0] >> kind.bits
                raise CollectionError(f"{folder} is damaged: the code of document number {number}")
        places.extend(found[0] for found in rows)
        codes += b"".join([found[1] for found in rows])
        known += bytes([found[2] for found in rows])
    return Rows(
        np.array(places, dtype=np.int64),
        np.frombuffer(codes, np.uint8).reshape(len(places), n_bits // 8),
        np.frombuffer(known, np.bool_),
    )
