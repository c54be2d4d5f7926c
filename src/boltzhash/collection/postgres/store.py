"""A collection in PostgreSQL with pgvector: every write a transaction, every search one snapshot."""

from __future__ import annotations

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
from boltzhash.collection.keeping import check_coded, copy_to_folder
from boltzhash.collection.locations import Location
from boltzhash.collection.models import Coder
from boltzhash.collection.postgres.codes import (
    CANDIDATES,
    FilteredCodes,
    distance_to,
    nearest_codes,
    places_passing,
    source_of,
)
from boltzhash.collection.postgres.connection import PostgresConnection
from boltzhash.collection.postgres.filters import (
    clause_of,
    original_text,
    original_value,
    storable_text,
)
from boltzhash.collection.postgres.rehash import rehash_all, rehash_step
from boltzhash.collection.postgres.rows import (
    CODED,
    DOCUMENT,
    bits_of,
    code_of,
    coded_of,
    document_of,
    id_of,
    row_of,
)
from boltzhash.collection.postgres.schema import (
    APPROXIMATE,
    NOT_APPROXIMATE,
    TABLES,
    codes_table,
)
from boltzhash.collection.postgres.words import PostgresWords, language_of
from boltzhash.collection.store import (
    FORMAT_VERSION,
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
    check_format_version,
    exists_already,
    last_of_each,
    no_such_collection,
    refuse_taken,
)
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id, Scalar
from boltzhash.encoding.coding import Coded, CodedQuery
from boltzhash.encoding.model_files import ModelFile, model_from_files, model_to_files
from boltzhash.errors import CollectionError
from boltzhash.hashers import Hasher
from boltzhash.search.hits import Hit
from boltzhash.search.near_texts import looked_up_for, places_that_may_be_near
from boltzhash.search.ranking import asked_of, having_phrases, rank
from boltzhash.text.words import WordQuery, Words

_STATE = "generation, n_documents, model, n_bits, next_model, unfinished, approximate"
_BESIDE = "beside/"  # tells files beside the documents from those of models
_PAGE = 1000  # documents fetched at a time


