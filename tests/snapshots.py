"""Questions to the newest generation of a collection, and statements to its PostgreSQL."""

from __future__ import annotations

from typing import Any

from boltzhash.collection import Collection


class Newest:
    """Has the methods and attributes of a snapshot."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def __getattr__(self, name: str) -> Any:
        with self._collection.snapshot() as now:
            value = getattr(now, name)
        return self._asked(name) if callable(value) else value

    def _asked(self, name: str) -> Any:
        def ask(*args: Any, **how: Any) -> Any:
            with self._collection.snapshot() as now:
                return getattr(now, name)(*args, **how)

        return ask


def run_in(collection: Collection, sql: str, parameters: list[Any] | None = None) -> Any:
    """The cursor of a statement, on a connection that the next snapshot gets."""
    store: Any = collection.store
    with store._connection() as connection:
        return connection.run(sql, parameters)
