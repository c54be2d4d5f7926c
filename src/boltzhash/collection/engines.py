"""The one table from the kind of a location to the store that keeps a collection there."""

from __future__ import annotations

from boltzhash.collection.locations import FOLDER, Location
from boltzhash.collection.milvus.store import MilvusStore
from boltzhash.collection.models import Coder
from boltzhash.collection.postgres.store import PostgresStore
from boltzhash.collection.sqlite.store import SqliteStore
from boltzhash.collection.store import Store

STORES: dict[str, type[SqliteStore] | type[PostgresStore] | type[MilvusStore]] = {
    FOLDER: SqliteStore,
    "postgresql": PostgresStore,
    "milvus": MilvusStore,
}


def open_store(location: Location, wait: float) -> Store:
    """The store of the collection at a location."""
    return STORES[location.kind](location, wait)


def create_store(location: Location, coder: Coder, wait: float) -> Store:
    """The store of a new, empty collection whose codes come from ``coder``."""
    return STORES[location.kind](location, wait, coder)
