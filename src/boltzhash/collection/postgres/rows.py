"""Documents as rows of a table in PostgreSQL, and back."""

from __future__ import annotations

import json
from typing import Any

from boltzhash.collection.postgres.filters import fields_json, original_text, storable_text
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.encoding.coding import Coded

DOCUMENT = "documents.number, documents.name, documents.text, documents.metadata::text"
CODED = (
    f"{DOCUMENT}, codes.code::text, codes.known"  # "codes" stands for the table of the generation
)
LONGEST_NAME = 2000  # bytes of an id that a unique index can hold


def row_of(place: int, document: Document) -> tuple[Any, ...]:
    number = document.id if isinstance(document.id, int) else None
    name = storable_text(document.id) if isinstance(document.id, str) else None
    if name is not None and len(name.encode()) > LONGEST_NAME:
        raise ValueError(
            f"PostgreSQL holds ids of up to {LONGEST_NAME} bytes, got {len(name.encode())}: "
            f"{name[:40]!r}…"
        )
    metadata = document.metadata or {}
    return (
        place,
        number,
        name,
        storable_text(document.text),
        json.dumps(metadata, ensure_ascii=False, separators=(",", ":")),
        fields_json(metadata),
    )


def document_of(number: int | None, name: str | None, text: str, metadata: str) -> Document:
    return Document(id_of(number, name), original_text(text), json.loads(metadata))


def coded_of(
    number: int | None, name: str | None, text: str, metadata: str, bits: str, known: bool
) -> Coded:
    return Coded(document_of(number, name, text, metadata), code_of(bits), known)


def id_of(number: int | None, name: str | None) -> Id:
    return number if name is None else original_text(name)  # type: ignore[return-value]


def bits_of(code: bytes) -> str:
    return f"{int.from_bytes(code):0{8 * len(code)}b}"


def code_of(bits: str) -> bytes:
    """What :func:`bits_of` was given.

    >>> code_of(bits_of(b"\\x00\\xff"))
    b'\\x00\\xff'
    """
    return int(bits, 2).to_bytes(len(bits) // 8)
