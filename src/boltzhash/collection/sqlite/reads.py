"""Documents read from the tables of a collection, each compared with its checksum."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.collection.documents import Id
from boltzhash.collection.sqlite.database import Database
from boltzhash.collection.sqlite.schema import document_checksum
from boltzhash.corpus import Document
from boltzhash.errors import CollectionError

Places = NDArray[np.int64]

_COLUMNS = "place, id, text, metadata, checksum"
_AT_ONCE = 500


def find_document(database: Database, id_: Id) -> Document | None:
    row = database.connection.execute(
        f"SELECT {_COLUMNS} FROM documents WHERE id = ?", (id_,)
    ).fetchone()
    return _document(database, row) if row is not None else None


def all_documents(database: Database) -> Iterator[Document]:
    """In the order of insertion."""
    for row in database.connection.execute(f"SELECT {_COLUMNS} FROM documents ORDER BY place"):
        yield _document(database, row)


def documents_at(database: Database, places: Places) -> list[Document]:
    """The documents of some places, in the order asked for."""
    found = {row[0]: _document(database, row) for row in _rows_at(database, _COLUMNS, places)}
    return [_there(database, found, place) for place in places.tolist()]


def ids_at(database: Database, places: Places) -> list[Id]:
    found = dict(_rows_at(database, "place, id", places))
    return [_there(database, found, place) for place in places.tolist()]


def _rows_at(database: Database, columns: str, places: Places) -> Iterable[Any]:
    remaining = iter(places.tolist())
    while some := list(itertools.islice(remaining, _AT_ONCE)):
        marks = ", ".join("?" * len(some))
        yield from database.connection.execute(
            f"SELECT {columns} FROM documents WHERE place IN ({marks})", some
        )


def _there(database: Database, found: dict[int, Any], place: int) -> Any:
    if place not in found:
        raise CollectionError(f"{database.path} is damaged: document number {place} is missing")
    return found[place]


def _document(database: Database, row: tuple[int, Id, str, str, int]) -> Document:
    place, id_, text, metadata, checksum = row
    is_whole = isinstance(id_, str | int) and isinstance(text, str) and isinstance(metadata, str)
    if not is_whole or document_checksum(id_, text, metadata) != checksum:
        raise CollectionError(
            f"{database.path} is damaged: document number {place}, id {id_!r}, is not what was "
            "written"
        )
    return Document(id_, text, json.loads(metadata))
