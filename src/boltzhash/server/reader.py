"""A collection as the service needs it: several questions to one generation, codes, and counts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection import Collection
from boltzhash.collection.documents import Id, check_id
from boltzhash.collection.sqlite.codes_file import Rows
from boltzhash.collection.sqlite.database import State
from boltzhash.collection.sqlite.reads import Places, documents_at
from boltzhash.collection.sqlite.schema import is_whole_code
from boltzhash.collection.sqlite.writes import add_rows, delete_rows, upsert_rows
from boltzhash.collection.verbs import Documents
from boltzhash.corpus import Document
from boltzhash.encoding.coding import Coded
from boltzhash.errors import CollectionError

_AT_ONCE = 500


class FieldValue(NamedTuple):
    """A value of a metadata field, and how many documents have it."""

    value: str | int | float | bool
    n_documents: int


class Reader(Collection):
    """A collection that can be held at one generation.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from boltzhash import LSH
    >>> path = Path(tempfile.mkdtemp(), "collection")
    >>> hasher = LSH(n_bits=64).fit(["stars and planets", "bread and butter"])
    >>> with Reader.create(path, hasher) as reader:
    ...     generation = reader.add_batch([{"id": 1, "text": "stars"}], overwrite=False)
    ...     with reader.one_generation() as state:
    ...         answer = state.generation, reader.search("stars").ids, reader.get(2)
    >>> generation, answer
    (1, (1, [1], None))
    """

    _held: State | None = None
    _vocabulary: tuple[str, frozenset[str]] = ("", frozenset())

    @contextmanager
    def one_generation(self) -> Iterator[State]:
        """Everything asked for inside the block is as it was in the generation that is yielded."""
        with self._reading() as state:
            yield state

    @contextmanager
    def _reading(self) -> Iterator[State]:
        with self._open_lock():
            if self._held is not None:
                yield self._held
                return
            with super()._reading() as state:
                self._held = state
                try:
                    yield state
                finally:
                    self._held = None

    def rows(self) -> Rows:
        """All places with their codes, in the order of insertion."""
        with self._reading():
            return self._snapshot.rows()

    def documents_at(self, places: Places) -> list[Document]:
        with self._reading():
            return documents_at(self._database, places)

    def id_at(self, place: int) -> Id | None:
        """The id of the document that was inserted as this one; None where it is gone."""
        with self._reading():
            row = self._connection.execute(
                "SELECT id FROM documents WHERE place = ?", (place,)
            ).fetchone()
            return row[0] if row is not None else None

    def codes_of(self, ids: Iterable[Id]) -> dict[Id, Codes]:
        """The codes of those ids that are there."""
        remaining = iter([check_id(id_) for id_ in ids])
        found: dict[Id, Codes] = {}
        with self._reading() as state:
            while some := list(itertools.islice(remaining, _AT_ONCE)):
                marks = ", ".join("?" * len(some))
                for id_, place, code, known, checksum in self._connection.execute(
                    "SELECT id, place, code, known, codes.checksum FROM documents JOIN codes "
                    f"USING (place) WHERE id IN ({marks})",
                    some,
                ):
                    if not is_whole_code(place, code, known, checksum, state.n_bits):
                        raise CollectionError(f"{self.path} is damaged: the code of {id_!r}")
                    found[id_] = np.frombuffer(code, np.uint8)
        return found

    def vocabulary(self) -> frozenset[str]:
        """The words that the model knows."""
        with self._reading() as state:
            if self._vocabulary[0] != state.model:
                assert self._hasher.tfidf_ is not None  # it reads texts
                self._vocabulary = state.model, frozenset(self._hasher.tfidf_.words_)
            return self._vocabulary[1]

    def field_values(self, most: int) -> dict[str, list[FieldValue]]:
        """Of each metadata field the commonest values, at most so many."""
        values: dict[str, list[FieldValue]] = {}
        with self._reading():
            # A blob is how true, false, lists and objects are kept: see schema.stored_value.
            for field, value, count in self._connection.execute(
                "SELECT field, value, n FROM (SELECT field, value, count(*) AS n, row_number() "
                "OVER (PARTITION BY field ORDER BY count(*) DESC, value) AS rank FROM fields "
                "WHERE value != x'' GROUP BY field, value) WHERE rank <= ? ORDER BY field, rank",
                (most,),
            ):
                shown = bool(value[0]) if isinstance(value, bytes) else value
                values.setdefault(field, []).append(FieldValue(shown, count))
        return values

    def field_of(self, field: str) -> dict[int, Any]:
        """The value of one metadata field by place, where it is a string, a number or a truth."""
        with self._reading():
            rows = self._connection.execute(
                "SELECT place, value FROM fields WHERE field = ? AND value != x''", (field,)
            )
            return {p: bool(v[0]) if isinstance(v, bytes) else v for p, v in rows}

    # Writing, with the generation that a write has made.

    def add_batch(self, documents: Documents, *, overwrite: bool) -> int:
        """Add (or overwrite) at most 1024 documents, wholly or not at all."""
        made = 0

        def write(state: State, batch: list[Coded]) -> None:
            nonlocal made
            made = state.generation
            if overwrite:
                upsert_rows(self._connection, state, batch)
            else:
                add_rows(self._connection, batch)

        self._write_batches(documents, write)
        return made

    def delete_batch(self, ids: Iterable[Id]) -> tuple[int, int]:
        """Delete documents; the generation that made, and how many were there."""
        checked = [check_id(id_) for id_ in ids]
        with self._open_lock(), self._database.writing() as state:
            return state.generation, delete_rows(self._connection, state, checked)
