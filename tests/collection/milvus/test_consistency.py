"""What readers of a collection in Milvus see, and when: whole generations, their own writes at once."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from boltzhash import LSH
from boltzhash.collection import Collection
from boltzhash.corpus import Document
from boltzhash.errors import CollectionBusyError

GRACEFUL_TIME = 5.0  # seconds; Milvus' own default of ``common.gracefulTime``

pytestmark = pytest.mark.engines


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"t{zlib.crc32(request.node.nodeid.encode())}"


def stars(ids: Any, **metadata: Any) -> Iterator[dict[str, Any]]:
    return ({"id": i, "text": "star", "metadata": metadata} for i in ids)


# Bounded and strong


def test_a_reader_catches_up_within_the_bound(milvus_url: str, name: str, hasher: LSH) -> None:
    """And what it sees until then is what was there before, as a whole."""
    with (
        Collection.create(f"{milvus_url}#{name}", hasher) as writer,
        Collection.open(f"{milvus_url}#{name}") as reader,
    ):
        assert len(reader) == 0
        writer.add(stars(range(10)))
        end = time.monotonic() + GRACEFUL_TIME
        while time.monotonic() < end:
            assert len(reader.within("star", 0)) in (0, 10)
        assert len(reader.within("star", 0)) == len(reader) == 10
        writer.delete(range(4))
        time.sleep(GRACEFUL_TIME)
        assert reader.within("star", 0).ids == [4, 5, 6, 7, 8, 9]
        assert [document.id for document in reader] == [4, 5, 6, 7, 8, 9]


def test_a_client_sees_its_own_writes(milvus_url: str, name: str, hasher: LSH) -> None:
    with Collection.create(f"{milvus_url}#{name}", hasher) as collection:
        for i in range(5):
            collection.add(stars([i], version=0))
            assert len(collection) == i + 1
            assert collection.search("star", 9).ids == list(range(i + 1))
            collection.upsert(stars([i], version=1))
            assert collection.get(i) == Document(i, "star", {"version": 1})
            assert [document.id for document in collection] == list(range(i + 1))
        assert collection.delete([2]) == 1
        assert 2 not in collection
        assert collection.search("star", 9).ids == [0, 1, 3, 4]


def test_who_opens_a_collection_sees_all_that_was_written(
    milvus_url: str, name: str, hasher: LSH
) -> None:
    with Collection.create(f"{milvus_url}#{name}", hasher) as writer:
        for i in range(4):
            writer.upsert(stars(range(2 * i + 2), version=i))
            with Collection.open(f"{milvus_url}#{name}") as reader:
                found = reader.within("star", 0)
            assert [d.metadata for d in found.documents] == [{"version": i}] * (2 * i + 2)


def test_strong_readers_see_at_once_what_others_wrote(
    milvus_url: str, name: str, hasher: LSH
) -> None:
    with (
        Collection.create(f"{milvus_url}#{name}", hasher) as writer,
        Collection.open(f"{milvus_url}?consistency=strong#{name}") as reader,
    ):
        for i in range(5):
            writer.add(stars([i]))
            assert len(reader) == i + 1
            assert i in reader
            assert reader.search("star", 9).ids == list(range(i + 1))


def test_other_consistencies_are_refused(milvus_lite_url: str) -> None:
    with pytest.raises(ValueError, match="consistency must be bounded or strong, got 'weak'"):
        Collection.open(f"{milvus_lite_url}?consistency=weak")


@pytest.mark.parametrize("consistency", ["bounded", "strong"])
def test_an_answer_is_of_one_generation(
    milvus_url: str, name: str, hasher: LSH, consistency: str
) -> None:
    """While another client overwrites every document, again and again; and never an older one."""
    n, versions = 50, 12
    url = f"{milvus_url}?consistency={consistency}"
    with (
        Collection.create(f"{milvus_url}#{name}", hasher) as writer,
        Collection.open(f"{url}#{name}") as reader,
    ):
        writer.add(stars(range(n), version=0))

        def write() -> None:
            for version in range(1, versions):
                writer.upsert(stars(range(n), version=version))

        writing = threading.Thread(target=write)
        writing.start()
        seen: list[int] = []
        while writing.is_alive():
            found = reader.within("star", 0)
            if len(found):  # a reader that was open before may not know the first ones yet
                assert found.ids == list(range(n))
                (version,) = {document.metadata["version"] for document in found.documents}
                seen.append(version)
        writing.join()
        assert seen == sorted(seen)
        assert len(set(seen)) > versions // 3
        writer.check()


def test_who_dies_before_it_deletes_leaves_a_whole_generation(
    milvus_lite_url: str, name: str, hasher: LSH, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state names the rows that no longer count, and the next writer deletes them."""

    def stop(*_: Any) -> None:
        raise InterruptedError

    with Collection.create(f"{milvus_lite_url}#{name}", hasher) as collection:
        collection.add(stars(range(5), version=0))
        monkeypatch.setattr(collection._store._generations, "_purge", stop)
        with pytest.raises(InterruptedError):
            collection.upsert(stars(range(3), version=1))
    with Collection.open(f"{milvus_lite_url}#{name}") as collection:
        versions = [d.metadata["version"] for d in collection.within("star", 0).documents]
        assert versions == [1, 1, 1, 0, 0]
        collection.add(stars([9], version=2))
        assert [document.metadata["version"] for document in collection] == [1, 1, 1, 0, 0, 2]
        table = collection._store._states.newest().table
        assert collection._store._milvus.count(table, "row >= 0") == 6
        collection.check()


