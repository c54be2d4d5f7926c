"""A collection in PostgreSQL with pgvector: every write a transaction, every search one snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection.addresses import Address
from boltzhash.collection.codes_file import Rows
from boltzhash.collection.documents import Id
from boltzhash.collection.filters import Condition
from boltzhash.collection.model_files import ModelFile, model_from_files, model_to_files
from boltzhash.collection.postgres_connection import PostgresConnection
from boltzhash.collection.postgres_filters import (
    clause_of,
    fields_json,
    original_text,
    storable_text,
)
from boltzhash.collection.postgres_schema import TABLES, codes_table
from boltzhash.collection.store import FORMAT_VERSION, Found, Standing, T
from boltzhash.collection.writes import Coded
from boltzhash.corpus import Document
from boltzhash.errors import CollectionError, DuplicateIdError
from boltzhash.hashers import Hasher

_STATE = "generation, n_documents, model, n_bits, next_model, approximate"
_DOCUMENT = "documents.number, documents.name, documents.text, documents.metadata::text"
_LONGEST_NAME = 2000  # bytes of an id that a unique index can hold
_PAGE = 1000  # documents fetched at a time
_MOST_CANDIDATES = 1000  # pgvector's own limit of hnsw.ef_search


class PostgresStore:
    """One connection. ``hasher`` is given where the collection is to be made."""

    def __init__(self, address: Address, name: str, hasher: Hasher | None, wait: float) -> None:
        self._name = name
        self.shown = f"{address.shown()}, collection {name}"
        self._connection = PostgresConnection(address, name, self.shown, wait)
        self._run = self._connection.run
        try:
            with self._connection.plain_errors():
                if hasher is not None:
                    self._create(hasher)
                self._check_format()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    # Transactions

    def read(self, answer: Callable[[Standing], T]) -> T:
        with self._connection.transaction("ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            # Before the snapshot: so that a rehash cannot exchange the table behind it.
            self._run("LOCK TABLE codes IN ACCESS SHARE MODE")
            return answer(self._standing())

    def write(self, change: Callable[[Standing], T]) -> T:
        with self._connection.transaction():
            # The lock on the one row makes writers take turns.
            standing = self._standing(" FOR UPDATE")
            done = change(standing)
            self._run("UPDATE state SET generation = generation + 1")
            return done

    def _standing(self, lock: str = "") -> Standing:
        row = self._run(f"SELECT {_STATE} FROM state{lock}").fetchone()
        if row is None:
            raise CollectionError(f"{self.shown} is damaged: it has no state")
        return Standing(*row)

    # Making and opening

    def _create(self, hasher: Hasher) -> None:
        (encoding,) = self._run("SHOW server_encoding").fetchone()
        if encoding != "UTF8":
            raise CollectionError(f"{self.shown}: the database must be UTF8, got {encoding}")
        if self._run("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self._name]).fetchone():
            raise FileExistsError(
                f"{self.shown} is there already: connect without create, or drop the schema first"
            )
        with self._connection.transaction():
            self._run("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            self._run(f'CREATE SCHEMA "{self._name}"')
            self._run(TABLES)
            self._run(codes_table("codes", hasher.n_bits))
            self._save_model(hasher)
            self._run(
                "INSERT INTO state VALUES (TRUE, %s, 0, 0, 0, %s, %s)",
                [FORMAT_VERSION, hasher.fingerprint(), hasher.n_bits],
            )
        self._connection.connect_anew()  # now with the schema of the extension in the path

    def _check_format(self) -> None:
        if self._run("SELECT to_regclass(%s)", [f'"{self._name}".state']).fetchone() == (None,):
            raise CollectionError(
                f"{self.shown}: there is no such collection; create=True makes it"
            )
        (version,) = self._run("SELECT format_version FROM state").fetchone()
        if version > FORMAT_VERSION:
            raise CollectionError(
                f"{self.shown} has format version {version}; this boltzhash reads up to "
                f"{FORMAT_VERSION}. Update boltzhash"
            )

    def _save_model(self, hasher: Hasher) -> None:
        for file in model_to_files(hasher):
            self._run("INSERT INTO models VALUES (%s, %s, %s, %s)", [hasher.fingerprint(), *file])

    def load_model(self, fingerprint: str) -> Hasher:
        with self._connection.plain_errors():
            rows = self._run(
                "SELECT file, sha256, contents FROM models WHERE fingerprint = %s", [fingerprint]
            ).fetchall()
        return model_from_files((ModelFile(*row) for row in rows), fingerprint, self.shown)

    # Writing

    def add(self, batch: list[Coded]) -> None:
        taken = self._places([coded.document.id for coded in batch])
        seen: set[Id] = set()
        for coded in batch:
            id_ = coded.document.id
            if id_ in taken or id_ in seen:
                raise DuplicateIdError(
                    f"the id {id_!r} is in the collection already; nothing of its batch was added"
                )
            seen.add(id_)
        first = self._new_places(len(batch))
        self._copy({first + i: coded for i, coded in enumerate(batch)})

    def upsert(self, batch: list[Coded]) -> None:
        last = {coded.document.id: coded for coded in batch}  # in the order of the first
        places = self._places(list(last))
        self._remove(list(places.values()))
        first = self._new_places(len(last) - len(places))
        new = (id_ for id_ in last if id_ not in places)
        places.update({id_: place for place, id_ in enumerate(new, first)})
        self._copy({places[id_]: coded for id_, coded in last.items()})

    def delete(self, ids: list[Id]) -> int:
        places = list(self._places(ids).values())
        self._remove(places)
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
        return {_id(number, name): place for number, name, place in rows}

    def _new_places(self, n: int) -> int:
        """The first of n places that nobody has had."""
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

    def _copy(self, rows: dict[int, Coded]) -> None:
        self._connection.copy_rows(
            "documents (place, number, name, text, metadata, fields)",
            (_document_row(place, coded.document) for place, coded in rows.items()),
        )
        self._connection.copy_rows(
            "codes (place, code, known)",
            ((place, _bits(coded.code), bool(coded.known)) for place, coded in rows.items()),
        )

    # Reading

    def top_k(
        self, code: Codes, k: int, conditions: list[Condition], *, approximate: bool
    ) -> list[Found]:
        where = clause_of(conditions, "documents.fields")
        bits = _bits(code.tobytes())
        distance = f"code <~> %s::bit({len(bits)})" if approximate else _distance(bits)
        order = distance if approximate else f"{distance}, place"
        if approximate:
            self._run(f"SET LOCAL hnsw.ef_search = {min(max(k, 100), _MOST_CANDIDATES)}")
            self._run("SET LOCAL hnsw.iterative_scan = strict_order")  # k, also where filtered
        nearest = (
            f"SELECT place, {distance} AS distance FROM {_source(conditions)} WHERE {where.sql} "
            f"ORDER BY {order} LIMIT %s"
        )
        return self._found(nearest, [bits, *where.parameters, bits, k])

    def within(self, code: Codes, radius: int, conditions: list[Condition]) -> list[Found]:
        where = clause_of(conditions, "documents.fields")
        bits = _bits(code.tobytes())
        near = (
            f"SELECT place, {_distance(bits)} AS distance FROM {_source(conditions)} "
            f"WHERE {_distance(bits)} <= %s AND {where.sql}"
        )
        return self._found(near, [bits, bits, radius, *where.parameters])

    def _found(self, nearest: str, parameters: list[Any]) -> list[Found]:
        rows = self._run(
            f"SELECT near.distance, {_DOCUMENT} FROM ({nearest}) AS near "
            "JOIN documents USING (place) ORDER BY near.distance, place",
            parameters,
        )
        return [Found(int(distance), _document(*columns)) for distance, *columns in rows]

    def has_known_within(self, code: Codes, radius: int) -> bool:
        bits = _bits(code.tobytes())
        found = self._run(
            f"SELECT 1 FROM codes WHERE {_distance(bits)} <= %s AND known LIMIT 1", [bits, radius]
        )
        return found.fetchone() is not None

    def rows(self) -> Rows:
        (n_bits,) = self._run("SELECT n_bits FROM state").fetchone()
        found = self._run("SELECT place, code::text, known FROM codes ORDER BY place").fetchall()
        codes = b"".join(int(bits, 2).to_bytes(n_bits // 8) for _, bits, _ in found)
        return Rows(
            np.array([row[0] for row in found], dtype=np.int64),
            np.frombuffer(codes, np.uint8).reshape(len(found), n_bits // 8),
            np.array([row[2] for row in found], dtype=np.bool_),
        )

    def ids(self) -> dict[int, Id]:
        rows = self._run("SELECT place, number, name FROM documents")
        return {place: _id(number, name) for place, number, name in rows}

    def find(self, id_: Id) -> Document | None:
        column, value = ("number", id_) if isinstance(id_, int) else ("name", storable_text(id_))
        row = self._run(
            f"SELECT {_DOCUMENT} FROM documents WHERE {column} = %s", [value]
        ).fetchone()
        return _document(*row) if row is not None else None

    def documents(self) -> Iterator[Document]:
        connection = (
            self._connection.connected()
        )  # its own, so that the snapshot holds while others are read
        try:
            with self._connection.plain_errors(), connection.cursor() as cursor:
                cursor.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                cursor.execute(
                    f"DECLARE everything CURSOR FOR SELECT {_DOCUMENT} FROM documents "
                    "ORDER BY place".encode()
                )
                while rows := cursor.execute(f"FETCH {_PAGE} FROM everything".encode()).fetchall():
                    for row in rows:
                        yield _document(*row)
        finally:
            connection.close()

    def count(self) -> int:
        return int(self._run("SELECT count(*) FROM documents").fetchone()[0])

    def sizes(self) -> dict[str, int]:
        with self._connection.plain_errors():
            rows = self._run(
                "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class "
                "WHERE relnamespace = %s::regnamespace AND relkind = 'r'",
                [f'"{self._name}"'],
            ).fetchall()
        sizes = {name: int(size) for name, size, _ in rows if name not in ("state", "models")}
        return {**sizes, "indexes": sum(int(indexes) for _, _, indexes in rows)}

    # Another model

    def rehash(
        self, hasher: Hasher, batch: int, on_batch: Callable[[int, int], object] | None
    ) -> None:
        """As the embedded one does: a batch a transaction, the last one exchanges the tables."""
        if not self.write(lambda standing: self._start_rehash(standing, hasher)):
            return
        done = int(self._run("SELECT count(*) FROM next_codes").fetchone()[0])
        last: int | None = 0
        while last is not None:
            step = partial(self._rehash_batch, hasher=hasher, last=last, batch=batch)
            n_new, last, n_documents = self.write(step)
            done += n_new
            if on_batch is not None and last is not None:
                on_batch(done, n_documents)

    def _start_rehash(self, standing: Standing, hasher: Hasher) -> bool:
        fingerprint = hasher.fingerprint()
        if standing.model == fingerprint:
            return False
        if standing.next_model != fingerprint:
            self._run("DELETE FROM models WHERE fingerprint <> %s", [standing.model])
            self._save_model(hasher)
            self._run("DROP TABLE IF EXISTS next_codes")
            self._run(codes_table("next_codes", hasher.n_bits))
            self._run("UPDATE state SET next_model = %s", [fingerprint])
        return True

    def _rehash_batch(
        self, standing: Standing, *, hasher: Hasher, last: int, batch: int
    ) -> tuple[int, int | None, int]:
        """How many got a new code, the last of them (None: the new codes are in use), of how many."""
        if standing.next_model != hasher.fingerprint():
            raise CollectionError(f"{self.shown}: another rehash has taken over from this one")
        rows = self._run(
            "SELECT documents.place, text FROM documents LEFT JOIN next_codes USING (place) WHERE "
            "documents.place > %s AND next_codes.place IS NULL ORDER BY documents.place LIMIT %s",
            [last, batch],
        ).fetchall()
        if rows:
            words = hasher.tfidf(original_text(text) for _, text in rows)
            codes, known = hasher.transform(words), hasher.known_word_counts(words) > 0
            new: Any = zip(rows, codes, known, strict=True)
            self._connection.copy_rows(
                "next_codes (place, code, known)",
                ((place, _bits(code.tobytes()), bool(yes)) for (place, _), code, yes in new),
            )
            return len(rows), rows[-1][0], standing.n_documents
        if last:
            return 0, 0, standing.n_documents  # behind the last come those that changed meanwhile
        self._run("DROP TABLE codes")
        self._run("ALTER TABLE next_codes RENAME TO codes")
        self._run(
            "UPDATE state SET model = %s, n_bits = %s, next_model = NULL, approximate = NULL",
            [hasher.fingerprint(), hasher.n_bits],
        )
        return 0, None, standing.n_documents

    # Approximate search

    def build_index(self) -> dict[str, Any]:
        def build(_: Standing) -> None:
            self._run("DROP INDEX IF EXISTS nearest")
            self._run("CREATE INDEX nearest ON codes USING hnsw (code bit_hamming_ops)")

        self.write(build)
        with self._connection.plain_errors():
            self._run("ANALYZE codes")
        return {"index": "hnsw"}

    def note_approximate(self, about: dict[str, Any]) -> None:
        self.write(lambda _: self._run("UPDATE state SET approximate = %s", [json.dumps(about)]))


def _document_row(place: int, document: Document) -> tuple[Any, ...]:
    number = document.id if isinstance(document.id, int) else None
    name = storable_text(document.id) if isinstance(document.id, str) else None
    if name is not None and len(name.encode()) > _LONGEST_NAME:
        raise ValueError(
            f"PostgreSQL holds ids of up to {_LONGEST_NAME} bytes, got {len(name.encode())}: "
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


def _document(number: int | None, name: str | None, text: str, metadata: str) -> Document:
    return Document(_id(number, name), original_text(text), json.loads(metadata))


def _id(number: int | None, name: str | None) -> Id:
    return number if name is None else original_text(name)  # type: ignore[return-value]


def _distance(bits: str) -> str:
    """The distance of a row; as a function it uses no index, which ``<~>`` would."""
    return f"hamming_distance(code, %s::bit({len(bits)}))"


def _source(conditions: list[Condition]) -> str:
    return "codes JOIN documents USING (place)" if conditions else "codes"


def _bits(code: bytes) -> str:
    return f"{int.from_bytes(code):0{8 * len(code)}b}"
