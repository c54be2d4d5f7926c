"""What collections on engines do beyond the contract: secrets, models, limits, other clients."""

from __future__ import annotations

import logging
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash import LSH
from boltzhash.collection import Collection
from boltzhash.collection.batches import CodedBatch, write_batches
from boltzhash.collection.engines import parse_location
from boltzhash.collection.models import Coder
from boltzhash.corpus import Document
from boltzhash.encoding.coding import Input, coded_documents
from boltzhash.errors import CollectionBusyError, CollectionError
from snapshots import Newest, run_in

SECRET = "hunter2%2F"
SECRETS = ("hunter2", "hunter2%2F", "hunter2/")


@pytest.fixture
def url(postgres_url: str) -> str:
    return postgres_url


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"t{zlib.crc32(request.node.nodeid.encode())}"


WORDS = "star planet moon orbit comet bread butter oven flour sugar ship sail anchor".split()


def documents(n: int, start: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(start)
    return [
        {"id": i, "text": " ".join(rng.choice(WORDS, 6)), "metadata": {"even": i % 2 == 0}}
        for i in range(start, start + n)
    ]


# Addresses


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@127.0.0.1:1/db",
        f"postgresql://127.0.0.1:1/db?user=ann&password={SECRET}",
        f"postgresql://ann:{SECRET}@127.0.0.1:1/db?nonsense=1",
        f"postgresql://ann:{SECRET}@127.0.0.1:port/db",
        f"postgresql://ann:{SECRET}%zz@127.0.0.1:1/db",
    ],
)
@pytest.mark.engines
def test_credentials_never_show(url: str, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    """Nobody listens there: not in the error, its causes, the log or what is printed."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises((OSError, ValueError)) as caught:
        Collection.open(url)
    shown = [caplog.text, *capfd.readouterr()]
    error: BaseException | None = caught.value
    while error is not None:
        shown += [str(error), repr(error)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    for secret in SECRETS:
        assert all(secret not in text for text in shown), shown


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_an_address_shows_no_credentials(scheme: str) -> None:
    address = parse_location(f"{scheme}://ann:{SECRET}@host:7/db?token=x{SECRET}&password={SECRET}")
    for text in (repr(address), address.shown(), str(address)):
        assert "hunter2" not in text
        assert "ann" not in text
        assert "host:7/db" in text
    told = address.without_secrets(f"no {address.url}, x{SECRET}, hunter2/ or {SECRET}")
    assert "hunter2" not in told


def test_secrets_are_found_wherever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with an @ behind the password, where the URL could be read in two ways."""
    monkeypatch.setenv("PGPASSWORD", "of-the-environment")
    url = "postgresql://ann:hunter2@host/db?options=a@b&sslpassword=swordfish"
    told = parse_location(url).without_secrets("hunter2 swordfish of-the-environment host")
    assert told == "*** *** *** host"


@pytest.mark.parametrize("url", ["", "mysql://host/db", "http://host"])
def test_what_is_no_location_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"a collection is a folder or postgresql://…"):
        Collection.open(url)


@pytest.mark.parametrize("name", ["Books", "1st", 'a"b', "a b", "a" * 41, "ä", "a#b"])
def test_names_are_plain(name: str, hasher: LSH) -> None:
    with pytest.raises(ValueError, match="the name of a collection is 1 to 40 of a-z") as caught:
        Collection.create(f"postgresql://127.0.0.1:1/db#{name}", hasher)
    assert name not in str(caught.value)  # it may be what is behind a # in a password


def test_a_location_without_a_name_is_that_of_documents() -> None:
    assert parse_location("postgresql://host").shown() == "postgresql://host#documents"


@pytest.mark.parametrize(
    ("location", "has_password"),
    [
        ("library", False),
        ("postgresql://ann@host/db#books", False),
        ("postgresql://ann:hunter2@host/db", True),
        ("postgresql://host/db?user=ann&password=hunter2", True),
        ("postgresql://host/db?sslpassword=hunter2", True),
    ],
)
def test_a_password_in_a_location_is_noticed(location: str, has_password: bool) -> None:
    assert parse_location(location).has_password() is has_password


