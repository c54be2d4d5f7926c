"""The tables of a collection.

documents   what the user gave; ``place`` is the order of insertion and is never used twice
codes       the code of each document, and whether the model knew any word of it
next_codes  the codes of a rehash under way; takes the place of ``codes`` when it is complete
fields      the index behind ``where``: a row for each value of a metadata field, fields inside fields
            included, and one with an empty blob for each that is a list or an object
passages    where documents are cut into passages, the code of each and its span in the document;
            ``passage`` is the document's place and, in the lowest :data:`PASSAGE_BITS` bits, its number
            in the document
next_passages  the same of a rehash under way
changes     the log of places that were overwritten or deleted, for readers that have codes mapped
generations the random token of each generation as far back as that log: a copy of the codes or the words
            whose generation has another token is of another history, such as a restored database's
state       one row: see ``database.StateRow``
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from json.encoder import encode_basestring_ascii
from typing import Any

from boltzhash.collection.filters import seen_fields
from boltzhash.collection.store import FORMAT_VERSION
from boltzhash.corpus.documents import Id, Scalar

APPLICATION_ID = 0x626F6C74  # "bolt": tells a collection from any other SQLite file

PASSAGE_BITS = 32

_CODES = """
CREATE TABLE {name} (
    place INTEGER PRIMARY KEY, code BLOB NOT NULL, known INTEGER NOT NULL, checksum INTEGER NOT NULL
)
"""

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
    "CREATE TABLE generations (generation INTEGER PRIMARY KEY, token INTEGER NOT NULL)",
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
    unfinished TEXT,
    passage_words INTEGER,
    n_passages INTEGER NOT NULL
)
""",
    _PASSAGES.format(name="passages"),
    _PASSAGES.format(name="next_passages"),
]


def create_tables(
    connection: sqlite3.Connection, *, model: str, n_bits: int, passages: int | None = None
) -> None:
    """An empty collection whose codes come from the hasher with the fingerprint ``model``.

    ``passages`` is how many words a passage has, if documents are cut into passages.
    """
    for table in _TABLES:
        connection.execute(table)
    connection.execute("INSERT INTO generations VALUES (0, ?)", (new_token(),))
    connection.execute(
        "INSERT INTO state VALUES (1, 0, 0, ?, ?, NULL, 0, 0, NULL, ?, 0)",
        (model, n_bits, passages),
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def new_token() -> int:
    return secrets.randbits(63)


def replace_codes(connection: sqlite3.Connection) -> None:
    """Put ``next_codes`` in the place of ``codes``, and the same for passages."""
    for name, table in (("codes", _CODES), ("passages", _PASSAGES)):
        connection.execute(f"DROP TABLE {name}")
        connection.execute(f"ALTER TABLE next_{name} RENAME TO {name}")
        connection.execute(table.format(name=f"next_{name}"))
    connection.execute("UPDATE state SET n_passages = (SELECT count(*) FROM passages)")


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
