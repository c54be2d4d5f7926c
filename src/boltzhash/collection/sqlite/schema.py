"""The tables of a collection, and the upgrade from older formats.

documents   what the user gave; ``place`` is the order of insertion and is never used twice
codes       the code of each document, and whether the model knew any word of it
next_codes  the codes of a rehash under way; takes the place of ``codes`` when it is complete
fields      the index behind ``where``: a row for each value of a metadata field, fields inside fields
            included, and one with an empty blob for each that is a list or an object
changes     the log of places that were overwritten or deleted, for readers that have codes mapped
state       one row: see ``database.State``

A collection whose documents are cut into passages has three more:

passages       the code of each passage, and where it is in its document; ``passage`` is the document's
               place and, in the lowest :data:`PASSAGE_BITS` bits, its number in the document
next_passages  the same of a rehash under way
cutting        one row, also of ``database.State``: words of a passage, and how many passages there are
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from json.encoder import encode_basestring_ascii
from typing import Any

from boltzhash.collection.filters import seen_fields
from boltzhash.corpus.documents import Id, Scalar

APPLICATION_ID = 0x626F6C74  # "bolt": tells a collection from any other SQLite file
FORMAT_VERSION = 2  # 2 has fields inside fields and the members of lists in ``fields``
# Of a collection with passages. Others stay what an older boltzhash reads, and can be opened by who may
# not write to them.
WITH_PASSAGES = 3

PASSAGE_BITS = 32

_CODES = """
CREATE TABLE {name} (
    place INTEGER PRIMARY KEY, code BLOB NOT NULL, known INTEGER NOT NULL, checksum INTEGER NOT NULL
)
"""

# A column without a type keeps what it is given: the ids 1 and "1" differ, and so do field values.
_TABLES = [
    """
CREATE TABLE documents (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id NOT NULL UNIQUE,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    checksum INTEGER NOT NULL
)
""",
    _CODES.format(name="codes"),
    _CODES.format(name="next_codes"),
    """
CREATE TABLE fields (
    field TEXT NOT NULL, value NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (field, value, place)
) WITHOUT ROWID
""",
    """
CREATE TABLE changes (
    generation INTEGER NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (generation, place)
) WITHOUT ROWID
""",
    """
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    generation INTEGER NOT NULL,
    n_documents INTEGER NOT NULL,
    model TEXT NOT NULL,
    n_bits INTEGER NOT NULL,
    next_model TEXT,
    changes_since INTEGER NOT NULL,
    n_changes INTEGER NOT NULL,
    indexing TEXT
)
""",
]

_PASSAGES = """
CREATE TABLE {name} (
    passage INTEGER PRIMARY KEY,
    code BLOB NOT NULL,
    known INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL
)
"""
_CUTTING = """
CREATE TABLE cutting (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    passage_words INTEGER NOT NULL,
    n_passages INTEGER NOT NULL
)
"""


def create_tables(
    connection: sqlite3.Connection, *, model: str, n_bits: int, passages: int | None = None
) -> None:
    """An empty collection whose codes come from the hasher with the fingerprint ``model``.

    ``passages`` is how many words a passage has, if documents are cut into passages.
    """
    _make_tables(connection)
    if passages is not None:
        for table in (_PASSAGES.format(name="passages"), _PASSAGES.format(name="next_passages")):
            connection.execute(table)
        connection.execute(_CUTTING)
        connection.execute("INSERT INTO cutting VALUES (1, ?, 0)", (passages,))
    _set_state(connection, generation=0, n_documents=0, model=model, n_bits=n_bits)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    version = FORMAT_VERSION if passages is None else WITH_PASSAGES
    connection.execute(f"PRAGMA user_version = {version}")


def replace_codes(connection: sqlite3.Connection, *, passages: bool) -> None:
    """Put ``next_codes`` in the place of ``codes``, and the same for passages if there are any."""
    connection.execute("DROP TABLE codes")
    connection.execute("ALTER TABLE next_codes RENAME TO codes")
    connection.execute(_CODES.format(name="next_codes"))
    if passages:
        connection.execute("DROP TABLE passages")
        connection.execute("ALTER TABLE next_passages RENAME TO passages")
        connection.execute(_PASSAGES.format(name="next_passages"))
        connection.execute("UPDATE cutting SET n_passages = (SELECT count(*) FROM passages)")


def passages_of(place: int) -> tuple[int, int]:
    """The least and the largest number that a passage of a document can have.

    >>> first, last = passages_of(7)
    >>> first >> PASSAGE_BITS, last >> PASSAGE_BITS, last + 1 == passages_of(8)[0]
    (7, 7, True)
    """
    return place << PASSAGE_BITS, (place + 1 << PASSAGE_BITS) - 1


def document_checksum(id_: Id, text: str, metadata: str) -> int:
    """Of what json.dumps makes of a list of the three, which takes longer.

    >>> document_checksum("é", "text", "{}") == zlib.crc32(b'["\\\\u00e9", "text", "{}"]')
    True
    """
    shown = encode_basestring_ascii(id_) if isinstance(id_, str) else json.dumps(id_)
    listed = f"[{shown}, {encode_basestring_ascii(text)}, {encode_basestring_ascii(metadata)}]"
    return zlib.crc32(listed.encode())


def code_checksum(place: int, code: bytes, known: int, *span: object) -> int:
    """Includes the place: a code that went to another document is damage too. And the span of a passage.

    >>> code_checksum(7, b"code", 1, 0, 100) == code_checksum(7, b"code", 1, 0, 101)
    False
    """
    checksum = zlib.crc32(code, place & 0xFFFFFFFF) ^ known
    return zlib.crc32(repr((place, *span)).encode(), checksum) if span else checksum


def is_whole_code(
    place: int, code: object, known: object, checksum: object, *span: object, n_bits: int
) -> bool:
    """Whether a row of ``codes`` or ``passages`` is what was written."""
    return (
        isinstance(code, bytes)
        and isinstance(known, int)
        and 8 * len(code) == n_bits
        and code_checksum(place, code, known, *span) == checksum
    )


def field_rows(metadata: Mapping[str, Any], place: int) -> Iterator[tuple[str, Any, int]]:
    """What a filter can find in a document's metadata."""
    for field, seen in seen_fields(metadata).items():
        if isinstance(seen, list):
            yield field, b"", place
            yield from ((field, stored_value(member), place) for member in seen)
        else:
            yield field, stored_value(seen), place


