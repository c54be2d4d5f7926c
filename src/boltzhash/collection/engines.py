"""The one table of engines, and the strings that say where a collection is on them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from boltzhash.collection.locations import FOLDER, Location
from boltzhash.collection.models import Coder
from boltzhash.collection.postgres.store import PostgresStore
from boltzhash.collection.sqlite.store import SqliteStore
from boltzhash.collection.store import Store, has_no_passages

DEFAULT_NAME = "documents"


class MakeStore(Protocol):
    """Opens the store at a location; with a coder, makes it first."""

    def __call__(self, location: Location, wait: float, coder: Coder | None = None) -> Store: ...


class Engine(NamedTuple):
    """What keeps collections."""

    store: MakeStore
    password_in: tuple[str, ...] = ()  # variables and files that may hold the password of a URL


ENGINES: dict[str, Engine] = {  # by the scheme of their URLs
    FOLDER: Engine(SqliteStore),
    "postgresql": Engine(PostgresStore, ("PGPASSWORD", "~/.pgpass")),
}

_SAME = {"postgres": "postgresql"}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LOCATIONS = " or ".join("a folder" if name == FOLDER else f"{name}://…" for name in ENGINES)


def open_store(location: Location, wait: float) -> Store:
    """The store of the collection at a location."""
    return ENGINES[location.kind].store(location, wait)


def create_store(
    location: Location, coder: Coder, wait: float, passages: int | None = None
) -> Store:
    """The store of a new, empty collection whose codes come from ``coder``.

    ``passages`` is how many words a passage has, if documents are to be cut into passages.
    """
    if passages is not None:
        if location.kind != FOLDER:
            raise has_no_passages(location.shown())
        return SqliteStore(location, wait, coder, passages)
    return ENGINES[location.kind].store(location, wait, coder)


def parse_location(location: str | Path) -> Location:
    """A folder, or ``postgresql://host/database#name``.

    What follows ``#`` names the collection on the engine; the default is "documents".

    >>> parse_location("postgresql://localhost/shop#books")
    Location('postgresql://localhost/shop#books')
    >>> parse_location("mysql://host/db")
    Traceback (most recent call last):
    ...
    ValueError: a collection is a folder or postgresql://…, got 'mysql://…'
    """
    if isinstance(location, Path):
        return Location(FOLDER, str(location))
    if not isinstance(location, str):
        raise TypeError(
            f"a collection is a folder, a string or a path, got {type(location).__name__}"
        )
    if not location:
        raise ValueError(f"a collection is {_LOCATIONS}, got ''")
    scheme, separator, _ = location.partition("://")
    if not separator:
        return Location(FOLDER, location)
    kind = _SAME.get(scheme, scheme)
    if kind not in ENGINES or kind == FOLDER:
        shown = f"{scheme}://…"
        raise ValueError(f"a collection is {_LOCATIONS}, got {shown!r}")
    url, _, name = location.partition("#")
    try:
        _ = urlsplit(url).port
    except ValueError:  # its own message would repeat what may be half a password
        raise ValueError(
            f"the part after {kind}:// must be [user[:password]@]host[:port][/…], with other "
            "characters percent-encoded"
        ) from None
    if name and not _NAME.fullmatch(name):  # not shown: it, too, may be half a password
        raise ValueError(
            f"{kind}://…#NAME: the name of a collection is 1 to 40 of a-z, 0-9 and _, a letter first; a "
            "# before it must be percent-encoded"
        )
    return Location(kind, url, name or DEFAULT_NAME, ENGINES[kind].password_in)
