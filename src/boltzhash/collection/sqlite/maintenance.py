"""Maintaining a collection: making its database, what it costs, whether it is intact, copies of it."""

from __future__ import annotations

import json
import logging
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from boltzhash.collection.sqlite.codes_file import CODES_FILE, PASSAGES_FILE
from boltzhash.collection.sqlite.database import DATABASE, LOG_BYTES, Database, StateRow
from boltzhash.collection.sqlite.models import MODELS, load_model, model_folder
from boltzhash.collection.sqlite.reads import all_documents
from boltzhash.collection.sqlite.schema import PASSAGE_BITS, field_rows, is_whole_code
from boltzhash.collection.sqlite.word_files import words_bytes
from boltzhash.collection.store import Counts, Rows
from boltzhash.errors import CollectionError
from boltzhash.storage.folders import atomic_folder

_MANY_PAGES = 16_384

_log = logging.getLogger("boltzhash")


def make_database(folder: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    with closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN")
        fill(connection)
        connection.execute("COMMIT")


def counts(database: Database, row: StateRow) -> Counts:
    """Figures of :meth:`Snapshot.stats` besides the number of documents."""
    ((unknown,),) = database.rows("SELECT count(*) FROM codes WHERE known = 0")
    ((rehashed,),) = database.rows("SELECT count(*) FROM next_codes")
    return Counts(unknown, rehashed, row.n_passages)


def sizes(database: Database, folder: Path) -> dict[str, int]:
    """Bytes in total, and by table if this SQLite can tell."""
    tables = _bytes_by_table(database)
    (pages,) = database.connection.execute("PRAGMA page_count").fetchone()
    (page_size,) = database.connection.execute("PRAGMA page_size").fetchone()
    return {
        "database": pages * page_size,
        **({} if tables is None else tables),
        "codes_file": _size(folder / CODES_FILE) + _size(folder / PASSAGES_FILE),
        "words_files": words_bytes(folder),
        "models": sum(_size(path) for path in (folder / MODELS).rglob("*") if path.is_file()),
    }


def _bytes_by_table(database: Database) -> dict[str, int] | None:
    try:
        rows = database.connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name")
        size = dict(rows.fetchall())
    except sqlite3.OperationalError:
        return None  # an SQLite without dbstat
    return {
        "documents": size.get("documents", 0),
        "codes": sum(
            size.get(name, 0) for name in ("codes", "next_codes", "passages", "next_passages")
        ),
        "index": size.get("fields", 0) + size.get("sqlite_autoindex_documents_1", 0),
    }


def free_room(database: Database) -> None:
    """Give back what deleted documents took, if it is most of the file, and a log that has grown long.

    That takes as long as writing what is left, so less than it took to write what is gone. If others
    are reading or writing, whoever deletes next does it.
    """
    (free,) = database.connection.execute("PRAGMA freelist_count").fetchone()
    (pages,) = database.connection.execute("PRAGMA page_count").fetchone()
    try:
        database.connection.execute("PRAGMA busy_timeout = 0")
        if free >= _MANY_PAGES and 2 * free >= pages:
            database.connection.execute("VACUUM")
        if _size(database.log) > LOG_BYTES:
            database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.OperationalError as error:  # another process writes, or the disk is full
        _log.info("%s keeps the room of what was deleted: %s", database.path, error)
    finally:
        database.connection.execute(f"PRAGMA busy_timeout = {int(1000 * database.wait)}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def check(database: Database, folder: Path, state: StateRow, mapped: Rows) -> None:
    """Raise :class:`CollectionError` at the first thing that is not as it was written."""
    load_model(folder, state.model)
    (verdict, *_) = database.connection.execute("PRAGMA integrity_check").fetchone()
    if verdict != "ok":
        raise CollectionError(f"{database.path} is damaged: {verdict}")
    n_documents = sum(1 for _ in all_documents(database))  # each compared with its checksum
    if n_documents != state.n_documents:
        raise CollectionError(
            f"{database.path} is damaged: it counts {state.n_documents} documents and has "
            f"{n_documents}"
        )
    _check_codes(database, state, mapped)
    _check_fields(database)


def _check_codes(database: Database, state: StateRow, mapped: Rows) -> None:
    rows = database.connection.execute(
        "SELECT documents.place, code, known, codes.checksum FROM documents "
        "LEFT JOIN codes USING (place) ORDER BY documents.place"
    )
    n = 0
    for n, (place, code, known, checksum) in enumerate(rows, start=1):
        if not is_whole_code(place, code, known, checksum, n_bits=state.n_bits):
            raise CollectionError(f"{database.path} is damaged: the code of number {place}")
        here = (int(mapped.places[n - 1]), mapped.codes[n - 1].tobytes(), mapped.known[n - 1])
        if here != (place, code, known):
            raise CollectionError(f"the codes in memory of number {place} are not those on disk")
    (n_codes,) = database.connection.execute("SELECT count(*) FROM codes").fetchone()
    if n_codes != n:
        raise CollectionError(f"{database.path} is damaged: {n_codes} codes of {n} documents")


def check_passages(database: Database, state: StateRow, mapped: Rows) -> None:
    """Raise if passages do not cover their documents, or are not as they were written."""
    numbers = iter(zip(mapped.places.tolist(), mapped.codes, mapped.known.tolist(), strict=True))
    covered: dict[int, int] = {}  # characters of each document
    for row in database.connection.execute("SELECT * FROM passages ORDER BY passage"):
        number, code, known, _, start, stop = row
        place = number >> PASSAGE_BITS
        follows = number == place << PASSAGE_BITS or place in covered
        if not is_whole_code(*row, n_bits=state.n_bits) or not follows:
            raise CollectionError(f"{database.path} is damaged: a passage of number {place}")
        if start != covered.get(place, 0):
            raise CollectionError(f"{database.path} is damaged: a gap in number {place}")
        here = next(numbers, None)
        if here is None or (here[0], here[1].tobytes(), here[2]) != (number, code, known):
            raise CollectionError(f"the codes in memory of number {place} are not those on disk")
        covered[place] = stop
    lengths = {
        place: len(text)
        for place, text in database.connection.execute("SELECT place, text FROM documents")
    }
    if covered != lengths:
        raise CollectionError(f"{database.path} is damaged: passages do not cover the documents")


def _check_fields(database: Database) -> None:
    n_expected = 0
    for place, metadata in database.connection.execute("SELECT place, metadata FROM documents"):
        for row in field_rows(json.loads(metadata), place):
            n_expected += 1
            found = database.connection.execute(
                "SELECT 1 FROM fields WHERE field = ? AND value = ? AND place = ?", row
            ).fetchone()
            if found is None:
                raise CollectionError(
                    f"{database.path} is damaged: field {row[0]!r} of number {place} is not in the "
                    "index of filters"
                )
    (n_fields,) = database.connection.execute("SELECT count(*) FROM fields").fetchone()
    if n_fields != n_expected:
        raise CollectionError(
            f"{database.path} is damaged: the index of filters has {n_fields} rows for "
            f"{n_expected} fields"
        )


def backup(database: Database, folder: Path, target: Path) -> None:
    """A copy of the last committed generation, with its models, in a new folder."""
    with atomic_folder(target, "boltzhash collection") as fresh:
        try:
            with database.plain_errors():
                database.connection.execute("VACUUM INTO ?", (str(fresh / DATABASE),))
        except OSError as error:  # it is the copy that could not be written
            raise OSError(error.errno, error.strerror, str(target)) from error
        (fresh / MODELS).mkdir()
        with closing(Database(fresh, database.wait)) as copy:
            state = copy.state()
        for model in filter(None, (state.model, state.next_model)):
            shutil.copytree(model_folder(folder, model), model_folder(fresh, model))
        load_model(fresh, state.model)
