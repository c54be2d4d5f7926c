"""The collection that is served: opened by the first request, and again after it was replaced."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from boltzhash.collection import Collection
from boltzhash.errors import CollectionGoneError, NoSuchCollectionError
from boltzhash.server.refusals import NoCollectionError, as_refusal
from boltzhash.server.settings import WRITE_WAIT

Result = TypeVar("Result")


class Opened:
    """Each thread has a connection of its own. Errors become refusals.

    ``on_gone`` is called when the collection turns out to have been deleted or replaced.
    """

    def __init__(self, location: str, on_gone: Callable[[], None]) -> None:
        self._location = location
        self._on_gone = on_gone
        self._own = threading.local()
        self._opened: list[Collection] = []

    def read(self, work: Callable[[Collection], Result]) -> Result:
        """Return what ``work`` does with one generation of the collection."""
        return self.write(lambda c: c.in_one_generation(lambda: work(c)))

    def write(self, work: Callable[[Collection], Result]) -> Result:
        try:
            try:
                return work(self._collection())
            except CollectionGoneError as error:
                self._let_go()
                if error.has_written:
                    raise
            return work(self._collection())
        except Exception as error:
            raise as_refusal(error) from error

    def _collection(self) -> Collection:
        collection: Collection | None = getattr(self._own, "collection", None)
        if collection is None:
            try:
                collection = Collection.open(self._location, wait=WRITE_WAIT)
            except NoSuchCollectionError as error:
                raise NoCollectionError from error
            self._own.collection = collection
            self._opened.append(collection)
        return collection

    def _let_go(self) -> None:
        """Close a collection that was deleted or replaced, and forget all answers about it."""
        gone = self._own.collection
        self._own.collection = None
        self._opened.remove(gone)
        gone.close()
        self._on_gone()

    def close(self) -> None:
        for collection in self._opened:
            collection.close()
