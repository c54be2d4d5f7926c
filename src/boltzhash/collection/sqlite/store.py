"""A collection in a folder on one machine."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection.columns import Column
from boltzhash.collection.filters import Condition
from boltzhash.collection.locations import Location
from boltzhash.collection.models import Coder
from boltzhash.collection.sqlite import maintenance, rehashing
from boltzhash.collection.sqlite.database import DATABASE, Database, State
from boltzhash.collection.sqlite.filters import (
    FieldColumns,
    FieldFilter,
    field_values,
    values_of,
)
from boltzhash.collection.sqlite.models import load_model, save_model
from boltzhash.collection.sqlite.passages import BestPassages
from boltzhash.collection.sqlite.reads import (
    all_coded,
    all_documents,
    coded_after,
    coded_at,
    cut_at,
    documents_at,
    find_coded,
    ids_at,
    latest_coded,
    passages_at,
)
from boltzhash.collection.sqlite.schema import PASSAGE_BITS, create_tables
from boltzhash.collection.sqlite.snapshot import PASSAGES, Snapshot
from boltzhash.collection.sqlite.words import Added, WordsAheadError, WordSnapshot
from boltzhash.collection.sqlite.writes import add_rows, delete_rows, upsert_rows
from boltzhash.collection.store import (
    Counts,
    FieldValue,
    Found,
    Mask,
    OnBatch,
    Places,
    Rows,
    Standing,
    T,
    Write,
    exists_already,
)
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id, Scalar
from boltzhash.encoding.coding import Coded, CodedQuery
from boltzhash.encoding.model_files import ModelFile
from boltzhash.hashers import Hasher
from boltzhash.search.hits import Hit, Hits
from boltzhash.search.inverted import WordIndex
from boltzhash.search.near_texts import places_that_may_be_near
from boltzhash.search.passages import COMPARED, by_best_passages
from boltzhash.search.ranking import Ranked, having_phrases, rank
from boltzhash.storage.folders import atomic_folder
from boltzhash.text.passages import Span
from boltzhash.text.words import WordQuery, Words, words_of

_COMPARED_AT_ONCE = 100


class SqliteStore:
    """One connection. SQLite is the truth; codes are searched in a copy of them, mapped into memory.

    ``coder`` is given if the collection is to be created, and ``passages`` if its documents are to be
    cut into passages of so many words.
    """

    def __init__(
        self,
        location: Location,
        wait: float,
        coder: Coder | None = None,
        passages: int | None = None,
    ) -> None:
        self.shown = location.shown()
        self._folder = Path(location.url)
        if coder is not None:
            _create(self._folder, coder, passages)
        self._database = Database(self._folder, wait)
        self.passages = self._database.passage_words
        self._snapshot = Snapshot(self._folder)
        self._passages = Snapshot(self._folder, PASSAGES)  # stays empty if there are none
        self._filter = FieldFilter()
        self._columns = FieldColumns()
        self._words = WordSnapshot(self._folder)
        self._languages: dict[str, str | None] = {}  # of models
        if coder is not None:
            self._languages[coder.model] = coder.hasher.language
        self._state: State  # of the transaction under way
        self._added: Added = []  # by it
        self._has_deleted = False
        self.written_generation: int | None = None

    def close(self) -> None:
        if self._database.is_there():  # else the files are another collection's
            self._words.close()
            if self.written_generation is not None:
                self._snapshot.close()
                self._passages.close()
        self._database.close()

    def read(self, answer: Callable[[Standing], T]) -> T:
        while True:
            try:
                with self._database.reading() as state:
                    self._state = state
                    self._snapshot.follow(self._connection, state)
                    if self.passages is not None:
                        self._passages.follow(self._connection, state)
                    return answer(_standing(state))
            except WordsAheadError:  # another process has written since the transaction began
                continue

    def write(self, change: Callable[[Standing], T]) -> T:
        self._added, self._has_deleted = [], False
        with self._database.writing() as state:
            self._state = state
            before = _standing(state)._replace(generation=state.generation - 1)
            done = change(before)
        self.written_generation = state.generation
        self.read(lambda _: self._catch_up())
        if self._has_deleted:
            maintenance.free_room(self._database)
        return done

    def _catch_up(self) -> None:
        """So that the next search need not."""
        words = words_of(self._language_of(self._state.model))
        self._words.catch_up(self._database, self._state, words, self._added)
        if self._has_deleted:
            self._words.forget_all_but(self._state.n_documents, self._snapshot.places)

    def _language_of(self, model: str) -> str | None:
        if model not in self._languages:
            self.load_model(model)
        return self._languages[model]

    def together(self) -> AbstractContextManager[Write]:
        return nullcontext(self.write)

    def load_model(self, fingerprint: str) -> Hasher:
        hasher = load_model(self._folder, fingerprint)
        self._languages[fingerprint] = hasher.language
        return hasher

    # Writing

    def add(self, batch: list[Coded]) -> None:
        first = add_rows(self._connection, batch)
        self._added = [(place, coded.document) for place, coded in enumerate(batch, first)]

    def upsert(self, batch: list[Coded]) -> None:
        upsert_rows(self._connection, self._state, batch)

    def delete(self, ids: list[Id]) -> int:
        self._has_deleted = True
        return delete_rows(self._connection, self._state, ids)

    def note_unfinished(self, note: dict[str, Any] | None) -> None:
        kept = json.dumps(note) if note is not None else None
        self._connection.execute("UPDATE state SET indexing = ?", (kept,))

    def rehash(self, coder: Coder, batch: int, on_batch: OnBatch | None) -> None:
        self._languages[coder.model] = coder.hasher.language
        rehashing.rehash(self._database, self._folder, coder, batch, on_batch)
        self._added = []
        self.read(lambda _: self._catch_up())

    # Searching

    def top_k(
        self,
        code: Codes,
        k: int,
        conditions: list[Condition],
        *,
        effort: int | None = None,
        whole: bool = False,
    ) -> list[Hit]:
        allowed = self._allowed(conditions)
        if self.passages is None or whole:
            return self._hits(self._snapshot.top_k(code, k, allowed))
        return self._hits_in_passages(BestPassages(self._passages, code).nearest(k, allowed))

    def within(self, code: Codes, radius: int, conditions: list[Condition]) -> list[Hit]:
        allowed = self._allowed(conditions)
        if self.passages is None:
            return self._hits(self._snapshot.within(code, radius, allowed))
        return self._hits_in_passages(BestPassages(self._passages, code).within(radius, allowed))

    def ranked(
        self,
        query: CodedQuery,
        wanted: WordQuery,
        words: Words,
        k: int,
        conditions: list[Condition],
        *,
        by: str,
        whole: bool = False,
    ) -> Found:
        with_phrases = having_phrases(words, partial(documents_at, self._database))
        codes, n = self._codes_to_rank(query, whole=whole), k
        if isinstance(codes, BestPassages):
            n = -(-k // COMPARED) * COMPARED

        def best_of(index: WordIndex) -> Ranked:
            allowed = self._allowed(conditions)
            return rank(index, codes, query, wanted, allowed, with_phrases, n, by=by)

        best = self._words.ask(self._database, self._state, words, self._snapshot.places, best_of)
        if isinstance(codes, BestPassages):
            assert self.passages is not None
            read = partial(cut_at, self._database, self._state)
            in_order = by_best_passages(
                read, best.places, best.scoring, codes.query, words, self.passages
            )
            return Found(list(itertools.islice(in_order, k)), best.matching)
        hits = best.hits(coded_at(self._database, self._state, best.places))
        if self.passages is not None and not whole:
            hits = [hit._replace(passage=Span(0, len(hit.text))) for hit in hits]
        return Found(hits, best.matching)

    def _codes_to_rank(self, query: CodedQuery, *, whole: bool) -> Snapshot | BestPassages:
        """Those of documents if a ranking compares wholes; also if every document is one passage."""
        if whole or self._state.n_passages <= self._state.n_documents:
            return self._snapshot
        assert query.code is not None  # passages are never made from features
        return BestPassages(self._passages, query.code)

    def n_passing(self, conditions: list[Condition]) -> int:
        return int(np.count_nonzero(self.passing(conditions)))

    def passing(self, conditions: list[Condition]) -> Mask:
        mask = np.zeros(self._snapshot.last_place + 1, dtype=np.bool_)
        mask[self._snapshot.places()] = True
        allowed = self._allowed(conditions)
        return mask if allowed is None else mask & allowed

    def may_be_near(self, text: str, words: Words, min_similarity: float) -> Iterable[Document]:
        places = self._words.ask(
            self._database,
            self._state,
            words,
            self._snapshot.places,
            lambda index: places_that_may_be_near(index, words, text, min_similarity),
        )
        if places is None:
            yield from all_documents(self._database)
            return
        for start in range(0, len(places), _COMPARED_AT_ONCE):
            yield from documents_at(self._database, places[start : start + _COMPARED_AT_ONCE])

    def _allowed(self, conditions: list[Condition]) -> Mask | None:
        return self._filter.allowed(self._connection, conditions, self._snapshot)

    def _hits(self, nearest: Hits) -> list[Hit]:
        found = coded_at(self._database, self._state, nearest.ids)
        return [
            Hit(document.id, distance, document, known, code)
            for (document, code, known, _), distance in zip(
                found, nearest.distances.tolist(), strict=True
            )
        ]

    def _hits_in_passages(self, nearest: Hits) -> list[Hit]:
        found = coded_at(self._database, self._state, nearest.ids >> PASSAGE_BITS)
        passages = passages_at(self._database, self._state, nearest.ids)
        return [
            Hit(document.id, distance, document, known, code, passage=span)
            for (document, *_), (span, code, known), distance in zip(
                found, passages, nearest.distances.tolist(), strict=True
            )
        ]

    # Reading

    def find(self, ids: Sequence[Id]) -> dict[Id, Coded]:
        return find_coded(self._database, self._state, ids)

    def documents_at(self, places: Places) -> list[Document]:
        return documents_at(self._database, places)

    def ids_at(self, places: Places) -> list[Id | None]:
        return ids_at(self._database, places)

    def rows(self) -> Rows:
        return self._snapshot.rows()

    def documents(self) -> Iterator[Document]:
        if self._database.is_alone:
            with self._database.reading():
                found = list(all_documents(self._database))
            yield from found
            return
        # On its own connection, so that the generation holds while others are read.
        database = Database(self._folder, self._database.wait)
        try:
            with database.reading():
                yield from all_documents(database)
        finally:
            database.close()

    def page(self, after: int, n: int) -> list[tuple[int, Coded]]:
        return list(coded_after(self._database, self._state, after, n))

    def latest(self, n: int) -> list[Coded]:
        return latest_coded(self._database, self._state, n)

    def coded_here(self) -> Iterator[Coded]:
        return all_coded(self._database, self._state)

    def field_values(self, most: int) -> dict[str, list[FieldValue]]:
        return field_values(self._connection, most)

    def values_of(self, field: str) -> dict[int, Scalar]:
        return values_of(self._connection, field)

    def column(self, field: str) -> Column:
        return self._columns.column(self._connection, field, self._state.generation)

    # Keeping

    def counts(self) -> Counts:
        return maintenance.counts(self._database)._replace(passages=self._state.n_passages)

    def sizes(self) -> dict[str, int]:
        return maintenance.sizes(self._database, self._folder)

    def check(self, hasher: Hasher) -> None:
        maintenance.check(self._database, self._folder, self._state, self._snapshot.rows())
        if self.passages is not None:
            maintenance.check_passages(self._database, self._state, self._passages.rows())

    def backup(self, target: Path) -> None:
        maintenance.backup(self._database, self._folder, target)

    def save_files(self, name: str, files: Sequence[ModelFile]) -> None:
        with atomic_folder(self._folder / name, f"boltzhash {name}") as fresh:
            for file in files:
                (fresh / file.name).write_bytes(file.contents)

    def load_files(self, name: str) -> list[ModelFile]:
        folder = self._folder / name
        if not folder.is_dir():
            return []
        return [ModelFile.of(path.name, path.read_bytes()) for path in sorted(folder.iterdir())]

    def files_version(self, name: str) -> str | None:
        try:
            found = (self._folder / name).stat()
        except OSError:
            return None
        return f"{found.st_ino} {found.st_mtime_ns}"  # the folder is replaced whole

    # Approximate search

    def build_index(self) -> tuple[dict[str, Any], list[int]]:
        raise ValueError(
            f"{self.shown}: a collection in a folder is always searched exactly, in memory; it needs no "
            "approximate index"
        )

    def note_approximate(self, about: dict[str, Any]) -> None:
        raise NotImplementedError  # build_index has refused

    @property
    def _connection(self) -> Any:
        return self._database.connection


def _create(folder: Path, coder: Coder, passages: int | None) -> None:
    if (folder / DATABASE).exists():
        raise exists_already(str(folder))
    with atomic_folder(folder, "boltzhash collection") as fresh:
        save_model(fresh, coder)
        maintenance.make_database(
            fresh,
            lambda connection: create_tables(
                connection, model=coder.model, n_bits=coder.hasher.n_bits, passages=passages
            ),
        )


def _standing(state: State) -> Standing:
    unfinished = json.loads(state.indexing) if state.indexing is not None else None
    return Standing(
        state.generation,
        state.n_documents,
        state.model,
        state.n_bits,
        state.next_model,
        unfinished,
        None,
    )
