"""The collection that is served: opened by the first request, and again after it was replaced."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from boltzhash.collection import Collection, Snapshot
from boltzhash.errors import CollectionGoneError, NoSuchCollectionError
from boltzhash.server.refusals import NoCollectionError, as_refusal
from boltzhash.server.settings import WRITE_WAIT

Result = TypeVar("Result")


class Opened:
    """One collection for all threads. Errors become refusals.

    ``on_gone`` is called when the collection turns out to have been deleted or replaced.
    """

    def __init__(self, location: str, on_gone: Callable[[], None]) -> None:
        self._location = location
        self._on_gone = on_gone
        self._lock = threading.Lock()
        self._collection: Collection | None = None

    def read(self, work: Callable[[Snapshot], Result]) -> Result:
        """Return what ``work`` does with the newest generation of the collection."""

        def read(collection: Collection) -> Result:
            with collection.snapshot() as snapshot:
                return work(snapshot)

        return self.write(read)

    def write(self, work: Callable[[Collection], Result]) -> Result:
        try:
            collection = self._open()
            try:
                return work(collection)
            except CollectionGoneError as error:
                self._let_go(collection)
                if error.has_written:
                    raise
            return work(self._open())
        except Exception as error:
            raise as_refusal(error) from error

    def _open(self) -> Collection:
        with self._lock:
            if self._collection is None:
                try:
                    self._collection = Collection.open(self._location, wait=WRITE_WAIT)
                except NoSuchCollectionError as error:
                    raise NoCollectionError from error
            return self._collection

    def _let_go(self, gone: Collection) -> None:
        """Close a collection that was deleted or replaced, and forget all answers about it."""
        with self._lock:
            if self._collection is not gone:
                return  # another thread was faster
            self._collection = None
        gone.close()
        self._on_gone()

    def close(self) -> None:
        if self._collection is not None:
            self._collection.close()
