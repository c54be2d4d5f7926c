"""One generation of a collection in a folder: a read transaction, and copies of codes and words."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from boltzhash.codes import Codes
from boltzhash.collection.columns import Column
from boltzhash.collection.filters import Condition
from boltzhash.collection.sqlite import maintenance
from boltzhash.collection.sqlite.codes import PackedCodes
from boltzhash.collection.sqlite.database import Database, StateRow
from boltzhash.collection.sqlite.filters import FieldFilter, field_values
from boltzhash.collection.sqlite.passages import BestPassages
from boltzhash.collection.sqlite.reads import (
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
from boltzhash.collection.sqlite.schema import PASSAGE_BITS
from boltzhash.collection.sqlite.words import WordSegments
from boltzhash.collection.store import (
    Counts,
    FieldValue,
    Found,
    Mask,
    Places,
    Rows,
    State,
    is_closed,
)
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.encoding.coding import Coded, CodedQuery
from boltzhash.hashers import Hasher
from boltzhash.search.hits import Hit, Hits
from boltzhash.search.inverted import WordIndex
from boltzhash.search.near_texts import places_that_may_be_near
from boltzhash.search.passages import COMPARED, by_best_passages
from boltzhash.search.ranking import having_phrases, rank
from boltzhash.search.segments import DamagedSegmentError
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.passages import Span
from boltzhash.text.queries import TermQuery

T = TypeVar("T")

_COMPARED_AT_ONCE = 100
_TRIES = 3


class Copies:
    """The codes of one generation and what is computed from them, shared by its snapshots."""

    def __init__(self, codes: PackedCodes, passages: PackedCodes, words: WordSegments) -> None:
        self.codes = codes
        self.passages = passages  # empty if documents are not cut
        self.words = words  # the segments to begin with
        self.filter = FieldFilter(codes)
        self.index: tuple[Analyzer, WordIndex] | None = None


class Owner(Protocol):
    """The store of a snapshot."""

    shown: str
    folder: Path

    def keep(self, database: Database) -> None: ...

    def follow_words(
        self, copies: Copies, database: Database, row: StateRow, words: Analyzer
    ) -> WordSegments: ...

    def forget_words(self, copies: Copies, error: DamagedSegmentError) -> None: ...


class SqliteSnapshot:
    """See :class:`boltzhash.collection.store.StoreSnapshot`."""

    def __init__(self, store: Owner, database: Database, row: StateRow, copies: Copies) -> None:
        self._store, self._database, self._row, self.copies = store, database, row, copies
        self._is_open = True
        self.state = state_of(row)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._database.end()
            self._store.keep(self._database)

    @property
    def _reading(self) -> Database:
        if not self._is_open:
            raise is_closed("snapshot of", self._store.shown)
        return self._database

    # Searching

    def top_k(
        self,
        code: Codes,
        k: int,
        conditions: list[Condition],
        *,
        whole: bool = False,
    ) -> list[Hit]:
        allowed = self.copies.filter.allowed(self._reading, conditions)
        if self._row.passage_words is None or whole:
            return self._hits(self.copies.codes.top_k(code, k, allowed))
        return self._hits_in_passages(BestPassages(self.copies.passages, code).nearest(k, allowed))

    def within(self, code: Codes, radius: int, conditions: list[Condition]) -> list[Hit]:
        allowed = self.copies.filter.allowed(self._reading, conditions)
        if self._row.passage_words is None:
            return self._hits(self.copies.codes.within(code, radius, allowed))
        return self._hits_in_passages(
            BestPassages(self.copies.passages, code).within(radius, allowed)
        )

    def ranked(
        self,
        query: CodedQuery,
        wanted: TermQuery,
        words: Analyzer,
        k: int,
        conditions: list[Condition],
        *,
        by: str,
        whole: bool = False,
    ) -> Found:
        database, row = self._reading, self._row
        with_phrases = partial(having_phrases, words, partial(documents_at, database))
        allowed = self.copies.filter.allowed(database, conditions)
        codes, n = self._codes_to_rank(query, whole=whole), k
        if isinstance(codes, BestPassages):
            n = -(-k // COMPARED) * COMPARED
        best = self._asked(
            words,
            partial(
                rank,
                codes=codes,
                query=query,
                wanted=wanted,
                allowed=allowed,
                with_phrases=with_phrases,
                k=n,
                by=by,
            ),
        )
        if isinstance(codes, BestPassages):
            assert row.passage_words is not None
            in_order = by_best_passages(
                partial(cut_at, database, row),
                best.places,
                best.scoring,
                codes.query,
                words,
                row.passage_words,
            )
            return Found(list(itertools.islice(in_order, k)), best.matching)
        hits = best.hits(coded_at(database, row, best.places))
        if row.passage_words is not None and not whole:
            hits = [hit._replace(passage=Span(0, len(hit.text))) for hit in hits]
        return Found(hits, best.matching)

    def _codes_to_rank(self, query: CodedQuery, *, whole: bool) -> PackedCodes | BestPassages:
        """Those of documents if a ranking compares wholes; also if every document is one passage."""
        if whole or self._row.n_passages <= self._row.n_documents:
            return self.copies.codes
        assert query.code is not None  # passages are never made from features
        return BestPassages(self.copies.passages, query.code)

    def may_be_near(self, text: str, words: Analyzer, min_similarity: float) -> Iterable[Document]:
        places = self._asked(
            words, lambda index: places_that_may_be_near(index, words, text, min_similarity)
        )
        if places is None:
            yield from all_documents(self._reading)
            return
        for start in range(0, len(places), _COMPARED_AT_ONCE):
            yield from self.documents_at(places[start : start + _COMPARED_AT_ONCE])

    def _asked(self, words: Analyzer, question: Callable[[WordIndex], T]) -> T:
        """The answer of the index of words, which is made again if its files are damaged."""
        n_left = _TRIES
        while True:
            try:
                made = self.copies.index
                if made is None or made[0] is not words:
                    found = self._store.follow_words(self.copies, self._reading, self._row, words)
                    segments = [one.segment for one in found.segments if one.segment is not None]
                    made = words, WordIndex(segments, self.copies.codes.places())
                    self.copies.index = made
                return question(made[1])
            except DamagedSegmentError as error:
                if not n_left:
                    raise
                n_left -= 1
                self._store.forget_words(self.copies, error)

    def _hits(self, nearest: Hits) -> list[Hit]:
        found = coded_at(self._reading, self._row, nearest.ids)
        return [
            Hit(document.id, distance, document, known, code)
            for (document, code, known, _), distance in zip(
                found, nearest.distances.tolist(), strict=True
            )
        ]

    def _hits_in_passages(self, nearest: Hits) -> list[Hit]:
        found = coded_at(self._reading, self._row, nearest.ids >> PASSAGE_BITS)
        passages = passages_at(self._reading, self._row, nearest.ids)
        return [
            Hit(document.id, distance, document, known, code, passage=span)
            for (document, *_), (span, code, known), distance in zip(
                found, passages, nearest.distances.tolist(), strict=True
            )
        ]

    def passing(self, conditions: list[Condition]) -> Mask:
        allowed = self.copies.filter.allowed(self._reading, conditions)
        return self.copies.filter.everywhere() if allowed is None else allowed

    # Reading

    def find(self, ids: Sequence[Id]) -> dict[Id, Coded]:
        return find_coded(self._reading, self._row, ids)

    def documents_at(self, places: Places) -> list[Document]:
        return documents_at(self._reading, places)

    def ids_at(self, places: Places) -> list[Id | None]:
        return ids_at(self._reading, places)

    def rows(self) -> Rows:
        return self.copies.codes.rows()

    def page(self, after: int, n: int) -> list[tuple[int, Coded]]:
        return list(coded_after(self._reading, self._row, after, n))

    def latest(self, n: int) -> list[Coded]:
        return latest_coded(self._reading, self._row, n)

    def field_values(self, most: int) -> dict[str, list[FieldValue]]:
        return field_values(self._reading, most)

    def column(self, field: str) -> Column:
        return self.copies.filter.column(self._reading, field)

    # Keeping

    def counts(self) -> Counts:
        return maintenance.counts(self._reading, self._row)

    def sizes(self) -> dict[str, int]:
        return maintenance.sizes(self._reading, self._store.folder)

    def check(self, hasher: Hasher) -> None:
        folder, rows = self._store.folder, self.copies.codes.rows()
        with self._reading.lock, self._reading.plain_errors():
            maintenance.check(self._reading, folder, self._row, rows)
            if self._row.passage_words is not None:
                passages = self.copies.passages.rows()
                maintenance.check_passages(self._reading, self._row, passages)


def state_of(row: StateRow) -> State:
    unfinished = None if row.unfinished is None else json.loads(row.unfinished)
    parts = row.model, row.n_bits, row.next_model, unfinished
    return State(row.generation, row.token, row.n_documents, *parts)
