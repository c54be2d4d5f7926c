"""What collections on engines do beyond the contract: secrets, models, recall, limits, other clients."""

from __future__ import annotations

import itertools
import logging
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash import LSH
from boltzhash.codes import hamming
from boltzhash.collection import Collection
from boltzhash.collection.batches import CodedBatch, write_batches
from boltzhash.collection.engines import parse_location
from boltzhash.collection.filters import parse_where
from boltzhash.collection.models import Coder
from boltzhash.collection.recall import held_out_queries
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


# Approximate search


@pytest.mark.engines
def test_approximate_search_states_its_recall(url: str, name: str, long_hasher: LSH) -> None:
    given = documents(2000)
    queries = held_out_queries(Document(d["id"], d["text"]) for d in given)
    with Collection.create(f"{url}#{name}", long_hasher) as collection:
        collection.add(given)
        with pytest.raises(ValueError, match="has no approximate index"):
            collection.search("star", approximate=True)
        with pytest.raises(ValueError, match="recall must be"):
            collection.build_approximate(recall=1.2)
        about = collection.build_approximate()
        assert about["recall"] >= 0.95 or about["effort"] == 1000
        assert collection.stats()["approximate"] == about
        assert (about["k"], about["queries"]) == (10, 200)
        assert about["recall"] == pytest.approx(recall(collection, queries, 10), abs=1e-4)
        exact = collection.search(queries[0], 50, by="codes")
        codes = long_hasher.transform([d["text"] for d in given])
        distances = hamming(long_hasher.transform([queries[0]]), codes)[0]
        assert exact.ids == np.argsort(distances, kind="stable")[:50].tolist()
        near = collection.search(queries[0], 5, where={"even": True}, approximate=True)
        assert all(id_ % 2 == 0 for id_ in near.ids)
        assert len(near) == 5
    with Collection.open(f"{url}#{name}") as collection:
        assert collection.stats()["approximate"] == about


def recall(collection: Any, queries: list[str], k: int) -> float:
    shares = []
    for query in queries:
        furthest = collection.search(query, k, by="codes").distances[-1]
        found = collection.search(query, k, approximate=True).distances
        shares.append(np.mean(found <= furthest) * len(found) / k)
    return float(np.mean(shares))


# PostgreSQL


@pytest.mark.engines
def test_exact_search_does_not_use_the_index(
    postgres_url: str, name: str, long_hasher: LSH
) -> None:
    with Collection.create(f"{postgres_url}#{name}", long_hasher) as collection:
        collection.add(documents(3000))
        collection.build_approximate(["star moon"])
        run = partial(run_in, collection)
        bits = "0" * 64
        exact = (
            "SELECT place FROM codes_1 ORDER BY hamming_distance(code, %s::bit(64)), place LIMIT 5"
        )
        near = (
            "SELECT place FROM distinct_codes_1 AS near JOIN codes_1 USING (code) "
            "ORDER BY near.code <~> %s::bit(64) LIMIT 5"
        )
        run("SET enable_seqscan = off")
        assert "nearest" not in str(run(f"EXPLAIN {exact}", [bits]).fetchall())
        assert "nearest" in str(run(f"EXPLAIN {near}", [bits]).fetchall())


def set_scans(collection: Collection, *, on: bool) -> None:
    """As if pgvector went on looking where its candidates are too few, or as if it did not."""
    store: Any = collection.store
    with store._connection() as connection:
        connection.scans_on = on


