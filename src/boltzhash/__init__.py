"""boltzhash: short binary codes for documents, and search by Hamming distance.

The names below are imported when they are first used, so that each costs only what it needs itself.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from boltzhash.version import __version__

if TYPE_CHECKING:
    from boltzhash.collection import Collection
    from boltzhash.corpus import read_corpus
    from boltzhash.hashers import (
        BMSH,
        GMSH,
        ITQ,
        LSH,
        NASH,
        RBSH,
        VDSH,
        CorrSH,
        Doc2hash,
        Hasher,
        SelfTaughtHashing,
        SpectralHashing,
        StackedRBM,
        load,
    )
    from boltzhash.search import ExactIndex

__all__ = [
    "BMSH",
    "GMSH",
    "ITQ",
    "LSH",
    "NASH",
    "RBSH",
    "VDSH",
    "Collection",
    "CorrSH",
    "Doc2hash",
    "ExactIndex",
    "Hasher",
    "SelfTaughtHashing",
    "SpectralHashing",
    "StackedRBM",
    "__version__",
    "load",
    "read_corpus",
]

_ROOMS = {"Collection": "collection", "ExactIndex": "search", "read_corpus": "corpus"}

if not TYPE_CHECKING:  # a type checker would take every name for one that is here

    def __getattr__(name: str) -> object:
        if name in __all__:
            room = import_module(f"boltzhash.{_ROOMS.get(name, 'hashers')}")
            value = globals()[name] = getattr(room, name)
            return value
        if not name.startswith("_") and find_spec(f"boltzhash.{name}") is not None:
            return import_module(f"boltzhash.{name}")  # as in boltzhash.errors.ModelError
        raise AttributeError(f"module 'boltzhash' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
