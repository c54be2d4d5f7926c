"""Documents read from the tables of a collection, each compared with its checksum."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from boltzhash.collection.sqlite.database import Database, StateRow
from boltzhash.collection.sqlite.schema import (
    PASSAGE_BITS,
    document_checksum,
    is_whole_code,
    passages_of,
)
from boltzhash.collection.store import Places
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.encoding.coding import Coded, CodedPassage
from boltzhash.errors import CollectionError
from boltzhash.text.passages import Span

T = TypeVar("T")

_COLUMNS = "place, id, text, metadata, documents.checksum"
_CODE = "code, known, codes.checksum"
_PASSAGE = "passage, code, known, checksum, start, stop"
_AT_ONCE = 500
_PAGE = 1000  # documents


def all_documents(database: Database) -> Iterator[Document]:
    """All documents, in the order of insertion."""
    return (document for _, document in documents_after(database, 0))


def documents_after(database: Database, place: int) -> Iterator[tuple[int, Document]]:
    """The documents with later places, with their places, in the order of insertion."""
    statement = f"SELECT {_COLUMNS} FROM documents WHERE place > ? ORDER BY place LIMIT {_PAGE}"
    while rows := database.rows(statement, (place,)):
        for found in rows:
            yield found[0], _document(database, found)
        place = rows[-1][0]


def coded_after(
    database: Database, row: StateRow, after: int, n: int
) -> Iterator[tuple[int, Coded]]:
    """The next documents after a place, with their places and codes."""
    for found in database.rows(
        f"SELECT {_COLUMNS}, {_CODE} FROM documents JOIN codes USING (place) WHERE place > ? "
        "ORDER BY place LIMIT ?",
        (after, n),
    ):
        yield found[0], _coded(database, row, found)


def latest_coded(database: Database, row: StateRow, n: int) -> list[Coded]:
    """The documents that were inserted last, with codes and passages, in the order of insertion."""
    found = database.rows(
        f"SELECT {_COLUMNS}, {_CODE} FROM documents JOIN codes USING (place) ORDER BY place DESC "
        "LIMIT ?",
        (n,),
    )
    return [
        _with_passages(database, row, one[0], _coded(database, row, one)) for one in found[::-1]
    ]


def find_coded(database: Database, row: StateRow, ids: Sequence[Id]) -> dict[Id, Coded]:
    """The documents with those of the ids that exist."""
    columns = f"{_COLUMNS}, {_CODE}"
    rows = _rows_with(database, columns, "documents JOIN codes USING (place)", "id", ids)
    return {found[1]: _coded(database, row, found) for found in rows}


def documents_at(database: Database, places: Places) -> list[Document]:
    """The documents at some places, in the order asked for."""
    rows = _rows_with(database, _COLUMNS, "documents", "place", places.tolist())
    return _in_order(database, rows, places, partial(_document, database))


def coded_at(database: Database, row: StateRow, places: Places) -> list[Coded]:
    """The documents at some places with their codes, in the order asked for."""
    columns = f"{_COLUMNS}, {_CODE}"
    joined = "documents JOIN codes USING (place)"
    rows = _rows_with(database, columns, joined, "place", places.tolist())
    return _in_order(database, rows, places, partial(_coded, database, row))


def ids_at(database: Database, places: Places) -> list[Id | None]:
    """The ids at some places, in the order asked for; None if a document is gone."""
    found = dict(_rows_with(database, "place, id", "documents", "place", places.tolist()))
    return [found.get(place) for place in places.tolist()]


def passages_at(database: Database, row: StateRow, numbers: Places) -> list[CodedPassage]:
    """The passages with some numbers, in the order asked for."""
    rows = _rows_with(database, _PASSAGE, "passages", "passage", numbers.tolist())
    return _in_order(database, rows, numbers, partial(_passage, database, row))


def cut_at(database: Database, row: StateRow, places: Places) -> list[Coded]:
    """The documents at some places with all of their passages, in the order asked for."""
    return [
        _with_passages(database, row, place, coded)
        for place, coded in zip(places.tolist(), coded_at(database, row, places), strict=True)
    ]


def _with_passages(database: Database, row: StateRow, place: int, coded: Coded) -> Coded:
    if row.passage_words is None:
        return coded
    found = database.rows(
        f"SELECT {_PASSAGE} FROM passages WHERE passage BETWEEN ? AND ? ORDER BY passage",
        passages_of(place),
    )
    return coded._replace(passages=tuple(_passage(database, row, one) for one in found))


def _rows_with(
    database: Database, columns: str, tables: str, key: str, values: Sequence[Id]
) -> Iterator[Any]:
    """The rows whose ``key`` is one of the values, in any order."""
    remaining = iter(values)
    while some := list(itertools.islice(remaining, _AT_ONCE)):
        marks = ", ".join("?" * len(some))
        yield from database.rows(f"SELECT {columns} FROM {tables} WHERE {key} IN ({marks})", some)


def _in_order(
    database: Database, rows: Iterable[Any], places: Places, read: Callable[[Any], T]
) -> list[T]:
    """The rows as ``read`` returns them, one for each of the places."""
    found, wanted = {}, places.tolist()
    for one in rows:
        found[one[0]] = read(one)
    missing = set(wanted).difference(found)
    if missing:
        raise CollectionError(
            f"{database.path} is damaged: document number {min(missing)} is missing"
        )
    return list(map(found.__getitem__, wanted))


def _coded(database: Database, row: StateRow, found: tuple[Any, ...]) -> Coded:
    document, (code, known, checksum) = _document(database, found[:5]), found[5:]
    if not is_whole_code(found[0], code, known, checksum, n_bits=row.n_bits):
        raise CollectionError(f"{database.path} is damaged: the code of number {found[0]}")
    return Coded(document, code, bool(known))


def _passage(database: Database, row: StateRow, found: tuple[Any, ...]) -> CodedPassage:
    number, code, known, _, start, stop = found
    if not is_whole_code(*found, n_bits=row.n_bits):
        raise CollectionError(
            f"{database.path} is damaged: a passage of number {number >> PASSAGE_BITS}"
        )
    return CodedPassage(Span(start, stop), code, bool(known))


def _document(database: Database, row: tuple[Any, ...]) -> Document:
    place, id_, text, metadata, checksum = row
    is_whole = isinstance(id_, str | int) and isinstance(text, str) and isinstance(metadata, str)
    if not is_whole or document_checksum(id_, text, metadata) != checksum:
        raise CollectionError(
            f"{database.path} is damaged: document number {place}, id {id_!r}, is not what was "
            "written"
        )
    return Document(id_, text, json.loads(metadata))
