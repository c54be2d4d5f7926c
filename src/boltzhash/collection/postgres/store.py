"""A collection in PostgreSQL with pgvector: every write and every snapshot is a transaction."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from boltzhash.collection.keeping import copy_to_folder
from boltzhash.collection.locations import Location
from boltzhash.collection.models import Coder
from boltzhash.collection.postgres.connection import PostgresConnection
from boltzhash.collection.postgres.filters import original_text
from boltzhash.collection.postgres.rows import DOCUMENT, bits_of, document_of, row_of
from boltzhash.collection.postgres.schema import TABLES, create_codes, drop_codes
from boltzhash.collection.postgres.snapshot import Numbers, PostgresSnapshot, places_of
from boltzhash.collection.postgres.words import WordsReader, WordsWriter, language_of
from boltzhash.collection.store import (
    FORMAT_VERSION,
    OnBatch,
    State,
    check_format_version,
    exists_already,
    is_closed,
    last_of_each,
    no_such_collection,
    refuse_taken,
    rehash_taken_over,
)
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.encoding.coding import Coded, coded_texts
from boltzhash.encoding.model_files import ModelFile, model_from_files, model_to_files
from boltzhash.errors import CollectionBusyError, CollectionError
from boltzhash.hashers import Hasher

_STATE = (
    "SELECT codes, next_codes, generation, token, n_documents, model, n_bits, next_model, unfinished "
    "FROM state"
)
_BESIDE = "beside/"  # tells files beside the documents from those of models
_IDLE = 4  # connections that are kept
_PAGE = 1000  # documents fetched at a time


class PostgresStore:
    """See :class:`boltzhash.collection.store.Store`; with ``coder`` the collection is created."""

    passages: int | None = None

    def __init__(self, location: Location, wait: float, coder: Coder | None = None) -> None:
        self.name = location.name
        self.shown = location.shown()
        self.words = WordsReader()
        self._location, self._wait = location, wait
        self._is_closed = False
        self.written_generation: int | None = None
        self._writing = threading.Lock()
        self._idle: list[PostgresConnection] = []
        if coder is not None:
            with self._connection() as connection:
                self._create(connection, coder)
            self._idle.pop().close()  # the next finds the schema of the extension in its path
        with self._connection() as connection:
            self._check_format(connection)

    def close(self) -> None:
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    # Connections

    def _taken(self) -> PostgresConnection:
        if self._is_closed:
            raise is_closed("collection", self.shown)
        while self._idle:
            connection = self._idle.pop()
            if not connection.psycopg.closed:  # as it is when the server was restarted
                return connection
        return PostgresConnection(self._location, self._wait)

    @contextmanager
    def _connection(self) -> Iterator[PostgresConnection]:
        connection = self._taken()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._keep(connection)

    def _keep(self, connection: PostgresConnection) -> None:
        if self._is_closed or len(self._idle) >= _IDLE or connection.psycopg.closed:
            connection.close()
        else:
            self._idle.append(connection)

    def end(self, connection: PostgresConnection) -> None:
        """Give back a connection that has read."""
        if not connection.psycopg.closed:
            with connection.plain_errors():
                connection.psycopg.rollback()
        self._keep(connection)

    # Reading

    def snapshot(self) -> PostgresSnapshot:
        connection = self._taken()
        try:
            while True:
                connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                numbers, state = self._state(connection)
                if connection.locked(
                    f"codes_{numbers.codes}"
                ):  # else a rehash has dropped it meanwhile
                    return PostgresSnapshot(self, connection, state, numbers)
                connection.run("ROLLBACK")
        except BaseException:
            connection.close()
            raise

    def _state(self, connection: PostgresConnection, lock: str = "") -> tuple[Numbers, State]:
        row = connection.run(f"{_STATE}{lock}").fetchone()
        if row is None:
            raise CollectionError(f"{self.shown} is damaged: it has no state")
        return Numbers(*row[:2]), State(*row[2:])

    # Making and opening

    def _create(self, connection: PostgresConnection, coder: Coder) -> None:
        run = connection.run
        ((encoding,),) = run("SHOW server_encoding")
        if encoding != "UTF8":
            raise CollectionError(f"{self.shown}: the database must be UTF8, got {encoding}")
        if run("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self.name]).fetchone():
            raise exists_already(self.shown)
        with connection.transaction():
            run("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            run(f'CREATE SCHEMA "{self.name}"')
            run(TABLES)
            run(create_codes(1, coder.hasher.n_bits))
            _put_files(connection, coder.model, model_to_files(coder.hasher))
            run(
                "INSERT INTO state (format_version, generation, token, n_documents, last_place, model, "
                "n_bits, codes, next_codes, language, word_rules) "
                "VALUES (%s, 0, %s, 0, 0, %s, %s, 1, 2, '', '')",
                [FORMAT_VERSION, secrets.randbits(63), coder.model, coder.hasher.n_bits],
            )
            WordsWriter(connection).make(language_of(coder.hasher), [])

    def _check_format(self, connection: PostgresConnection) -> None:
        found = connection.run("SELECT to_regclass(%s)", [f'"{self.name}".state']).fetchone()
        if found == (None,):
            raise no_such_collection(self.shown)
        ((version,),) = connection.run("SELECT format_version FROM state")
        check_format_version(version, self.shown)
        if not WordsWriter(connection).are_ours():
            with self.write() as transaction:
                transaction.make_words(self.load_model(transaction.state.model))

    # Writing

    @contextmanager
    def write(self) -> Iterator[PostgresTransaction]:
        with self._writing, self._connection() as connection, connection.transaction():
            # The lock on the one row makes writers of other processes take turns.
            numbers, state = self._state(connection, " FOR UPDATE")
            yield PostgresTransaction(connection, state, numbers)
            connection.run(
                "UPDATE state SET generation = generation + 1, token = %s", [secrets.randbits(63)]
            )
        self.written_generation = state.generation + 1

    def rehash(self, coder: Coder, batch: int, on_batch: OnBatch | None) -> None:
        self._drop_codes()
        with self.write() as transaction:
            done = transaction.start_rehash(coder)
        last = 0
        while done is not None:
            with self.write() as transaction:
                if transaction.state.next_model != coder.model:
                    raise rehash_taken_over(self.shown)
                rows = transaction.rehash_some(coder, last, batch)
                if not rows and last == 0:
                    transaction.switch(coder)
                    break
            done += len(rows)
            last = rows[-1][0] if rows else 0  # after the last come those that changed meanwhile
            if on_batch is not None:
                on_batch(done, transaction.state.n_documents)
        self._drop_codes()

    def _drop_codes(self) -> None:
        """Drop tables of codes that are out of use, unless a snapshot is still reading them."""
        try:
            with self._writing, self._connection() as connection, connection.transaction():
                numbers, _ = self._state(connection, " FOR UPDATE")
                connection.run("SET LOCAL lock_timeout = 100")  # milliseconds
                for number in tables_of_codes(connection):
                    if number not in numbers:
                        connection.run(drop_codes(number))
        except CollectionBusyError:
            pass  # whoever rehashes next does it

    # Beside the documents

    def load_model(self, fingerprint: str) -> Hasher:
        return model_from_files(self._files(fingerprint), fingerprint, self.shown)

    def backup(self, target: Path) -> None:
        with closing(self.snapshot()) as snapshot:
            model = snapshot.state.model
            copy_to_folder(snapshot, Coder(model, self.load_model(model)), target)

    def save_files(self, name: str, files: Sequence[ModelFile]) -> None:
        with self._connection() as connection, connection.transaction():
            _put_files(connection, _BESIDE + name, files)

    def load_files(self, name: str) -> list[ModelFile]:
        return self._files(_BESIDE + name)

    def _files(self, name: str) -> list[ModelFile]:
        with self._connection() as connection:
            rows = connection.run(
                "SELECT file, sha256, contents FROM models WHERE fingerprint = %s ORDER BY file",
                [name],
            ).fetchall()
        return [ModelFile(*row) for row in rows]

    def files_version(self, name: str) -> str | None:
        with self._connection() as connection:
            ((version,),) = connection.run(
                "SELECT string_agg(sha256, ' ' ORDER BY file) FROM models WHERE fingerprint = %s",
                [_BESIDE + name],
            )
        return str(version) if version is not None else None


class PostgresTransaction:
    """See :class:`boltzhash.collection.store.Transaction`."""

    def __init__(self, connection: PostgresConnection, state: State, numbers: Numbers) -> None:
        self.state, self.numbers = state, numbers
        self._connection, self._run = connection, connection.run
        self._words = WordsWriter(connection)

    def add(self, batch: list[Coded]) -> None:
        refuse_taken(batch, places_of(self._run, [coded.document.id for coded in batch]))
        first = self._new_places(len(batch))
        self._copy({first + i: coded for i, coded in enumerate(batch)})

    def upsert(self, batch: list[Coded]) -> None:
        last = last_of_each(batch)
        places = places_of(self._run, last)
        self._remove(list(places.values()))
        first = self._new_places(len(last) - len(places))
        new = (id_ for id_ in last if id_ not in places)
        overwritten = list(places.values())
        places.update({id_: place for place, id_ in enumerate(new, first)})
        self._copy({places[id_]: coded for id_, coded in last.items()}, overwritten)

    def delete(self, ids: list[Id]) -> int:
        places = list(places_of(self._run, ids).values())
        self._remove(places)
        self._words.put({}, places)
        self._run("UPDATE state SET n_documents = n_documents - %s", [len(places)])
        return len(places)

    def note_unfinished(self, note: dict[str, Any] | None) -> None:
        kept = json.dumps(note) if note is not None else None
        self._run("UPDATE state SET unfinished = %s", [kept])

    def _new_places(self, n: int) -> int:
        """The first of n places that have never been used."""
        ((last,),) = self._run(
            "UPDATE state SET last_place = last_place + %s, n_documents = n_documents + %s "
            "RETURNING last_place",
            [n, n],
        )
        return int(last) - n + 1

    def _remove(self, places: list[int]) -> None:
        tables = ["documents", f"codes_{self.numbers.codes}"]
        if self.state.next_model is not None:
            tables.append(f"codes_{self.numbers.next_codes}")
        for table in tables:
            self._run(f"DELETE FROM {table} WHERE place = ANY (%s)", [places])

    def _copy(self, rows: dict[int, Coded], overwritten: Sequence[int] = ()) -> None:
        self._connection.copy_rows(
            "documents (place, number, name, text, metadata, fields)",
            (row_of(place, coded.document) for place, coded in rows.items()),
        )
        self._connection.copy_rows(
            f"codes_{self.numbers.codes} (place, code, known)",
            ((place, bits_of(coded.code), coded.known) for place, coded in rows.items()),
        )
        self._words.put({place: coded.document for place, coded in rows.items()}, overwritten)

    # Words

    def make_words(self, hasher: Hasher) -> None:
        """Make the index of words again in the language of a hasher."""
        self._words.make(language_of(hasher), self._documents())

    def _documents(self) -> Iterator[tuple[int, Document]]:
        last = 0
        statement = (
            f"SELECT place, {DOCUMENT} FROM documents WHERE place > %s ORDER BY place LIMIT %s"
        )
        while rows := self._run(statement, [last, _PAGE]).fetchall():
            yield from ((place, document_of(*columns)) for place, *columns in rows)
            last = rows[-1][0]

    # Another model

    def start_rehash(self, coder: Coder) -> int | None:
        """Note the new model; returns how many codes it has already, None if they are all in use."""
        if self.state.model == coder.model:
            return None
        new = self.numbers.next_codes
        if self.state.next_model != coder.model:
            self._run(  # those of earlier rehashes
                "DELETE FROM models WHERE fingerprint <> %s AND NOT starts_with(fingerprint, %s)",
                [self.state.model, _BESIDE],
            )
            _put_files(self._connection, coder.model, model_to_files(coder.hasher))
            new = 1 + max(tables_of_codes(self._connection))
            self._run(create_codes(new, coder.hasher.n_bits))
            self._run("UPDATE state SET next_model = %s, next_codes = %s", [coder.model, new])
        ((done,),) = self._run(f"SELECT count(*) FROM codes_{new}")
        return int(done)

    def rehash_some(self, coder: Coder, last: int, batch: int) -> Any:
        """Write new codes of some documents after a place; returns their rows."""
        table = f"codes_{self.numbers.next_codes}"
        rows = self._run(
            f"SELECT documents.place, text FROM documents LEFT JOIN {table} AS new USING (place) "
            "WHERE documents.place > %s AND new.place IS NULL ORDER BY documents.place LIMIT %s",
            [last, batch],
        ).fetchall()
        coded = coded_texts(coder.hasher, (original_text(text) for _, text in rows)) if rows else []
        self._connection.copy_rows(
            f"{table} (place, code, known)",
            (
                (place, bits_of(text.code), text.known)
                for (place, _), text in zip(rows, coded, strict=True)
            ),
        )
        return rows

    def switch(self, coder: Coder) -> None:
        """Put the new codes into use; the old ones stay for snapshots that are open."""
        if language_of(coder.hasher) != self._words.language():
            self.make_words(coder.hasher)
        self._run(
            "UPDATE state SET model = %s, n_bits = %s, codes = next_codes, next_model = NULL",
            [coder.model, coder.hasher.n_bits],
        )


def tables_of_codes(connection: PostgresConnection) -> list[int]:
    """The numbers of all tables of codes, those out of use as well."""
    tables = connection.run(
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema::regnamespace "
        "AND relkind = 'r' AND starts_with(relname, 'codes_')"
    )
    return [int(table.removeprefix("codes_")) for (table,) in tables.fetchall()]


def _put_files(connection: PostgresConnection, name: str, files: Sequence[ModelFile]) -> None:
    connection.run("DELETE FROM models WHERE fingerprint = %s", [name])
    for file in files:
        connection.run("INSERT INTO models VALUES (%s, %s, %s, %s)", [name, *file])
