"""boltzhash: short binary codes for documents, and search by Hamming distance.

Public names are imported when they are first used, so that each costs only what it needs itself. The
hashers among them are those of the table in :mod:`boltzhash.hashers`; beside them are their settings.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from boltzhash.version import __version__ as __version__

if TYPE_CHECKING:
    from boltzhash.collection import Collection as Collection
    from boltzhash.corpus import read_corpus as read_corpus
    from boltzhash.hashers import *  # noqa: F403
    from boltzhash.search import ExactIndex as ExactIndex

_ROOMS = {"Collection": "collection", "ExactIndex": "search", "read_corpus": "corpus"}

if not TYPE_CHECKING:  # a type checker would take every name for one that is here

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return [*_ROOMS, *_names_of_hashers(), "__version__"]
        if not name.startswith("_"):
            if name not in _ROOMS and find_spec(f"boltzhash.{name}") is not None:
                return import_module(f"boltzhash.{name}")  # as in boltzhash.errors.ModelError
            if name in _ROOMS or name in _names_of_hashers():
                room = import_module(f"boltzhash.{_ROOMS.get(name, 'hashers')}")
                value = globals()[name] = getattr(room, name)
                return value
        raise AttributeError(f"module 'boltzhash' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})

    def _names_of_hashers() -> list[str]:
        hashers = import_module("boltzhash.hashers")
        settings = [group.__name__ for group in hashers.SETTINGS]
        return [*hashers.HASHERS, *settings, "Hasher", "load"]
