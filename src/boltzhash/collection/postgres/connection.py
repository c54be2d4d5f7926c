"""A connection to PostgreSQL: its transactions, and its errors as ours, without the URL's secrets."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from boltzhash.collection.locations import Location
from boltzhash.errors import CollectionBusyError, CollectionError, needs_extra

_VECTOR = (
    "SELECT nspname FROM pg_extension "
    "JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'vector'"
)


class PostgresConnection:
    """A connection whose statements find the tables of the schema that the location names."""

    def __init__(self, location: Location, wait: float) -> None:
        try:
            self._psycopg: Any = importlib.import_module("psycopg")
        except ImportError:
            raise needs_extra("a collection in PostgreSQL", "psycopg", "postgres") from None
        self._location = location
        self._name = location.name
        self.shown = location.shown()
        self._wait = wait
        self.psycopg = self._connected()

    def _connected(self) -> Any:
        with self.plain_errors():
            connection = self._psycopg.connect(self._location.url, autocommit=True)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _prepare(self, connection: Any) -> None:
        milliseconds = max(1, round(1000 * self._wait))  # 0 would be forever
        connection.execute(f"SET lock_timeout = {milliseconds}".encode())
        row = connection.execute(_VECTOR).fetchone()
        beside = f', "{row[0]}"' if row is not None else ""
        connection.execute(f'SET search_path = "{self._name}"{beside}'.encode())

    def close(self) -> None:
        self.psycopg.close()

    def run(
        self, sql: str, parameters: Iterable[Any] | None = None, *, binary: bool = False
    ) -> Any:
        """The cursor of a statement; ``binary`` is faster where it returns many bytes."""
        values = tuple(parameters) if parameters is not None else None
        with self.plain_errors():
            return self.psycopg.execute(sql.encode(), values, binary=binary)

    def locked(self, table: str) -> bool:
        """Keep a table from being dropped while the transaction lasts; False if it was."""
        try:
            with self.plain_errors(self._psycopg.errors.UndefinedTable):
                self.psycopg.execute(f"LOCK TABLE {table} IN ACCESS SHARE MODE".encode())
        except self._psycopg.errors.UndefinedTable:
            return False
        return True

    def copy_rows(
        self, target: str, rows: Iterable[tuple[Any, ...]], types: Sequence[str] = ()
    ) -> None:
        """Insert rows the fast way; ``target`` is a table with its columns.

        With the ``types`` of the columns it is faster still where they hold many bytes.
        """
        statement = f"COPY {target} FROM STDIN{' (FORMAT BINARY)' if types else ''}"
        with self.psycopg.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            if types:
                copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    @contextmanager
    def transaction(self, kind: str = "") -> Iterator[None]:
        with self.plain_errors():
            self.run(f"BEGIN {kind}")
            try:
                yield
                self.run("COMMIT")
            except BaseException:
                if not self.psycopg.closed:
                    self.psycopg.rollback()
                raise

    @contextmanager
    def plain_errors(self, *but: type[Exception]) -> Iterator[None]:
        """psycopg's errors as ours, with the collection named and nothing else of the URL."""
        errors = self._psycopg.errors
        try:
            yield
        except but:
            raise
        except errors.LockNotAvailable:
            raise CollectionBusyError(
                f"{self.shown}: another client has been writing for {self._wait:g} s; nothing was "
                "changed here. Try again, or open the collection with a longer wait"
            ) from None
        except errors.InsufficientPrivilege as error:
            raise PermissionError(f"{self.shown}: {self._told(error)}") from None
        except (self._psycopg.OperationalError, self._psycopg.InterfaceError) as error:
            raise ConnectionError(f"{self.shown}: {self._told(error)}") from None
        except self._psycopg.Error as error:
            raise CollectionError(f"{self.shown}: {self._told(error)}") from None

    def _told(self, error: Exception) -> str:
        return self._location.without_secrets(str(error)).strip()
