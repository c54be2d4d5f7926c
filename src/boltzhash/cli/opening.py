"""Opening the collection that a command names: a folder or a URL."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def is_model_or_codes(path: str) -> bool:
    """Whether there is a folder that fit or encode has written, perhaps damaged since."""
    from boltzhash.storage.folders import CONFIG, WEIGHTS

    try:
        if Path(path, WEIGHTS).is_file():
            return True
        config = json.loads(Path(path, CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and str(config.get("format")).startswith("boltzhash ")


def opened(location: str, hasher: Hasher | None = None) -> Collection:
    """The collection at a location that was typed on the command line."""
    from boltzhash.collection import Collection

    warn_about_password(location)
    return Collection.open(location, hasher)


def opened_if_there(location: str, hasher: Hasher | None = None) -> Collection | None:
    """The collection at a location, None if there is none yet."""
    from boltzhash.errors import NoSuchCollectionError

    try:
        return opened(location, hasher)
    except NoSuchCollectionError:
        return None


def unfinished_in(collection: Collection) -> dict[str, Any] | None:
    """The addition that was interrupted: its name, and how far it came; None if there is none."""
    with collection.snapshot() as now:
        return now.state.unfinished


def forget_unfinished(collection: Collection) -> None:
    """Give up the addition that was interrupted; the documents that it added stay."""
    with collection.store.write() as transaction:
        transaction.note_unfinished(None)


def meant_id(text: str, collection: Collection) -> str | int:
    """The id that was meant: JSON if that is an id in the collection, else the text as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) or value in collection else text


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
