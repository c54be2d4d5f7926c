"""One generation of a collection in PostgreSQL: a read transaction, whose snapshot is the server's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection.columns import Column
from boltzhash.collection.filters import Condition
from boltzhash.collection.keeping import check_coded
from boltzhash.collection.postgres.codes import FilteredCodes, PostgresCodes
from boltzhash.collection.postgres.connection import PostgresConnection
from boltzhash.collection.postgres.filters import (
    clause_of,
    original_text,
    original_value,
    storable_text,
)
from boltzhash.collection.postgres.rows import CODED, DOCUMENT, coded_of, document_of, id_of
from boltzhash.collection.postgres.words import WordsReader, WordsWriter
from boltzhash.collection.store import (
    Counts,
    FieldValue,
    Found,
    Mask,
    Places,
    Rows,
    State,
    T,
    all_coded,
    is_closed,
)
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.encoding.coding import Coded, CodedQuery
from boltzhash.errors import CollectionError
from boltzhash.hashers import Hasher
from boltzhash.search.hits import Hit
from boltzhash.search.near_texts import looked_up_for, places_that_may_be_near
from boltzhash.search.ranking import asked_of, having_phrases, rank
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.queries import TermQuery

_PAGE = 1000  # documents fetched at a time


class Numbers(NamedTuple):
    """Those of the table of codes in use, and of that of a rehash under way."""

    codes: int
    next_codes: int


class Owner(Protocol):
    """The store of a snapshot."""

    name: str
    shown: str
    words: WordsReader

    def end(self, connection: PostgresConnection) -> None: ...


class PostgresSnapshot:
    """See :class:`boltzhash.collection.store.StoreSnapshot`."""

    def __init__(
        self, store: Owner, connection: PostgresConnection, state: State, numbers: Numbers
    ) -> None:
        self.state = state
        self._store, self._connection = store, connection
        self._codes = PostgresCodes(self._run, state, numbers.codes)
        self._next_codes = f"codes_{numbers.next_codes}"
        self._is_open = True

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._store.end(self._connection)

    @property
    def _reading(self) -> PostgresConnection:
        if not self._is_open:
            raise is_closed("snapshot of", self._store.shown)
        return self._connection

    def _run(self, sql: str, parameters: Iterable[Any] | None = None, **how: bool) -> Any:
        return self._reading.run(sql, parameters, **how)

    # Searching

    def top_k(
        self,
        code: Codes,
        k: int,
        conditions: list[Condition],
        *,
        whole: bool = False,
    ) -> list[Hit]:
        return self._hits(*self._codes.nearest(code, k, conditions))

    def within(self, code: Codes, radius: int, conditions: list[Condition]) -> list[Hit]:
        return self._hits(*self._codes.within(code, radius, conditions))

    def _hits(self, nearest: str, parameters: list[Any]) -> list[Hit]:
        rows = self._run(
            f"SELECT near.distance, {CODED} FROM ({nearest}) AS near JOIN documents USING (place) "
            f"JOIN {self._codes.table} USING (place) ORDER BY near.distance, place",
            parameters,
        )
        found = ((int(distance), coded_of(*columns)) for distance, *columns in rows)
        return [
            Hit(coded.document.id, distance, coded.document, coded.known, coded.code)
            for distance, coded in found
        ]

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
        index = self._store.words.index(self._reading, words, asked_of(wanted))
        allowed = self._passing(conditions, index.size) if conditions else None
        codes = FilteredCodes(self._run, self._codes, conditions, allowed)
        with_phrases = partial(having_phrases, words, self.documents_at)
        best = rank(index, codes, query, wanted, allowed, with_phrases, k, by=by)
        found = dict(self._at(best.places, CODED, coded_of, self._codes.with_documents))
        hits = best.hits(found[place] for place in best.places.tolist())
        return Found(hits, best.matching)

    def passing(self, conditions: list[Condition]) -> Mask:
        ((last,),) = self._run("SELECT last_place FROM state")
        return self._passing(conditions, int(last) + 1)

    def _passing(self, conditions: list[Condition], size: int) -> Mask:
        where = clause_of(conditions, "documents.fields")
        ((places,),) = self._run(
            f"SELECT string_agg(int8send(place), ''::bytea) FROM documents WHERE {where.sql}",
            where.parameters,
            binary=True,
        )
        mask = np.zeros(size, dtype=np.bool_)
        mask[np.frombuffer(places or b"", ">i8")] = True
        return mask

    def may_be_near(self, text: str, words: Analyzer, min_similarity: float) -> Iterable[Document]:
        index = self._store.words.index(self._reading, words, looked_up_for(words, text))
        places = places_that_may_be_near(index, words, text, min_similarity)
        if places is None:
            yield from (coded.document for coded in all_coded(self))
            return
        for start in range(0, len(places), _PAGE):
            yield from self.documents_at(places[start : start + _PAGE])

    # Reading

    def find(self, ids: Sequence[Id]) -> dict[Id, Coded]:
        places = list(places_of(self._run, ids).values())
        rows = self._run(
            f"SELECT {CODED} FROM {self._codes.with_documents} WHERE place = ANY (%s)", [places]
        )
        return {coded.document.id: coded for coded in (coded_of(*row) for row in rows)}

    def documents_at(self, places: Places) -> list[Document]:
        found = dict(self._at(places, DOCUMENT, document_of))
        if missing := set(places.tolist()) - found.keys():
            raise CollectionError(
                f"{self._store.shown} is damaged: document number {min(missing)} is missing"
            )
        return [found[place] for place in places.tolist()]

    def ids_at(self, places: Places) -> list[Id | None]:
        found = dict(self._at(places, "documents.number, documents.name", id_of))
        return [found.get(place) for place in places.tolist()]

    def _at(
        self, places: Places, columns: str, made: Callable[..., T], source: str = "documents"
    ) -> Iterator[tuple[int, T]]:
        rows = self._run(
            f"SELECT place, {columns} FROM {source} WHERE place = ANY (%s)", [places.tolist()]
        )
        return ((place, made(*values)) for place, *values in rows)

    def rows(self) -> Rows:
        return self._codes.rows()

    def page(self, after: int, n: int) -> list[tuple[int, Coded]]:
        rows = self._run(
            f"SELECT place, {CODED} FROM documents LEFT JOIN {self._codes.table} USING (place) "
            "WHERE place > %s ORDER BY place LIMIT %s",
            [after, n],
        ).fetchall()
        if any(row[-1] is None for row in rows):
            raise CollectionError(f"{self._store.shown} is damaged: a document has no code")
        return [(place, coded_of(*columns)) for place, *columns in rows]

    def latest(self, n: int) -> list[Coded]:
        rows = self._run(
            f"SELECT {CODED} FROM {self._codes.with_documents} ORDER BY place DESC LIMIT %s", [n]
        )
        return [coded_of(*columns) for columns in rows][::-1]

    def field_values(self, most: int) -> dict[str, list[FieldValue]]:
        values: dict[str, list[FieldValue]] = {}
        for field, value, count in self._run(
            "SELECT key, value::text, n FROM (SELECT key, one AS value, count(*) AS n, row_number() "
            "OVER (PARTITION BY key ORDER BY count(*) DESC, one) AS rank FROM documents, "
            "jsonb_each(fields), jsonb_path_query(value, '$[*]') AS one GROUP BY key, one) AS counted "
            'WHERE rank <= %s ORDER BY key COLLATE "C", rank',
            [most],
        ):
            shown = FieldValue(original_value(value), count)
            values.setdefault(original_text(field), []).append(shown)
        return values

    def column(self, field: str) -> Column:
        rows = self._run(
            "SELECT place, one::text FROM documents, jsonb_path_query(fields -> %s, '$[*]') AS one",
            [storable_text(field)],
        )
        return Column.of((place, original_value(value)) for place, value in rows)

    # Keeping

    def counts(self) -> Counts:
        ((unknown,),) = self._run(f"SELECT count(*) FROM {self._codes.table} WHERE NOT known")
        rehashed = 0
        if self.state.next_model is not None:
            ((rehashed,),) = self._run(f"SELECT count(*) FROM {self._next_codes}")
        return Counts(int(unknown), int(rehashed))

    def sizes(self) -> dict[str, int]:
        rows = self._run(
            "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class "
            "WHERE relnamespace = %s::regnamespace AND relkind = 'r'",
            [f'"{self._store.name}"'],
        ).fetchall()
        sizes = {name: int(size) for name, size, _ in rows if name != "state"}
        return {**sizes, "indexes": sum(int(indexes) for _, _, indexes in rows)}

    def check(self, hasher: Hasher) -> None:
        n, shown = self.state.n_documents, self._store.shown
        ((n_codes,),) = self._run(f"SELECT count(*) FROM {self._codes.table}")
        if n_codes != n:
            raise CollectionError(
                f"{shown} is damaged: it counts {n} documents and has {n_codes} codes"
            )
        check_coded(self, shown, hasher)
        WordsWriter(self._reading).check(n, self.documents_at)


def places_of(run: Callable[..., Any], ids: Iterable[Id]) -> dict[Id, int]:
    """The places of the documents with these ids."""
    every = list(ids)
    numbers = [id_ for id_ in every if isinstance(id_, int)]
    names = [storable_text(id_) for id_ in every if isinstance(id_, str)]
    rows = run(
        "SELECT number, name, place FROM documents WHERE number = ANY (%s::bigint[]) UNION ALL "
        "SELECT number, name, place FROM documents WHERE name = ANY (%s::text[])",
        [numbers, names],
    )
    return {id_of(number, name): place for number, name, place in rows}
