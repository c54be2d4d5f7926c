"""A collection in PostgreSQL with pgvector: every write a transaction, every search one snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection.addresses import Address
from boltzhash.collection.documents import Id
from boltzhash.collection.filters import Condition
from boltzhash.collection.postgres.connection import PostgresConnection
from boltzhash.collection.postgres.filters import clause_of, storable_text
from boltzhash.collection.postgres.rehash import rehash_all, rehash_step
from boltzhash.collection.postgres.rows import DOCUMENT, bits_of, document_of, id_of, row_of
from boltzhash.collection.postgres.schema import TABLES, codes_table
from boltzhash.collection.sqlite.codes_file import Rows
from boltzhash.collection.store import (
    FORMAT_VERSION,
    Found,
    Standing,
    T,
    Write,
    check_format_version,
    last_of_each,
    no_such_collection,
    refuse_taken,
)
from boltzhash.corpus import Document
from boltzhash.encoding.coding import Coded
from boltzhash.encoding.model_files import ModelFile, model_from_files, model_to_files
from boltzhash.errors import CollectionError
from boltzhash.hashers import Hasher

_STATE = "generation, n_documents, model, n_bits, next_model, approximate"
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

    def together(self) -> AbstractContextManager[Write]:
        return nullcontext(self.write)

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
            raise no_such_collection(self.shown)
        (version,) = self._run("SELECT format_version FROM state").fetchone()
        check_format_version(version, self.shown)

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
        refuse_taken(batch, self._places([coded.document.id for coded in batch]))
        first = self._new_places(len(batch))
        self._copy({first + i: coded for i, coded in enumerate(batch)})

    def upsert(self, batch: list[Coded]) -> None:
        last = last_of_each(batch)
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
        return {id_of(number, name): place for number, name, place in rows}

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
            (row_of(place, coded.document) for place, coded in rows.items()),
        )
        self._connection.copy_rows(
            "codes (place, code, known)",
            ((place, bits_of(coded.code), bool(coded.known)) for place, coded in rows.items()),
        )

    # Reading

    def top_k(
        self, code: Codes, k: int, conditions: list[Condition], *, approximate: bool
    ) -> list[Found]:
        where = clause_of(conditions, "documents.fields")
        bits = bits_of(code.tobytes())
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
        bits = bits_of(code.tobytes())
        near = (
            f"SELECT place, {_distance(bits)} AS distance FROM {_source(conditions)} "
            f"WHERE {_distance(bits)} <= %s AND {where.sql}"
        )
        return self._found(near, [bits, bits, radius, *where.parameters])

    def _found(self, nearest: str, parameters: list[Any]) -> list[Found]:
        rows = self._run(
            f"SELECT near.distance, {DOCUMENT} FROM ({nearest}) AS near "
            "JOIN documents USING (place) ORDER BY near.distance, place",
            parameters,
        )
        return [Found(int(distance), document_of(*columns)) for distance, *columns in rows]

    def has_known_within(self, code: Codes, radius: int) -> bool:
        bits = bits_of(code.tobytes())
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
        return {place: id_of(number, name) for place, number, name in rows}

    def find(self, id_: Id) -> Document | None:
        column, value = ("number", id_) if isinstance(id_, int) else ("name", storable_text(id_))
        row = self._run(f"SELECT {DOCUMENT} FROM documents WHERE {column} = %s", [value]).fetchone()
        return document_of(*row) if row is not None else None

    def documents(self) -> Iterator[Document]:
        # With a connection of its own, so that the snapshot holds while others are read.
        connection = self._connection.connected()
        try:
            with self._connection.plain_errors():
                connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield from _all_documents(connection)
        finally:
            connection.close()

    def documents_here(self) -> Iterator[Document]:
        return _all_documents(self._connection.psycopg)

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

    def rehash(
        self, hasher: Hasher, batch: int, on_batch: Callable[[int, int], object] | None
    ) -> None:
        if self.write(lambda standing: self._start_rehash(standing, hasher)):
            (n_done,) = self._run("SELECT count(*) FROM next_codes").fetchone()
            step = partial(rehash_step, self._connection, hasher)
            rehash_all(
                lambda last: self.write(partial(step, last=last, batch=batch)), n_done, on_batch
            )

    def _start_rehash(self, standing: Standing, hasher: Hasher) -> bool:
        """Note what is to be done; False where the codes are this model's already."""
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

    # Approximate search

    def build_index(self) -> dict[str, Any]:
        def build(_: Standing) -> None:
            self._run("DROP INDEX IF EXISTS nearest")
            self._run("CREATE INDEX nearest ON codes USING hnsw (code bit_hamming_ops)")
            self._run("UPDATE state SET approximate = NULL")  # until its recall is measured

        self.write(build)
        with self._connection.plain_errors():
            self._run("ANALYZE codes")
        return {"index": "hnsw"}

    def note_approximate(self, about: dict[str, Any]) -> None:
        self.write(lambda _: self._run("UPDATE state SET approximate = %s", [json.dumps(about)]))


def _all_documents(connection: Any) -> Iterator[Document]:
    """Inside a transaction, some at a time."""
    connection.execute(
        f"DECLARE everything CURSOR FOR SELECT {DOCUMENT} FROM documents ORDER BY place".encode()
    )
    fetch = f"FETCH {_PAGE} FROM everything".encode()
    while rows := connection.execute(fetch).fetchall():
        for row in rows:
            yield document_of(*row)


def _distance(bits: str) -> str:
    """The distance of a row; as a function it uses no index, which ``<~>`` would."""
    return f"hamming_distance(code, %s::bit({len(bits)}))"


def _source(conditions: list[Condition]) -> str:
    return "codes JOIN documents USING (place)" if conditions else "codes"