def stored_value(value: Scalar) -> Any:
    """A value that SQLite compares as we do: a BLOB is equal to no number and no text.

    True is not 1 here.
    """
    return bytes([value]) if isinstance(value, bool) else value


def _make_tables(connection: sqlite3.Connection) -> None:
    for table in _TABLES:
        connection.execute(table)


def _set_state(
    connection: sqlite3.Connection, *, generation: int, n_documents: int, model: str, n_bits: int
) -> None:
    connection.execute(
        "INSERT INTO state (one, generation, n_documents, model, n_bits, changes_since, n_changes) "
        "VALUES (1, ?, ?, ?, ?, ?, 0)",
        (generation, n_documents, model, n_bits, generation),
    )


def _from_0(connection: sqlite3.Connection) -> None:
    """Format 0 had one table, without checksums, fields to filter by, or a count of generations."""
    model, n_bits = connection.execute("SELECT model, n_bits FROM model").fetchone()
    connection.execute("ALTER TABLE documents RENAME TO old")
    _make_tables(connection)
    n_documents = 0
    rows = connection.execute("SELECT place, id, text, metadata, code, known FROM old")
    for place, id_, text, metadata, code, known in rows:
        connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?)",
            (place, id_, text, metadata, document_checksum(id_, text, metadata)),
        )
        connection.execute(
            "INSERT INTO codes VALUES (?, ?, ?, ?)",
            (place, code, known, code_checksum(place, code, known)),
        )
        connection.executemany(
            "INSERT INTO fields VALUES (?, ?, ?)", field_rows(json.loads(metadata), place)
        )
        n_documents += 1
    # Places of deleted documents are not given out again.
    connection.execute("DELETE FROM sqlite_sequence WHERE name = 'documents'")
    connection.execute("UPDATE sqlite_sequence SET name = 'documents' WHERE name = 'old'")
    _set_state(connection, generation=1, n_documents=n_documents, model=model, n_bits=n_bits)
    connection.execute("DROP TABLE old")
    connection.execute("DROP TABLE model")


def _from_1(connection: sqlite3.Connection) -> None:
    """Format 1 had fields at the top alone, and of a list or an object only that it was there."""
    nested = connection.execute(
        "SELECT place, metadata FROM documents WHERE place IN "
        "(SELECT place FROM fields WHERE value = x'')"
    )
    for place, metadata in nested:
        connection.executemany(
            "INSERT OR IGNORE INTO fields VALUES (?, ?, ?)", field_rows(json.loads(metadata), place)
        )


UPGRADES: dict[int, Callable[[sqlite3.Connection], None]] = {0: _from_0, 1: _from_1}
