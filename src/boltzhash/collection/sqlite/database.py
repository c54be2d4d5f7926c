"""The SQLite file of a collection: opening it, its transactions, and its errors in plain words."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, get_type_hints
from urllib.parse import quote

from boltzhash.collection.sqlite.schema import APPLICATION_ID
from boltzhash.collection.store import check_format_version
from boltzhash.errors import (
    CollectionBusyError,
    CollectionError,
    CollectionGoneError,
    NoSuchCollectionError,
)

DATABASE = "collection.sqlite"

_CACHE_KIB = 64 * 1024
# Documents touch pages all over the index of filters, the same ones again and again while many are
# added: a longer log is copied into the database less often. It is cut back to this length afterwards.
_LOG_PAGES = 16_384
LOG_BYTES = 4096 * _LOG_PAGES

# What SQLite says if it cannot make the small file beside the database that its locks are in.
_NO_ROOM = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
)


def is_database_in(folder: str | Path) -> bool:
    """Whether a collection is in the folder."""
    return (Path(folder) / DATABASE).is_file()


class State(NamedTuple):
    """Where the collection stands: the row of ``state``."""

    generation: int  # raised by every transaction that writes
    n_documents: int
    model: str  # fingerprint of the hasher that made the codes
    n_bits: int
    next_model: str | None  # the one that a rehash is switching to
    changes_since: int  # the log of changes reaches back to this generation
    n_changes: int  # how many entries that log has
    indexing: str | None  # what an interrupted add has to resume from
    passage_words: int | None  # about as many as a passage has, if documents are cut
    n_passages: int


_TYPES = get_type_hints(State)
_SELECT = f"SELECT {', '.join(State._fields)} FROM state"


class Database:
    """One connection. Every transaction that writes is on disk when it is acknowledged.

    ``wait`` is how many seconds a write waits for another process to finish writing.
    """

    def __init__(self, folder: Path, wait: float) -> None:
        self.path = folder / DATABASE
        self.log = self.path.with_name(DATABASE + "-wal")
        self._absolute = self.path.absolute()  # also if the process goes to another folder
        self.wait = wait
        if not is_database_in(folder):
            kind = "folder" if folder.is_dir() else "such path"
            raise NoSuchCollectionError(
                f"{folder} is not a collection: no {DATABASE} in it (no {kind})"
            )
        with self.plain_errors():
            self._open()

    def close(self) -> None:
        with self.plain_errors():
            self.connection.close()

    @contextmanager
    def reading(self) -> Iterator[State]:
        """One committed generation, whatever others write meanwhile."""
        self._check_there()
        with self.plain_errors(), self._unlocked_reading():
            try:
                self.connection.execute("BEGIN")
                yield self.state()
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("COMMIT")

    @contextmanager
    def _unlocked_reading(self) -> Iterator[None]:
        """If this process cannot lock the file: see whether others write, and refuse a torn read."""
        if self._rest is None:
            yield
            return
        if self._at_rest() != self._rest:
            self.connection.close()
            self._open()  # now perhaps with the writer's lock
        try:
            yield
        except (sqlite3.Error, CollectionError):
            self._refuse_torn()  # then it may not be damage
            raise
        self._refuse_torn()

    def _refuse_torn(self) -> None:
        if self._rest is not None and self._at_rest() != self._rest:
            raise CollectionBusyError(
                f"{self.path.parent} was written while it was read by a process that may not write to "
                "it, and so cannot lock it. Try again"
            )

    @contextmanager
    def writing(self) -> Iterator[State]:
        """A transaction that is written whole or not at all, and raises the generation.

        The state that it yields has the generation that holds once it is committed.
        """
        with self.plain_errors():
            if self._no_room is not None:
                self._open_again_to_write()
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                self._check_there()
                self.connection.execute("UPDATE state SET generation = generation + 1")
                yield self.state()
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
        self._check_there(has_written=True)

    def is_there(self) -> bool:
        """Whether what was opened is still what the folder has.

        SQLite does not notice if not: it goes on in a file that has no name any more.
        """
        return _file_at(self._absolute) == self._file

    def _check_there(self, *, has_written: bool = False) -> None:
        if self.is_there():
            return
        what = "replaced by another" if self._absolute.exists() else "deleted or moved"
        lost = "what was just written may be lost" if has_written else "nothing was written"
        raise CollectionGoneError(
            f"{self.path.parent} was {what} after it was opened; {lost}. Open it again",
            has_written=has_written,
        )

    def state(self) -> State:
        row = self.connection.execute(_SELECT).fetchone()
        if row is None:
            raise CollectionError(f"{self.path} is damaged: it has no state")
        for name, value in zip(State._fields, row, strict=True):
            if not isinstance(value, _TYPES[name]):
                raise CollectionError(f"{self.path} is damaged: its {name} is {value!r}")
        return State(*row)

    @contextmanager
    def plain_errors(self) -> Iterator[None]:
        """SQLite's errors as ours, with the file named."""
        try:
            yield
        except sqlite3.Error as error:
            raise _in_plain_words(error, self.path, self.wait) from error
        except UnicodeDecodeError as error:  # text from SQLite that is not UTF-8
            raise CollectionError(f"{self.path} is damaged: {error}") from error

    def _open(self) -> None:
        self._rest: tuple[int, ...] | None = None
        self._no_room: sqlite3.Error | None = None
        self.is_alone = False  # no other connection can be opened
        if os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK):
            try:
                self._connect(
                    "mode=rw",
                    "journal_mode = WAL",
                    "synchronous = FULL",
                    f"wal_autocheckpoint = {_LOG_PAGES}",
                    f"journal_size_limit = {LOG_BYTES}",
                )
                return
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorcode", None) not in _NO_ROOM:
                    raise
                self._no_room = error  # what is there can still be read
        self._rest = self._at_rest()
        if self._rest is not None:
            self._connect("immutable=1")
        elif self._no_room is not None:
            # A log has to be read as well. Alone, SQLite can do that without a file for locks.
            self.is_alone = True
            self._connect("mode=rw", "locking_mode = EXCLUSIVE")
        else:  # without write permission the only lock file there can be is another writer's
            self._connect("mode=ro")

    def _open_again_to_write(self) -> None:
        """When the disk was full there was only reading; perhaps there is room now."""
        self.connection.close()
        self._open()
        if self._no_room is not None:
            raise self._no_room

    def _connect(self, how: str, *pragmas: str) -> None:
        self._file = _file_at(self._absolute)  # if it is replaced meanwhile, the first use notices
        self.connection = self._connected(f"file:{quote(str(self._absolute))}?{how}")
        try:
            for pragma in (*pragmas, f"cache_size = -{_CACHE_KIB}"):
                self.connection.execute(f"PRAGMA {pragma}")
            self._check_format()
        except BaseException:
            self.connection.close()
            raise

    def _at_rest(self) -> tuple[int, ...] | None:
        """What changes with every write to the file; None while there is a log beside it."""
        if self.log.exists() and self.log.stat().st_size > 0:
            return None
        found = self.path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _connected(self, address: str) -> sqlite3.Connection:
        return sqlite3.connect(
            address,
            uri=True,
            timeout=self.wait,
            isolation_level=None,
            check_same_thread=False,  # the collection has a lock of its own
        )

    def _check_format(self) -> None:
        (application,) = self.connection.execute("PRAGMA application_id").fetchone()
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise CollectionError(f"{self.path} is an SQLite file, but not a collection")
        check_format_version(version, str(self.path))
        row = self.connection.execute("SELECT passage_words FROM state").fetchone()
        self.passage_words: int | None = row[0] if row is not None else None  # never changes


def _file_at(path: Path) -> tuple[int, int] | None:
    """Tells a file from all others while it is open; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _in_plain_words(error: sqlite3.Error, path: Path, wait: float) -> Exception:
    extended = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    code = extended & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return CollectionBusyError(
            f"{path.parent}: another process has been writing for {wait:g} s; nothing was changed "
            "here. Try again, or open the collection with a longer wait"
        )
    if code == sqlite3.SQLITE_NOMEM:
        return MemoryError(f"{path}: SQLite has no memory left")
    if code == sqlite3.SQLITE_TOOBIG:
        return ValueError(f"{path}: a text, or an answer, is larger than SQLite can hold")
    if code == sqlite3.SQLITE_FULL or extended == sqlite3.SQLITE_IOERR_SHMSIZE:
        return OSError(errno.ENOSPC, "no space left; the collection is as it was", str(path))
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return PermissionError(errno.EACCES, "the collection cannot be written", str(path))
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        return OSError(errno.EIO, f"cannot be read or written ({error})", str(path))
    return CollectionError(f"{path} is damaged: {error}")
