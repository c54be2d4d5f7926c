"""Durable collections: documents, their codes and ids; added, overwritten, deleted and searched."""

from boltzhash.collection.collection import Collection
from boltzhash.collection.drift import Drift
from boltzhash.collection.duplicates import Duplicate, DuplicateGroup
from boltzhash.collection.facets import Facet
from boltzhash.collection.snapshot import Snapshot
from boltzhash.collection.unmatched import FilterWarning
from boltzhash.search.hits import Answer, Hit

__all__ = [
    "Answer",
    "Collection",
    "Drift",
    "Duplicate",
    "DuplicateGroup",
    "Facet",
    "FilterWarning",
    "Hit",
    "Snapshot",
]
