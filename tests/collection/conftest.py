"""The engines that keep to the contract of collections, and small hashers to test them with."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from boltzhash import LSH, Hasher
from boltzhash.collection import Collection, snapshot

WORDS = (
    "star planet moon orbit comet bread butter oven flour sugar ship sail anchor wave storm".split()
)


class Engine(Protocol):
    """Makes collections of one kind; each is what the contract calls a collection."""

    def create(self, hasher: Hasher) -> Any:
        """A new, empty one."""

    def reopen(self, collection: Any) -> Any:
        """The same one, closed and opened again."""

    def crash(self, collection: Any) -> Any:
        """The same one, opened again after its process went without closing it."""

    def close(self) -> None:
        """Everything removed."""


class Embedded:
    """SQLite in a folder."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="boltzhash-test-"))
        self._number = 0
        self._opened: list[Collection] = []

    def create(self, hasher: Hasher) -> Collection:
        self._number += 1
        return self._keep(Collection.create(self._folder / str(self._number), hasher))

    def reopen(self, collection: Collection) -> Collection:
        collection.close()
        return self._keep(Collection.open(collection.path))

    def crash(self, collection: Collection) -> Collection:
        """Leave it in the middle of a transaction that has deleted everything."""
        connection = collection._database.connection
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM documents")
        connection.execute("UPDATE state SET generation = generation + 7, n_documents = 0")
        with contextlib.closing(connection):  # as the system closes the files of a dead process
            collection._is_open = False
        return self._keep(Collection.open(collection.path))

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


ENGINES = {"embedded": Embedded, "embedded, mapped": EmbeddedMapped}


@pytest.fixture(params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Each engine in turn: a test that takes it is part of the contract."""
    made = ENGINES[request.param]()
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