@pytest.mark.parametrize("wait", [-1, float("nan"), float("inf"), "10", None])
def test_waits_are_numbers(wait: Any, hasher: LSH, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="wait must be a number of at least 0 and at most 86400"):
        Collection.open("postgresql://127.0.0.1:1/db", wait=wait)
    with pytest.raises(ValueError, match="wait must be a number"):
        Collection.create(tmp_path / "collection", hasher, wait=wait)
    assert not (tmp_path / "collection").exists()


# Making and opening


@pytest.mark.engines
def test_any_client_can_hash(url: str, name: str, hasher: LSH, other_hasher: LSH) -> None:
    """The model comes with the collection, and a wrong one is refused."""
    with Collection.create(f"{url}#{name}", hasher) as collection:
        collection.add(documents(5))
        assert "postgres:" not in repr(collection)
    with Collection.open(f"{url}#{name}") as collection:
        assert collection.hasher.fingerprint() == hasher.fingerprint()
        assert collection.search("star moon").known_words == 2
    with pytest.raises(CollectionError, match="was made by another model"):
        Collection.open(f"{url}#{name}", other_hasher)
    with pytest.raises(FileExistsError, match="is already a collection"):
        Collection.create(f"{url}#{name}", hasher)
    with pytest.raises(CollectionError, match="there is no such collection"):
        Collection.open(f"{url}#{name}_nobody")
    with pytest.raises(ValueError, match="is closed"):
        len(collection)


@pytest.mark.engines
def test_other_clients_see_what_was_written(
    url: str, name: str, hasher: LSH, other_hasher: LSH
) -> None:
    with (
        Collection.create(f"{url}#{name}", hasher) as one,
        Collection.open(f"{url}#{name}") as other,
    ):
        one.add(documents(10))
        assert len(other) == 10
        other.upsert([{"id": 3, "text": "oven"}])
        one.delete([4])
        assert one.get(3) == other.get(3) == Document(3, "oven", {})
        generation = other.stats()["generation"]
        one.rehash(other_hasher)
        assert other.stats()["model"] == other_hasher.fingerprint()
        assert other.search("oven", 1, by="codes").ids == [3]
        other.add([{"id": "new", "text": "oven"}])
        assert one.search("oven", 2, by="codes").ids == [3, "new"]
        assert one.search("oven").ids == other.search("oven").ids
        assert other.stats()["bits"] == 16
        assert other.stats()["generation"] > generation
        Newest(one).check()
        Newest(other).check()


