"""Where a collection in Milvus stands, and its models: rows of a small table beside the documents.

Milvus has no transactions. So a write first puts rows of the coming generation into the documents,
which nobody looks at, then adds one row here that makes them count and names those that no longer do,
and only then deletes these. Whoever dies in between leaves rows that do not count, or a table without an
index, and the next writer mends it.

Readers do not wait until Milvus has seen the newest, and yet an answer is of one generation as a whole.
Milvus answers from what its query node has read of a table's log, and that only grows. So a writer
makes sure that each step can be seen by all before it takes the next one (``wait`` below: a read that is
consistent with it):

1. insert the rows of generation g; wait, also for what was deleted from the documents before
2. append the state g
3. if g takes rows away (they are ``dead``): wait, then delete them

Who finds the state g therefore finds all its rows, and none that died before it; those that die with it
are named in it. A reader takes a state, reads documents and then asks for the state again. Had it missed
a row that a later generation deleted, that generation's state could be seen before the row was deleted,
and the reader finds it now: ``disturbed`` has changed, and it reads again.

"Only grows" holds for one replica, which is how the tables are loaded, until Milvus moves a table to
another query node; a node that has just taken over may be behind by up to ``common.gracefulTime``. A
reader who asks for strong consistency depends on none of this.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from boltzhash.collection.milvus.client import SESSION, STRONG, Milvus
from boltzhash.collection.models import Coder
from boltzhash.collection.store import FORMAT_VERSION, Standing, check_format_version
from boltzhash.encoding.model_files import ModelFile, model_from_files, model_to_files
from boltzhash.errors import CollectionError
from boltzhash.hashers import Hasher

BESIDE = "beside/"  # tells files beside the documents from those of models
_PART = 45_000  # bytes of a model's file in one row, before base64


class NextTable(NamedTuple):
    """Where a rehash under way puts its codes, and up to which generation it has come."""

    model: str
    n_bits: int
    table: str
    copied: int


class MilvusState(NamedTuple):
    """One generation."""

    generation: int
    n_documents: int
    last_place: int
    model: str
    n_bits: int
    table: str  # of the documents
    dead: list[int]  # rows that are there but no longer count
    disturbed: int  # the last generation that took rows away: older readers may miss some
    next: NextTable | None = None
    unfinished: dict[str, Any] | None = None
    approximate: dict[str, Any] | None = None
    looks_inside: bool = False  # whether all rows have what filters ask of lists and objects
    format_version: int = FORMAT_VERSION

    def standing(self) -> Standing:
        following = self.next.model if self.next is not None else None
        return Standing(
            self.generation,
            self.n_documents,
            self.model,
            self.n_bits,
            following,
            self.unfinished,
            self.approximate,
        )

    def tables(self) -> list[str]:
        return [self.table, *([self.next.table] if self.next is not None else [])]

    def counts(self) -> list[str]:
        """What holds for the rows that count."""
        dead = [f"row not in {json.dumps(self.dead)}"] if self.dead else []
        return [f"born <= {self.generation}", *dead]


class StateTable:
    """The rows: numbers from 0 are generations, those below are parts of models."""

    def __init__(self, milvus: Milvus, table: str) -> None:
        self._milvus = milvus
        self._table = table
        self.last: MilvusState | None = None  # the newest that was seen

    def exists(self) -> bool:
        """Whether there is a collection: the first generation is the last that is made of it."""
        if not self._milvus.has_table(self._table):
            return False
        self._milvus.make_ready(self._table)
        return bool(self._milvus.query(self._table, "number >= 0", ["number"]))

    def create(self, first: MilvusState, coder: Coder) -> None:
        self._milvus.drop_table(self._table)  # of a client that died while it made one
        self._milvus.make_state_table(self._table)
        self.save_model(coder)
        self.append(first)
        self.wait_until_seen()

    def newest(self, consistency: str = STRONG) -> MilvusState:
        """The newest generation that is to be seen, and never one older than the last that was.

        Right after :meth:`append` Milvus may know the one before only, which therefore is kept.
        """
        last = self.last
        seen = max(0, last.generation - 1) if last is not None else 0
        rows = self._milvus.query(
            self._table, f"number >= {seen}", ["number", "contents"], consistency=consistency
        )
        if not rows:
            raise CollectionError(f"{self._milvus.shown} is damaged: it has no state")
        newest = max(rows, key=lambda row: int(row["number"]))
        if last is None or int(newest["number"]) > last.generation:
            self.last = last = self._state_of(newest["contents"])
        return last

    def _state_of(self, text: str) -> MilvusState:
        contents = json.loads(text)
        check_format_version(contents["format_version"], self._milvus.shown)
        following = contents.pop("next")
        contents["format_version"] = FORMAT_VERSION  # what an older one lacks has a default
        return MilvusState(**contents, next=NextTable(*following) if following else None)

    def append(self, state: MilvusState) -> None:
        """From here on the collection stands there."""
        self._insert([(state.generation, json.dumps(state._asdict()))])
        self.last = state

    def wait_until_seen(self) -> None:
        """From here on every reader sees what was appended, however consistently it reads."""
        self.newest(SESSION)

    def forget_before(self, generation: int) -> None:
        """The one before, and those that clients left who died before they came to this."""
        numbers = list(range(max(0, generation - 4), generation))
        if numbers:
            self._milvus.delete(self._table, f"number in {numbers}")

    def _insert(self, rows: list[tuple[int, str]]) -> None:
        self._milvus.insert(
            self._table,
            [{"number": number, "contents": text, "code": b"\0"} for number, text in rows],
        )

    # Files: models by their fingerprints, and what is kept beside the documents by its name

    def save_model(self, coder: Coder) -> None:
        self.save_files(coder.model, model_to_files(coder.hasher))

    def load_model(self, fingerprint: str) -> Hasher:
        files = self.load_files(fingerprint)
        return model_from_files(files, fingerprint, self._milvus.shown)

    def save_files(self, name: str, files: Sequence[ModelFile]) -> None:
        self._remove_files(
            lambda other: other == name
        )  # or parts of one that died while it saved it
        lowest = min((int(row["number"]) for row in self._file_rows()), default=0)
        parts = [
            json.dumps(
                {
                    "model": name,
                    "file": file.name,
                    "sha256": file.sha256,
                    "part": start // _PART,
                    "data": base64.b64encode(file.contents[start : start + _PART]).decode(),
                }
            )
            for file in files
            for start in range(0, len(file.contents), _PART)
        ]
        if parts:
            self._insert([(lowest - 1 - i, part) for i, part in enumerate(parts)])

    def load_files(self, name: str) -> list[ModelFile]:
        parts = [json.loads(row["contents"]) for row in self._file_rows()]
        files: dict[str, ModelFile] = {}
        for part in sorted(parts, key=lambda part: int(part["part"])):
            if part["model"] == name:
                before = files.get(part["file"], ModelFile(part["file"], part["sha256"], b""))
                data = base64.b64decode(part["data"])
                files[part["file"]] = before._replace(contents=before.contents + data)
        return [files[file] for file in sorted(files)]

    def remove_models_but(self, fingerprints: list[str]) -> None:
        self._remove_files(lambda name: name not in fingerprints and not name.startswith(BESIDE))

    def _remove_files(self, is_gone: Callable[[str], bool]) -> None:
        rows = self._file_rows()
        gone = [int(r["number"]) for r in rows if is_gone(json.loads(r["contents"])["model"])]
        if gone:
            self._milvus.delete(self._table, f"number in {gone}")

    def _file_rows(self) -> list[dict[str, Any]]:
        return self._milvus.query(self._table, "number < 0", ["number", "contents"])