# What one call writes is committed together


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boltzhash.collection.collection.BATCH", 4)


@pytest.fixture
def collection(milvus_lite_url: str, name: str, hasher: LSH, small_batches: None) -> Iterator[Any]:
    with Collection.create(f"{milvus_lite_url}#{name}", hasher) as made:
        yield made
        made.check()


def test_many_batches_are_one_generation(collection: Any) -> None:
    assert collection.add(stars(range(18))) == 18
    assert collection.stats()["generation"] == 1
    assert [document.id for document in collection] == list(range(18))


def test_so_many_and_no_more(collection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boltzhash.collection.milvus.generations._ROWS_TOGETHER", 8)
    collection.add(stars(range(18)))
    assert collection.stats()["generation"] == 3
    monkeypatch.setattr("boltzhash.collection.milvus.generations._BYTES_TOGETHER", 30)
    collection.add(stars(range(20, 32)))  # a batch is 24 bytes
    assert collection.stats()["generation"] == 5
    assert len(collection.within("star", 0)) == 30


def test_an_id_may_come_twice_in_what_is_overwritten(collection: Any) -> None:
    """Also in batches that are committed together: the last counts, in the place of the first."""
    collection.add(stars([1, 2], version=0))
    ids = [9, 1, 8, 7, 6, 9, 1, 5, 4, 9]
    collection.upsert(
        {"id": id_, "text": "star", "metadata": {"version": i}} for i, id_ in enumerate(ids)
    )
    assert collection.stats()["generation"] == 2
    assert [(d.id, d.metadata["version"]) for d in collection] == [
        (1, 6), (2, 0), (9, 9), (8, 2), (7, 3), (6, 4), (5, 7), (4, 8)
    ]  # fmt: skip


def test_more_is_overwritten_than_a_state_can_name(
    collection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boltzhash.collection.milvus.generations._DEAD_TOGETHER", 6)
    collection.add(stars(range(18), version=0))
    collection.upsert(stars(range(18), version=1))
    assert collection.stats()["generation"] == 4  # two batches, two, and what is left
    assert [d.metadata["version"] for d in collection.within("star", 0).documents] == [1] * 18


def test_a_batch_that_fails_is_left_out_alone(collection: Any) -> None:
    too_long = {"id": 10, "text": "x" * 65_536}
    with pytest.raises(ValueError, match="65536 for the text of document '10'"):
        collection.add([*stars(range(10)), too_long])
    assert [document.id for document in collection] == list(range(8))
    with pytest.raises(ValueError, match="65536 for the text of document '10'"):
        collection.upsert([too_long])
    assert collection.stats()["generation"] == 1


def test_what_is_held_back_can_be_deleted(collection: Any) -> None:
    def documents() -> Iterator[dict[str, Any]]:
        yield from stars(range(8))
        assert collection.delete([2, 99]) == 1
        yield from stars([20])

    assert collection.add(documents()) == 9
    assert [document.id for document in collection] == [0, 1, 3, 4, 5, 6, 7, 20]


def test_another_writer_is_noticed_in_a_long_call(
    collection: Any, milvus_lite_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boltzhash.collection.milvus.generations._ROWS_TOGETHER", 4)

    def documents() -> Iterator[dict[str, Any]]:
        yield from stars(range(4))
        yield {"id": 4, "text": "star"}
        with Collection.open(f"{milvus_lite_url}#{name}") as other:
            other.add(stars([30]))
        yield from stars(range(5, 20))

    with pytest.raises(CollectionBusyError, match="another client is writing"):
        collection.add(documents())
    assert [document.id for document in collection] == [0, 1, 2, 3, 30]
    collection.add(stars([5]))
    assert len(collection) == 6