@pytest.mark.engines
def test_an_interrupted_rehash_goes_on(
    url: str, name: str, hasher: LSH, other_hasher: LSH, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old codes are searched until then, and what changes meanwhile is hashed too."""
    monkeypatch.setattr("boltzhash.collection.collection.BATCH", 16)

    def stop(*_: int) -> None:
        raise InterruptedError

    with Collection.create(f"{url}#{name}", hasher) as collection:
        collection.add(documents(60))
        with pytest.raises(InterruptedError):
            collection.rehash(other_hasher, on_batch=stop)
        rehash = collection.stats()["rehash"]
        assert rehash["model"] == other_hasher.fingerprint()
        assert 0 < rehash["documents"] < 60
        assert collection.stats()["bits"] == 8
        collection.upsert([{"id": 2, "text": "oven"}, {"id": 100, "text": "oven"}])
        collection.delete([3, 59])
        done: list[tuple[int, int]] = []
        collection.rehash(other_hasher, on_batch=lambda *n: done.append(n))
        assert done[0][0] > 16
        assert done[-1] == (59, 59)
        assert collection.stats()["rehash"] is None
        assert collection.search("oven", 2, by="codes").ids == [2, 100]
        Newest(collection).check()


@pytest.mark.engines
def test_what_a_cluster_has_hashed_is_written(
    url: str, name: str, hasher: LSH, other_hasher: LSH
) -> None:
    """Overwriting what is there; codes of another model than the collection's are made again."""
    given = [Document(id_, "star moon", {"n": 1}) for id_ in (3, "new")]
    with Collection.create(f"{url}#{name}", hasher) as collection:
        collection.add(documents(5))
        store = collection.store
        for coder in (hasher, other_hasher):
            batch = [Input(document) for document in given]
            made_by = Coder(coder.fingerprint(), coder)
            coded = CodedBatch(made_by, batch, coded_documents(coder, batch))
            write_batches(
                store,
                [coded],
                lambda model: Coder(model, store.load_model(model)),
                lambda transaction, batch: transaction.upsert(batch.coded),
            )
            assert [document.id for document in collection] == [0, 1, 2, 3, 4, "new"]
            assert collection.get(3) == given[0]
            Newest(collection).check()


@pytest.mark.engines
def test_odd_texts_come_back(url: str, name: str, hasher: LSH) -> None:
    odd = ["a\0b\x01\x02", "\x01\x01", "\\u0000", '"', "\U0001f600 \u2028", " ", "", "'; --"]
    given = [Document(text, text, {text: text, "list": [text, 1e300, {"x": None}]}) for text in odd]
    with Collection.create(f"{url}#{name}", hasher) as collection:
        collection.add(given)
        assert list(collection) == given
        for document in given:
            assert collection.search("star", where={document.id: document.id}).ids == [document.id]


# PostgreSQL


@pytest.mark.engines
@pytest.mark.parametrize("wait", [0, 0.2])
def test_writers_take_turns(postgres_url: str, name: str, hasher: LSH, wait: float) -> None:
    with (
        Collection.create(f"{postgres_url}#{name}", hasher) as one,
        Collection.open(f"{postgres_url}#{name}", wait=wait) as other,
    ):
        with (
            one.store.write(),
            pytest.raises(CollectionBusyError, match=f"has been writing for {wait} s"),
        ):
            other.add(documents(3))
        assert len(other) == 0
        assert other.add(documents(3)) == 3


@pytest.mark.engines
def test_a_lost_connection_is_made_again(postgres_url: str, name: str, hasher: LSH) -> None:
    with Collection.create(f"{postgres_url}#{name}", hasher) as collection:
        collection.add(documents(3))
        run_in(collection, "SELECT 1").connection.pgconn.finish()
        assert len(collection) == 3


@pytest.mark.engines
def test_ids_that_postgres_cannot_hold_are_refused(
    postgres_url: str, name: str, hasher: LSH
) -> None:
    with Collection.create(f"{postgres_url}#{name}", hasher) as collection:
        collection.add([{"id": "x" * 2000, "text": "star"}])
        with pytest.raises(ValueError, match="ids of up to 2000 bytes, got 2001"):
            collection.add([{"id": "y" * 2001, "text": "star"}])
        assert len(collection) == 1


@pytest.mark.engines
def test_a_changed_code_is_found(postgres_url: str, name: str, hasher: LSH) -> None:
    with Collection.create(f"{postgres_url}#{name}", hasher) as collection:
        collection.add(documents(3))
        Newest(collection).check()
        run_in(collection, "UPDATE codes_1 SET code = ~code WHERE place = 2")
        with pytest.raises(CollectionError, match="codes of documents 0 to 2"):
            Newest(collection).check()
        run_in(collection, "DELETE FROM codes_1 WHERE place = 2")
        with pytest.raises(CollectionError, match="counts 3 documents and has 2 codes"):
            Newest(collection).check()


@pytest.mark.engines
def test_another_format_is_refused(postgres_url: str, name: str, hasher: LSH) -> None:
    with Collection.create(f"{postgres_url}#{name}", hasher) as collection:
        run_in(collection, "UPDATE state SET format_version = 7")
    with pytest.raises(CollectionError, match="format version 7, this boltzhash reads 1: index"):
        Collection.open(f"{postgres_url}#{name}")


@pytest.mark.engines
def test_a_damaged_model_is_refused(postgres_url: str, name: str, hasher: LSH) -> None:
    with Collection.create(f"{postgres_url}#{name}", hasher) as collection:
        run_in(collection, "UPDATE models SET contents = 'x' WHERE file = 'config.json'")
    with pytest.raises(CollectionError, match=r"the model of .* is damaged: config\.json"):
        Collection.open(f"{postgres_url}#{name}")


@pytest.mark.engines
def test_a_check_is_of_one_generation(postgres_url: str, name: str, hasher: LSH) -> None:
    """What others write meanwhile is no damage."""
    with (
        Collection.create(f"{postgres_url}#{name}", hasher) as one,
        Collection.open(f"{postgres_url}#{name}") as other,
    ):
        one.add(documents(3))
        with one.snapshot() as now:
            other.upsert([{"id": 0, "text": "bread butter oven"}, {"id": 9, "text": "star"}])
            now.check()
        assert len(one) == 4
