"""Durable collections: documents, their codes and ids; added, overwritten, deleted and searched."""

from boltzhash.collection.answers import Match, Matches
from boltzhash.collection.connected import ConnectedCollection
from boltzhash.collection.sqlite.store import Collection

__all__ = ["Collection", "ConnectedCollection", "Match", "Matches"]
