"""How an interrupted addition finds its place again, and notices that other documents come."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

from boltzhash.encoding.coding import Input
from boltzhash.errors import ChangedDocumentsError


class Trail:
    """Counts documents and takes a checksum of all of them, vectors included, one after the other.

    >>> from boltzhash.corpus import Document
    >>> first, second = Trail(), Trail()
    >>> first.follow([Input(Document("a", "x")), Input(Document("b", "y"))])
    >>> second.follow([Input(Document("a", "x"))])
    >>> second.follow([Input(Document("b", "y"))])
    >>> first.note("corpus") == second.note("corpus")
    True
    """

    def __init__(self) -> None:
        self.done = 0
        self._last_id: str | int | None = None
        self._checksum = b""
        self.what = "ids, texts or metadata"  # that a checksum is of

    def follow(self, some: Iterable[Input]) -> None:
        for document, vector in some:
            content = json.dumps(document, ensure_ascii=False, sort_keys=True).encode()
            if vector is not None:
                content += vector.tobytes()
                self.what = "ids, texts, metadata or features"
            self._checksum = hashlib.sha256(self._checksum + content).digest()
            self._last_id = document.id
            self.done += 1

    def note(self, name: str) -> dict[str, Any]:
        """What a collection remembers of an addition that is under way."""
        checksum = self._checksum.hex()
        return {"name": name, "done": self.done, "last_id": self._last_id, "checksum": checksum}


def trail_of(documents: Iterator[Input], came_to: dict[str, Any]) -> Trail:
    """Take those documents that were added before; raises if they are not the same."""
    trail = Trail()
    trail.follow(itertools.islice(documents, came_to["done"]))
    note = trail.note(came_to["name"])
    if note == came_to:
        return trail
    number, last_id = came_to["done"] - 1, came_to["last_id"]
    if (trail.done, note["last_id"]) != (came_to["done"], last_id):
        got = "no more" if trail.done < came_to["done"] else repr(note["last_id"])
        problem = f"number {number} must have the id {last_id!r}, got {got}"
    else:
        problem = f"{trail.what} up to number {number} are no longer those that were added"
    raise ChangedDocumentsError(
        f"these are not the documents whose addition was interrupted: {problem}"
    )
