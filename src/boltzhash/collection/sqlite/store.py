"""A collection in a folder. SQLite is the truth; codes and words are searched in copies."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from boltzhash.collection.locations import Location
from boltzhash.collection.models import Coder
from boltzhash.collection.sqlite import maintenance, rehashing
from boltzhash.collection.sqlite.codes import DOCUMENTS, PASSAGES, PackedCodes
from boltzhash.collection.sqlite.codes_file import no_rows
from boltzhash.collection.sqlite.codes_following import follow, is_worth_writing, write_file
from boltzhash.collection.sqlite.database import DATABASE, Database, StateRow, file_at, gone
from boltzhash.collection.sqlite.models import load_model, save_model
from boltzhash.collection.sqlite.schema import create_tables
from boltzhash.collection.sqlite.snapshot import Copies, SqliteSnapshot, state_of
from boltzhash.collection.sqlite.words import (
    Added,
    WordFollower,
    WordsAheadError,
    WordSegments,
)
from boltzhash.collection.sqlite.writes import add_rows, delete_rows, upsert_rows
from boltzhash.collection.store import OnBatch, exists_already, is_closed
from boltzhash.corpus.documents import Id
from boltzhash.encoding.coding import Coded
from boltzhash.encoding.model_files import ModelFile
from boltzhash.errors import CollectionError
from boltzhash.hashers import Hasher
from boltzhash.search.segments import DamagedSegmentError
from boltzhash.storage.folders import atomic_folder
from boltzhash.text.analyzer import Analyzer, analyzer_of

_IDLE = 8  # connections that are kept


class SqliteStore:
    """See :class:`boltzhash.collection.store.Store`.

    ``coder`` is given if the collection is to be created, and ``passages`` if its documents are to be
    cut into passages of so many words.
    """

    def __init__(
        self,
        location: Location,
        wait: float,
        coder: Coder | None = None,
        passages: int | None = None,
    ) -> None:
        self.shown = location.shown()
        self.folder = Path(location.url)
        self._wait = wait
        if coder is not None:
            _create(self.folder, coder, passages)
        first = Database(self.folder, wait)
        self._path, self._file = first.path.absolute(), first.file
        self._idle, self._alone = [first], first if first.is_alone else None
        try:
            self.passages = first.state().passage_words
        except BaseException:
            first.close()
            raise
        self._words = WordFollower(self.folder)
        self._copies: Copies | None = None  # of the newest generation that was read
        self._languages: dict[str, str | None] = {}  # of models
        if coder is not None:
            self._languages[coder.model] = coder.hasher.language
        self._following = threading.Lock()  # held while copies catch up, never to search
        self._writing = threading.Lock()
        self._has_written = self._is_closed = False
        self.written_generation: int | None = None

    def close(self) -> None:
        if self._is_closed:
            return
        with self._writing, self._following:
            self._is_closed = True
            if file_at(self._path) == self._file:  # else the files are another collection's
                self._words.close()
                if self._has_written and self._copies is not None:
                    for codes in (self._copies.codes, self._copies.passages):
                        if is_worth_writing(codes):
                            write_file(codes, self.folder)
            while self._idle:
                self._idle.pop().close()

    # Reading

    def snapshot(self) -> SqliteSnapshot:
        database, copies = self._connection(), self._copies
        try:
            row = database.begin()
        except BaseException:
            if database is not self._alone:
                database.close()
            raise
        try:
            if copies is None or copies.codes.version != row.version:
                with self._following:
                    row, copies = self._followed(database)
        except BaseException:
            database.end()
            self.keep(database)
            raise
        return SqliteSnapshot(self, database, row, copies)

    def _connection(self) -> Database:
        if self._is_closed:
            raise is_closed("collection", self.shown)
        if self._alone is not None:
            return self._alone
        try:
            return self._idle.pop()
        except IndexError:
            if file_at(self._path) != self._file:
                raise gone(self._path, self.folder / DATABASE) from None
            database = Database(self.folder, self._wait)
            database.file = self._file
            return database

    def keep(self, database: Database) -> None:
        """Take back a connection."""
        if database is self._alone:
            return
        if self._is_closed or len(self._idle) >= _IDLE:
            database.close()
        else:
            self._idle.append(database)

    def _followed(self, database: Database) -> tuple[StateRow, Copies]:
        """Copies of the newest generation, in whose transaction the database is then."""
        while True:
            database.end()  # another thread may have gone further meanwhile
            row, before = database.begin(), self._copies
            if before is not None and before.codes.version == row.version:
                return row, before
            try:
                words = self._words.base(database, row)
                self._copies = self._copied(database, row, before, words)
                return row, self._copies
            except WordsAheadError:  # another process has written since the transaction began
                continue
            except CollectionError:
                database.refuse_torn()  # then it may not be damage
                raise

    def _copied(
        self, database: Database, row: StateRow, before: Copies | None, base: WordSegments
    ) -> Copies:
        codes = follow(
            None if before is None else before.codes, DOCUMENTS, self.folder, database, row
        )
        if row.passage_words is None:
            passages = PackedCodes(PASSAGES, row.model, row.version, 0, no_rows(1))
        else:
            passages = follow(
                None if before is None else before.passages, PASSAGES, self.folder, database, row
            )
        database.refuse_torn()
        return Copies(codes, passages, base)

    def follow_words(
        self, copies: Copies, database: Database, row: StateRow, words: Analyzer
    ) -> WordSegments:
        """The segments of words of a generation, in whose transaction the database is."""
        with self._following:
            copies.words = self._words.follow(copies.words, database, row, words)
            return copies.words

    def forget_words(self, copies: Copies, error: DamagedSegmentError) -> None:
        """Make the words of a generation again, and not from its files."""
        with self._following:
            copies.words, copies.index = WordSegments(), None
            self._words.forget(error)

    # Writing

    def flush(self) -> None:
        """Put all codes into files, so that the next open is fast."""
        with closing(self.snapshot()) as snapshot:
            write_file(snapshot.copies.codes, self.folder)
            if self.passages is not None:
                write_file(snapshot.copies.passages, self.folder)

    @contextmanager
    def write(self) -> Iterator[SqliteTransaction]:
        with self._writing:
            with self._transaction() as (database, before, after):
                transaction = SqliteTransaction(database, before, after)
                yield transaction
            self.written_generation = after.generation
            self._caught_up(transaction.added, has_deleted=transaction.has_deleted)

    @contextmanager
    def _transaction(self) -> Iterator[tuple[Database, StateRow, StateRow]]:
        with self._free_connection() as database, database.writing() as (before, after):
            yield database, before, after
        self._has_written = True

    @contextmanager
    def _free_connection(self) -> Iterator[Database]:
        database = self._connection()
        try:
            yield database
        finally:
            self.keep(database)

    def _caught_up(self, added: Added, *, has_deleted: bool = False) -> None:
        """After a write: copies catch up, so that the next search does not wait."""
        with self._free_connection() as database:
            database.begin()
            try:
                with self._following:
                    row, copies = self._followed(database)
                    words = analyzer_of(self._language_of(row.model))
                    self._words.catch_up(database, row, words, added)
                    if has_deleted:
                        self._words.forget_all_but(row.n_documents, copies.codes.places())
            finally:
                database.end()
        if has_deleted:
            with self._free_connection() as database:
                maintenance.free_room(database)

    def _language_of(self, model: str) -> str | None:
        if model not in self._languages:
            self.load_model(model)
        return self._languages[model]

    def rehash(self, coder: Coder, batch: int, on_batch: OnBatch | None) -> None:
        self._languages[coder.model] = coder.hasher.language
        rehashing.rehash(self._alone_writing, self.folder, coder, batch, on_batch)
        with self._writing:
            self._caught_up([])

    @contextmanager
    def _alone_writing(self) -> Iterator[tuple[Database, StateRow]]:
        with self._writing, self._transaction() as (database, _, row):
            yield database, row

    # Beside the documents

    def load_model(self, fingerprint: str) -> Hasher:
        hasher = load_model(self.folder, fingerprint)
        self._languages[fingerprint] = hasher.language
        return hasher

    def backup(self, target: Path) -> None:
        with self._free_connection() as database:
            maintenance.backup(database, self.folder, target)

    def save_files(self, name: str, files: Sequence[ModelFile]) -> None:
        with atomic_folder(self.folder / name, f"boltzhash {name}") as fresh:
            for file in files:
                (fresh / file.name).write_bytes(file.contents)

    def load_files(self, name: str) -> list[ModelFile]:
        folder = self.folder / name
        if not folder.is_dir():
            return []
        return [ModelFile.of(path.name, path.read_bytes()) for path in sorted(folder.iterdir())]

    def files_version(self, name: str) -> str | None:
        try:
            found = (self.folder / name).stat()
        except OSError:
            return None
        return f"{found.st_ino} {found.st_mtime_ns}"  # the folder is replaced whole


class SqliteTransaction:
    """See :class:`boltzhash.collection.store.Transaction`."""

    def __init__(self, database: Database, before: StateRow, after: StateRow) -> None:
        self._connection, self._row = database.connection, after
        self.state = state_of(before)
        self.added: Added = []
        self.has_deleted = False

    def add(self, batch: list[Coded]) -> None:
        first = add_rows(self._connection, batch)
        self.added = [(place, coded.document) for place, coded in enumerate(batch, first)]

    def upsert(self, batch: list[Coded]) -> None:
        upsert_rows(self._connection, self._row, batch)

    def delete(self, ids: list[Id]) -> int:
        self.has_deleted = True
        return delete_rows(self._connection, self._row, ids)

    def note_unfinished(self, note: dict[str, Any] | None) -> None:
        kept = json.dumps(note) if note is not None else None
        self._connection.execute("UPDATE state SET unfinished = ?", (kept,))


def _create(folder: Path, coder: Coder, passages: int | None) -> None:
    if (folder / DATABASE).exists():
        raise exists_already(str(folder))
    with atomic_folder(folder, "boltzhash collection") as fresh:
        save_model(fresh, coder)
        maintenance.make_database(
            fresh,
            lambda connection: create_tables(
                connection, model=coder.model, n_bits=coder.hasher.n_bits, passages=passages
            ),
        )