class PostgresStore:
    """One connection. ``coder`` is given if the collection is to be created."""

    passages: int | None = None

    def __init__(self, location: Location, wait: float, coder: Coder | None = None) -> None:
        self._name = location.name
        self.written_generation: int | None = None
        self.shown = location.shown()
        self._connection = PostgresConnection(location, wait)
        self._run = self._connection.run
        self._words = PostgresWords(self._connection)
        try:
            with self._connection.plain_errors():
                if coder is not None:
                    self._create(coder)
                self._check_format()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    # Transactions

    def read(self, answer: Callable[[Standing], T]) -> T:
        with self._connection.transaction("ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            # Before the snapshot, so that a rehash cannot swap the table behind its back.
            self._run("LOCK TABLE codes IN ACCESS SHARE MODE")
            return answer(self._standing())

    def write(self, change: Callable[[Standing], T]) -> T:
        with self._connection.transaction():
            # The lock on the one row makes writers take turns.
            standing = self._standing(" FOR UPDATE")
            done = change(standing)
            self._run("UPDATE state SET generation = generation + 1")
        self.written_generation = standing.generation + 1
        return done

    def together(self) -> AbstractContextManager[Write]:
        return nullcontext(self.write)

    def _standing(self, lock: str = "") -> Standing:
        row = self._run(f"SELECT {_STATE} FROM state{lock}").fetchone()
        if row is None:
            raise CollectionError(f"{self.shown} is damaged: it has no state")
        return Standing(*row)

    # Making and opening

    def _create(self, coder: Coder) -> None:
        (encoding,) = self._run("SHOW server_encoding").fetchone()
        if encoding != "UTF8":
            raise CollectionError(f"{self.shown}: the database must be UTF8, got {encoding}")
        if self._run("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self._name]).fetchone():
            raise exists_already(self.shown)
        with self._connection.transaction():
            self._run("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            self._run(f'CREATE SCHEMA "{self._name}"')
            self._run(TABLES)
            self._run(codes_table("codes", coder.hasher.n_bits))
            self._put_files(coder.model, model_to_files(coder.hasher))
            self._run(
                "INSERT INTO state (format_version, generation, n_documents, last_place, model, n_bits, "
                "language, word_rules) VALUES (%s, 0, 0, 0, %s, %s, '', '')",
                [FORMAT_VERSION, coder.model, coder.hasher.n_bits],
            )
            self._words.make(language_of(coder.hasher), [])
        self._connection.connect_anew()  # now with the schema of the extension in the path

    def _check_format(self) -> None:
        if self._run("SELECT to_regclass(%s)", [f'"{self._name}".state']).fetchone() == (None,):
            raise no_such_collection(self.shown)
        (version,) = self._run("SELECT format_version FROM state").fetchone()
        check_format_version(version, self.shown)
        if not self._words.are_ours():
            self.write(self._make_words)

    def _make_words(self, standing: Standing) -> None:
        """Make the words again where another version of PyStemmer has made them."""
        if not self._words.are_ours():  # another client may have been faster
            language = language_of(self.load_model(standing.model))
            self._words.make(language, self._placed_documents())

    def _switch_words(self, hasher: Hasher) -> None:
        """Make them again if the words of this hasher are of another language."""
        if language_of(hasher) != self._words.language():
            self._words.make(language_of(hasher), self._placed_documents())

    def _placed_documents(self) -> Iterator[tuple[int, Document]]:
        statement = f"SELECT place, {DOCUMENT} FROM documents ORDER BY place"
        rows = _paged(self._connection.psycopg, statement)
        return ((place, document_of(*columns)) for place, *columns in rows)

    def load_model(self, fingerprint: str) -> Hasher:
        return model_from_files(self._files(fingerprint), fingerprint, self.shown)

    # Files: models by their fingerprints, and what is kept beside the documents by its name

    def save_files(self, name: str, files: Sequence[ModelFile]) -> None:
        with self._connection.transaction():
            self._put_files(_BESIDE + name, files)

    def _put_files(self, name: str, files: Sequence[ModelFile]) -> None:
        self._run("DELETE FROM models WHERE fingerprint = %s", [name])
        for file in files:
            self._run("INSERT INTO models VALUES (%s, %s, %s, %s)", [name, *file])

    def load_files(self, name: str) -> list[ModelFile]:
        return self._files(_BESIDE + name)

    def _files(self, name: str) -> list[ModelFile]:
        with self._connection.plain_errors():
            rows = self._run(
                "SELECT file, sha256, contents FROM models WHERE fingerprint = %s ORDER BY file",
                [name],
            ).fetchall()
        return [ModelFile(*row) for row in rows]

    def files_version(self, name: str) -> str | None:
        with self._connection.plain_errors():
            (version,) = self._run(
                "SELECT string_agg(sha256, ' ' ORDER BY file) FROM models WHERE fingerprint = %s",
                [_BESIDE + name],
            ).fetchone()
        return str(version) if version is not None else None

    # Writing

    def add(self, batch: list[Coded]) -> None:
        refuse_taken(batch, self._places([coded.document.id for coded in batch]))
        first = self._new_places(len(batch))
        self._copy({first + i: coded for i, coded in enumerate(batch)})

    def upsert(self, batch: list[Coded]) -> None:
        last = last_of_each(batch)
        places = self._places(list(last))
        self._remove(list(places.values()))
        first = self._new_places(len(last) - len(places))
        new = (id_ for id_ in last if id_ not in places)
        overwritten = list(places.values())
        places.update({id_: place for place, id_ in enumerate(new, first)})
        self._copy({places[id_]: coded for id_, coded in last.items()}, overwritten)

    def delete(self, ids: list[Id]) -> int:
        places = list(self._places(ids).values())
        self._remove(places)
        self._words.put({}, places)
        self._run("UPDATE state SET n_documents = n_documents - %s", [len(places)])
        return len(places)

    def _places(self, ids: list[Id]) -> dict[Id, int]:
        numbers = [id_ for id_ in ids if isinstance(id_, int)]
        names = [storable_text(id_) for id_ in ids if isinstance(id_, str)]
        rows = self._run(
            "SELECT number, name, place FROM documents WHERE number = ANY (%s::bigint[]) UNION ALL "
            "SELECT number, name, place FROM documents WHERE name = ANY (%s::text[])",
            [numbers, names],
        )
        return {id_of(number, name): place for number, name, place in rows}

    def _new_places(self, n: int) -> int:
        """The first of n places that have never been used."""
        (last,) = self._run(
            "UPDATE state SET last_place = last_place + %s, n_documents = n_documents + %s "
            "RETURNING last_place",
            [n, n],
        ).fetchone()
        return int(last) - n + 1

    def _remove(self, places: list[int]) -> None:
        for table in self._tables():
            self._run(f"DELETE FROM {table} WHERE place = ANY (%s)", [places])

    def _tables(self) -> list[str]:
        rehashing = self._run("SELECT next_model IS NOT NULL FROM state").fetchone() == (True,)
        return ["documents", "codes", *(["next_codes"] if rehashing else [])]

    def _copy(self, rows: dict[int, Coded], overwritten: Sequence[int] = ()) -> None:
        self._connection.copy_rows(
            "documents (place, number, name, text, metadata, fields)",
            (row_of(place, coded.document) for place, coded in rows.items()),
        )
        self._connection.copy_rows(
            "codes (place, code, known)",
            ((place, bits_of(coded.code), coded.known) for place, coded in rows.items()),
        )
        self._words.put({place: coded.document for place, coded in rows.items()}, overwritten)

    def note_unfinished(self, note: dict[str, Any] | None) -> None:
        kept = json.dumps(note) if note is not None else None
        self._run("UPDATE state SET unfinished = %s", [kept])

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
        near, parameters = nearest_codes(self._connection, code, k, conditions, effort)
        nearest = f"SELECT * FROM ({near}) AS near ORDER BY distance, place LIMIT %s"
        return self._hits(nearest, [*parameters, k])

    def within(self, code: Codes, radius: int, conditions: list[Condition]) -> list[Hit]:
        where = clause_of(conditions, "documents.fields")
        bits = bits_of(code.tobytes())
        near = (
            f"SELECT place, {distance_to(bits)} AS distance FROM {source_of(conditions)} "
            f"WHERE {distance_to(bits)} <= %s AND {where.sql}"
        )
        return self._hits(near, [bits, bits, radius, *where.parameters])

    def _hits(self, nearest: str, parameters: list[Any]) -> list[Hit]:
        rows = self._run(
            f"SELECT near.distance, {CODED} FROM ({nearest}) AS near JOIN documents USING (place) "
            "JOIN codes USING (place) ORDER BY near.distance, place",
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
        wanted: WordQuery,
        words: Words,
        k: int,
        conditions: list[Condition],
        *,
        by: str,
        whole: bool = False,
    ) -> Found:
        index = self._words.index(words, asked_of(wanted))
        codes = FilteredCodes(self._connection, conditions, index.size)

        with_phrases = having_phrases(words, self.documents_at)
        best = rank(index, codes, query, wanted, codes.allowed, with_phrases, k, by=by)
        found = dict(self._at(best.places, CODED, coded_of, "documents JOIN codes USING (place)"))
        hits = best.hits(found[place] for place in best.places.tolist())
        return Found(hits, best.matching)

    def n_passing(self, conditions: list[Condition]) -> int:
        where = clause_of(conditions, "documents.fields")
        found = self._run(f"SELECT count(*) FROM documents WHERE {where.sql}", where.parameters)
        return int(found.fetchone()[0])

    def passing(self, conditions: list[Condition]) -> Mask:
        (last,) = self._run("SELECT last_place FROM state").fetchone()
        return places_passing(self._connection, conditions, int(last) + 1)

    def may_be_near(self, text: str, words: Words, min_similarity: float) -> Iterable[Document]:
        index = self._words.index(words, looked_up_for(words, text))
        places = places_that_may_be_near(index, words, text, min_similarity)
        if places is None:
            yield from (document for _, document in self._placed_documents())
            return
        for start in range(0, len(places), _PAGE):
            yield from self.documents_at(places[start : start + _PAGE])

    # Reading

    def find(self, ids: Sequence[Id]) -> dict[Id, Coded]:
        places = list(self._places(list(ids)).values())
        rows = self._run(
            f"SELECT {CODED} FROM documents JOIN codes USING (place) WHERE place = ANY (%s)",
            [places],
        )
        return {coded.document.id: coded for coded in (coded_of(*row) for row in rows)}

    def documents_at(self, places: Places) -> list[Document]:
        found = dict(self._at(places, DOCUMENT, document_of))
        if missing := set(places.tolist()) - found.keys():
            raise CollectionError(
                f"{self.shown} is damaged: document number {min(missing)} is missing"
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
        (n_bits,) = self._run("SELECT n_bits FROM state").fetchone()
        found = self._run("SELECT place, code::text, known FROM codes ORDER BY place").fetchall()
        codes = b"".join(code_of(bits) for _, bits, _ in found)
        return Rows(
            np.array([row[0] for row in found], dtype=np.int64),
            np.frombuffer(codes, np.uint8).reshape(len(found), n_bits // 8),
            np.array([row[2] for row in found], dtype=np.bool_),
        )

    def page(self, after: int, n: int) -> list[tuple[int, Coded]]:
        rows = self._run(
            f"SELECT place, {CODED} FROM documents JOIN codes USING (place) WHERE place > %s "
            "ORDER BY place LIMIT %s",
            [after, n],
        )
        return [(place, coded_of(*columns)) for place, *columns in rows]

    def latest(self, n: int) -> list[Coded]:
        rows = self._run(
            f"SELECT {CODED} FROM documents JOIN codes USING (place) ORDER BY place DESC LIMIT %s",
            [n],
        )
        return [coded_of(*columns) for columns in rows][::-1]

    def documents(self) -> Iterator[Document]:
        # On its own connection, so that the snapshot holds while others are read.
        connection = self._connection.connected()
        try:
            with self._connection.plain_errors():
                connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                statement = f"SELECT {DOCUMENT} FROM documents ORDER BY place"
                yield from (document_of(*row) for row in _paged(connection, statement))
        finally:
            connection.close()

    def coded_here(self) -> Iterator[Coded]:
        statement = f"SELECT {CODED} FROM documents LEFT JOIN codes USING (place) ORDER BY place"
        for row in _paged(self._connection.psycopg, statement):
            if row[-1] is None:
                raise CollectionError(f"{self.shown} is damaged: a document has no code")
            yield coded_of(*row)

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

    def values_of(self, field: str) -> dict[int, Scalar]:
        name = storable_text(field)
        rows = self._run(
            "SELECT place, (fields -> %s)::text FROM documents WHERE fields ? %s AND "
            "jsonb_typeof(fields -> %s) <> 'array'",
            [name, name, name],
        )
        return {place: original_value(value) for place, value in rows}

    def column(self, field: str) -> Column:
        rows = self._run(
            "SELECT place, one::text FROM documents, jsonb_path_query(fields -> %s, '$[*]') AS one",
            [storable_text(field)],
        )
        return Column.of((place, original_value(value)) for place, value in rows)

    # Keeping

    def counts(self) -> Counts:
        (unknown,) = self._run("SELECT count(*) FROM codes WHERE NOT known").fetchone()
        rehashed = 0
        if "next_codes" in self._tables():
            (rehashed,) = self._run("SELECT count(*) FROM next_codes").fetchone()
        return Counts(int(unknown), int(rehashed))

    def check(self, hasher: Hasher) -> None:
        (n_codes,) = self._run("SELECT count(*) FROM codes").fetchone()
        standing = self._standing()
        if n_codes != standing.n_documents:
            raise CollectionError(
                f"{self.shown} is damaged: it counts {standing.n_documents} documents and has "
                f"{n_codes} codes"
            )
        check_coded(self, standing, hasher)
        self._words.check(standing.n_documents, self.documents_at)

    def backup(self, target: Path) -> None:
        copy_to_folder(self, target)

    def sizes(self) -> dict[str, int]:
        rows = self._run(
            "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class "
            "WHERE relnamespace = %s::regnamespace AND relkind = 'r'",
            [f'"{self._name}"'],
        ).fetchall()
        sizes = {name: int(size) for name, size, _ in rows if name != "state"}
        return {**sizes, "indexes": sum(int(indexes) for _, _, indexes in rows)}

    def rehash(self, coder: Coder, batch: int, on_batch: OnBatch | None) -> None:
        if self.write(lambda standing: self._start_rehash(standing, coder)):
            (n_done,) = self._run("SELECT count(*) FROM next_codes").fetchone()
            switch_words = partial(self._switch_words, coder.hasher)
            step = partial(rehash_step, self._connection, coder, switch_words)
            rehash_all(
                lambda last: self.write(partial(step, last=last, batch=batch)), n_done, on_batch
            )

    def _start_rehash(self, standing: Standing, coder: Coder) -> bool:
        """Note what is to be done; False if the codes are already this model's."""
        if standing.model == coder.model:
            return False
        if standing.next_model != coder.model:
            self._run(  # those of earlier rehashes
                "DELETE FROM models WHERE fingerprint <> %s AND NOT starts_with(fingerprint, %s)",
                [standing.model, _BESIDE],
            )
            self._put_files(coder.model, model_to_files(coder.hasher))
            self._run("DROP TABLE IF EXISTS next_codes")
            self._run(codes_table("next_codes", coder.hasher.n_bits))
            self._run("UPDATE state SET next_model = %s", [coder.model])
        return True

    # Approximate search

    def build_index(self) -> tuple[dict[str, Any], list[int]]:
        def build(_: Standing) -> None:
            self._run(NOT_APPROXIMATE)
            self._run(APPROXIMATE)
            self._run("UPDATE state SET approximate = NULL")  # until its recall is measured

        self.write(build)
        with self._connection.plain_errors():
            self._run("ANALYZE codes, distinct_codes")
        return {"index": "hnsw"}, CANDIDATES

    def note_approximate(self, about: dict[str, Any]) -> None:
        self.write(lambda _: self._run("UPDATE state SET approximate = %s", [json.dumps(about)]))


def _paged(connection: Any, statement: str) -> Iterator[Any]:
    """The rows of a statement inside a transaction, a page at a time."""
    connection.execute(f"DECLARE everything NO SCROLL CURSOR FOR {statement}".encode())
    fetch = f"FETCH {_PAGE} FROM everything".encode()
    while rows := connection.execute(fetch).fetchall():
        yield from rows
    connection.execute(b"CLOSE everything")
