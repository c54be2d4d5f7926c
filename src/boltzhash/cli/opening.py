"""Opening the collection that a command names: a folder or a URL."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boltzhash.collection import Collection
    from boltzhash.hashers import Hasher

logger = logging.getLogger("boltzhash")


def is_collection(location: str) -> bool:
    """Whether there is a collection, or, given a URL, is meant to be one."""
    from boltzhash.collection.engines import parse_location
    from boltzhash.collection.locations import FOLDER
    from boltzhash.collection.sqlite.database import is_database_in

    if not location:
        return False
    parsed = parse_location(location)
    return parsed.kind != FOLDER or is_database_in(parsed.url)


def opened(location: str, hasher: Hasher | None = None) -> Collection:
    """The collection at a location that was typed on the command line."""
    from boltzhash.collection import Collection

    warn_about_password(location)
    return Collection.open(location, hasher)


def opened_or_created(location: str, hasher: Hasher) -> Collection:
    """The collection at a location, made first if it is not there."""
    from boltzhash.collection import Collection
    from boltzhash.errors import NoSuchCollectionError

    warn_about_password(location)
    try:
        return Collection.open(location, hasher)
    except NoSuchCollectionError:
        return Collection.create(location, hasher)


def warn_about_password(location: str) -> None:
    """Arguments can be seen by everyone on the machine, and stay in the shell's history."""
    from boltzhash.collection.engines import parse_location

    parsed = parse_location(location)
    if parsed.has_password():
        logger.warning(
            "%s",
            f"the password for {parsed.shown()} can be seen in the list of processes and in the shell's "
            f"history: put it into {' or '.join(parsed.password_in)} instead",
        )
