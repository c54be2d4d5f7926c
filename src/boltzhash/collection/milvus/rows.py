"""Documents as rows of a table in Milvus, and back."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from boltzhash.collection.milvus.client import LONGEST_TEXT
from boltzhash.collection.milvus.filters import fields_of
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.encoding.coding import Coded, coded_texts
from boltzhash.hashers import Hasher

_SURELY_FITS = LONGEST_TEXT // 4  # characters, of which UTF-8 makes up to 4 bytes each
_compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
DOCUMENT = ["row", "place", "id", "text", "metadata"]  # what a document is made from
CODED = [*DOCUMENT, "code", "known"]


def row_of(place: int, coded: Coded) -> dict[str, Any]:
    document = coded.document
    metadata = document.metadata or {}
    row: dict[str, Any] = {
        "place": place,
        "key": key_of(document.id),
        "known": coded.known,
        "id": _compact_json(document.id),
        "text": document.text,
        "metadata": _compact_json(metadata),
        "fields": fields_of(metadata),
        "code": coded.code,
    }
    _check_sizes(row)
    return row


def _check_sizes(row: dict[str, Any]) -> None:
    texts = {name: row[name] for name in ("id", "text", "metadata")}
    for_filters = sum(len(key) + len(value) + 8 for key, value in row["fields"].items())
    if max(sum(map(len, texts.values())), for_filters) < _SURELY_FITS:
        return
    sizes = {name: len(text.encode()) for name, text in texts.items()}
    sizes["metadata"] = max(sizes["metadata"], for_filters)
    for name, size in sizes.items():
        if size > LONGEST_TEXT:
            raise ValueError(
                f"Milvus holds up to {LONGEST_TEXT} bytes, got {size} for the {name} of document "
                f"{str(json.loads(row['id']))[:40]!r}"
            )


def coded_anew(hasher: Hasher, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With new codes, and with what filters see of the metadata now."""
    coded = coded_texts(hasher, (row["text"] for row in rows))
    return [
        {**row, **text._asdict(), "fields": fields_of(json.loads(row["metadata"]))}
        for row, text in zip(rows, coded, strict=True)
    ]


def document_of(row: dict[str, Any]) -> Document:
    return Document(json.loads(row["id"]), row["text"], json.loads(row["metadata"]))


def coded_of(row: dict[str, Any]) -> Coded:
    return Coded(document_of(row), code_of(row), bool(row["known"]))


def code_of(row: dict[str, Any]) -> bytes:
    """A query gives a vector in a list, a search gives it bare."""
    code = row["code"]
    return bytes(code if isinstance(code, bytes) else code[0])


def key_of(id_: Id) -> int:
    """A number to look an id up by; different ids may share one, so the id itself is compared."""
    digest = hashlib.sha256(json.dumps(id_).encode()).digest()
    return int.from_bytes(digest[:8]) >> 1