def sharing_codes(n_texts: int, n_each: int) -> list[dict[str, Any]]:
    """So many documents of each text, and with it of a code, one text after the other."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS[:10], 4)) for _ in range(n_texts)]
    return [{"id": i, "text": texts[i % n_texts]} for i in range(n_texts * n_each)]


@pytest.mark.engines
@pytest.mark.parametrize("scans_on", [True, False], ids=["pgvector 0.8", "as pgvector 0.7"])
def test_documents_that_share_a_code_hide_no_others(
    postgres_url: str, name: str, long_hasher: LSH, scans_on: bool
) -> None:
    """In a graph over all codes they did: 400 that are each other's nearest link to nobody else."""
    given = sharing_codes(8, 400)
    queries = [" ".join(pair) for pair in itertools.pairwise(WORDS)]
    with Collection.create(f"{postgres_url}#{name}", long_hasher) as collection:
        collection.add(given)
        set_scans(collection, on=scans_on)
        run_in(collection, "SET enable_seqscan = off")  # so few codes would be read without it
        about = collection.build_approximate(queries, k=500, recall=1.0)
        assert (about["effort"], about["recall"]) == (100, 1.0)
        for query in queries:
            for k in (10, 500):  # ties in the order of insertion
                exact = collection.search(query, k, by="codes")
                assert collection.search(query, k, approximate=True).ids == exact.ids


@pytest.mark.engines
def test_the_index_follows_what_is_written(
    postgres_url: str, name: str, long_hasher: LSH, other_hasher: LSH
) -> None:
    with Collection.create(f"{postgres_url}#{name}", long_hasher) as collection:
        collection.add(sharing_codes(20, 5))
        collection.build_approximate(["star moon"])
        collection.add([{"id": "new", "text": "anchor"}, {"id": "twin", "text": "anchor"}])
        assert collection.search("anchor", 1, approximate=True).ids == ["new"]
        collection.delete(["new"])
        assert collection.search("anchor", 1, approximate=True).ids == ["twin"]
        collection.upsert([{"id": "twin", "text": "sail"}, {"id": 0, "text": "sail"}])
        assert collection.search("sail", 2, approximate=True).ids == [0, "twin"]
        collection.delete([i for i in range(100) if i % 20])
        run = partial(run_in, collection)
        kept = run("SELECT code::text FROM distinct_codes_1 ORDER BY 1").fetchall()
        assert kept == run("SELECT DISTINCT code::text FROM codes_1 ORDER BY 1").fetchall()
        assert 1 < len(kept) < 5

        collection.rehash(other_hasher)
        for number in (1, 2):
            assert run(f"SELECT to_regclass('distinct_codes_{number}')").fetchone() == (None,)
        collection.add([{"id": "last", "text": "anchor"}])  # nothing is left that would miss them
        collection.build_approximate(["star moon"])
        assert collection.search("anchor", 1, approximate=True).ids == ["last"]


@pytest.mark.engines
@pytest.mark.parametrize("scans_on", [True, False], ids=["pgvector 0.8", "as pgvector 0.7"])
def test_where_few_pass_a_filter_search_is_exact(
    postgres_url: str, name: str, long_hasher: LSH, scans_on: bool
) -> None:
    """The index would have to be searched from end to end, and ends after so many codes."""
    given = [{**d, "metadata": {"rare": d["id"] % 150 == 7}} for d in documents(3000)]
    with Collection.create(f"{postgres_url}#{name}", long_hasher) as collection:
        collection.add(given)
        set_scans(collection, on=scans_on)
        collection.build_approximate(["star moon"])
        run_in(
            collection, "SET enable_seqscan = off"
        )  # so few codes would be read without the index
        run_in(collection, "SET hnsw.max_scan_tuples = 300")
        for query in ("star moon", "anchor", "sail butter"):
            exact = collection.search(query, 10, by="codes", where={"rare": True})
            found = collection.search(query, 10, where={"rare": True}, approximate=True)
            assert (len(found), found.ids) == (10, exact.ids)
        with collection.snapshot() as now:
            few_pass = now._inner._codes.few_pass  # type: ignore[attr-defined]
            assert few_pass(parse_where({"rare": True}), 10, 300)
            assert not few_pass(parse_where({"rare": False}), 10, 300)
            assert not few_pass(parse_where({"rare": True}), 10, 20_000)


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
