"""The SQLite file of a collection: opening it, its transactions, and its errors in plain words."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints
from urllib.parse import quote

from boltzhash.collection.sqlite.schema import APPLICATION_ID, new_token
from boltzhash.collection.store import Version, check_format_version
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


class StateRow(NamedTuple):
    """The row of ``state``, with the token of its generation."""

    generation: int  # raised by every transaction that writes
    token: int  # random
    n_documents: int
    model: str  # fingerprint of the hasher that made the codes
    n_bits: int
    next_model: str | None  # the one that a rehash is switching to
    changes_since: int  # the log of changes reaches back to this generation
    n_changes: int  # how many entries that log has
    unfinished: str | None  # JSON: where an interrupted add resumes
    passage_words: int | None  # about as many as a passage has, if documents are cut
    n_passages: int

    @property
    def version(self) -> Version:
        return Version(self.generation, self.token)


_TYPES = get_type_hints(StateRow)
_STATE = f"SELECT {', '.join(StateRow._fields)} FROM state JOIN generations USING (generation)"


class Database:
    """One connection. Every transaction that writes is on disk when it is acknowledged.

    ``wait`` is how many seconds a write waits for another process to finish writing.
    """

    def __init__(self, folder: Path, wait: float) -> None:
        self.path = folder / DATABASE
        self.log = self.path.with_name(DATABASE + "-wal")
        self._absolute = self.path.absolute()  # also if the process goes to another folder
        self.wait = wait
        self._users = 0  # of the transaction that reads, if no other connection can be opened
        # SQLite lets one thread in at a time; Python's cache of statements would mix their parameters.
        self.lock = threading.RLock()
        self._rest: tuple[int, ...] | None = None
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

    def begin(self) -> StateRow:
        """Begin to read one committed generation, whatever others write until :meth:`end`."""
        self.check_there()
        with self.lock:
            if self._users == 0:
                if self._rest is not None and self._at_rest() != self._rest:
                    self._open_again()  # now perhaps with the writer's lock
                self.rows("BEGIN")
            self._users += 1
        try:
            return self.state()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        with self.lock, self.plain_errors():
            self._users = max(self._users - 1, 0)
            if self._users == 0 and self.connection.in_transaction:
                self.connection.execute("COMMIT")

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows of a statement that reads, or begins to."""
        try:
            with self.lock:
                return self.connection.execute(sql, parameters).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise _in_plain_words(error, self.path, self.wait) from error
        finally:
            if self._rest is not None:
                self.refuse_torn()

    def refuse_torn(self) -> None:
        """Raise if another process has written to a file that this one cannot lock."""
        if self._rest is not None and self._at_rest() != self._rest:
            raise CollectionBusyError(
                f"{self.path.parent} was written while it was read by a process that may not write to "
                "it, and so cannot lock it. Try again"
            )

    @contextmanager
    def writing(self) -> Iterator[tuple[StateRow, StateRow]]:
        """A transaction that is written whole or not at all, and makes a generation.

        It yields the rows before it and after it.
        """
        with self.plain_errors():
            if self._no_room is not None:
                self._open_again_to_write()
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                self.check_there()
                before = self.state()
                after = before._replace(generation=before.generation + 1, token=new_token())
                self.connection.execute("UPDATE state SET generation = ?", (after.generation,))
                self.connection.execute("INSERT INTO generations VALUES (?, ?)", after.version)
                yield before, after
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
        self.check_there(has_written=True)

    def check_there(self, *, has_written: bool = False) -> None:
        """Raise if the file that was opened is no longer the folder's.

        SQLite does not notice: it goes on in a file that has no name any more.
        """
        if file_at(self._absolute) != self.file:
            raise gone(self._absolute, self.path, has_written=has_written)

    def state(self) -> StateRow:
        (row,) = self.rows(_STATE) or [None]
        if row is None:
            raise CollectionError(f"{self.path} is damaged: it has no state")
        for name, value in zip(StateRow._fields, row, strict=True):
            if not isinstance(value, _TYPES[name]):
                raise CollectionError(f"{self.path} is damaged: its {name} is {value!r}")
        return StateRow(*row)

    def is_past(self, row: StateRow, version: Version) -> bool:
        """Whether what had a version can follow the log of changes to the generation ``row``."""
        if version == row.version:
            return True
        if not row.changes_since <= version.generation < row.generation:
            return False
        return self.rows(
            "SELECT token FROM generations WHERE generation = ?", (version.generation,)
        ) == [(version.token,)]

    @contextmanager
    def plain_errors(self) -> Iterator[None]:
        """SQLite's errors as ours, with the file named; text that is not UTF-8 is damage."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self.refuse_torn()
            raise _in_plain_words(error, self.path, self.wait) from error

    def _open(self) -> None:
        self._rest = None
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

    def _open_again(self) -> None:
        with self.plain_errors():
            self.connection.close()
            self._open()

    def _open_again_to_write(self) -> None:
        """When the disk was full there was only reading; perhaps there is room now."""
        if not self._users:
            self._open_again()
        if self._no_room is not None:
            raise self._no_room

    def _connect(self, how: str, *pragmas: str) -> None:
        self.file = file_at(self._absolute)  # if it is replaced meanwhile, the first use notices
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
            check_same_thread=False,  # see the lock
        )

    def _check_format(self) -> None:
        (application,) = self.connection.execute("PRAGMA application_id").fetchone()
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise CollectionError(f"{self.path} is an SQLite file, but not a collection")
        check_format_version(version, str(self.path))


def file_at(path: Path) -> tuple[int, int] | None:
    """Tells a file from all others while it is open; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def gone(file: Path, path: Path, *, has_written: bool = False) -> CollectionGoneError:
    """The error for a collection whose file is no longer the one that was opened."""
    what = "replaced by another" if file.exists() else "deleted or moved"
    lost = "what was just written may be lost" if has_written else "nothing was written"
    return CollectionGoneError(
        f"{path.parent} was {what} after it was opened; {lost}. Open it again",
        has_written=has_written,
    )


def _in_plain_words(
    error: sqlite3.Error | UnicodeDecodeError, path: Path, wait: float
) -> Exception:
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
