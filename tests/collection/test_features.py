"""Collections whose codes are made from features, on every engine: value for value against NumPy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from boltzhash import NASH, Hasher, Network, Text, Training
from boltzhash.codes import hamming
from boltzhash.collection import Collection
from boltzhash.collection.cluster import add_from
from boltzhash.errors import ChangedDocumentsError
from boltzhash.search.relevance import agreement
from boltzhash.server.settings import Settings
from boltzhash.storage.codes import read_codes
from services import KEY, serving_in_a_thread
from snapshots import Newest

from .conftest import WORDS

N_COLUMNS = 6
N = 30
_PLACES = np.random.default_rng(0).standard_normal((len(WORDS), N_COLUMNS))


def embedded(texts: list[str]) -> NDArray[np.float32]:
    """What an embedding model might give: the mean of the places of the words, 0 of no words."""
    rows = [[_PLACES[WORDS.index(word)] for word in text.split()] for text in texts]
    return np.array([np.sum(row or [np.zeros(N_COLUMNS)], axis=0) for row in rows], np.float32)


TEXTS = [f"{WORDS[i % 15]} {WORDS[(i * 7 + 3) % 15]}" for i in range(N)]
VECTORS = embedded(TEXTS)
# A document may have no text at all: its vector says what it is.
DOCUMENTS = [
    {"id": i, "text": "" if i == 4 else text, "metadata": {"half": i < 15}}
    for i, text in enumerate(TEXTS)
]
QUERY = embedded(["star bread"])[0]


@pytest.fixture(scope="session")
def of_features() -> NASH:
    texts = [f"{one} {other}" for one in WORDS for other in WORDS]
    hasher = NASH(
        16,
        training=Training(epochs=2, device="cpu"),
        network=Network(hidden_units=8),
        text=Text(max_df=1.0),
    )
    return hasher.fit(texts, features=embedded(texts))


@pytest.fixture
def collection(engine: Any, of_features: Hasher) -> Any:
    made = engine.create(of_features)
    assert made.add(DOCUMENTS, features=VECTORS) == N
    return made


def nearest(
    hasher: Hasher, code: Any, allowed: Callable[[int], bool] = lambda _: True
) -> list[tuple[int, int]]:
    """All allowed documents with their distances, in the order of (distance, insertion)."""
    distances = hamming(code[None], hasher.encode(features=VECTORS))[0]
    order = np.argsort(distances, kind="stable")
    return [(int(i), int(distances[i])) for i in order if allowed(int(i))]


def found(answer: Any) -> list[tuple[Any, int | None]]:
    return [(hit.id, hit.distance) for hit in answer]


def test_documents_are_found_by_the_codes_of_their_features(
    engine: Any, collection: Any, of_features: Hasher
) -> None:
    code = of_features.encode(features=QUERY[None])[0]
    expected = nearest(of_features, code)
    for opened in (lambda: collection, lambda: engine.reopen(collection)):
        asked = opened()
        answer = asked.search(features=QUERY, k=N)
        assert (answer.by, answer.query, answer.known_words) == ("codes", None, None)
        assert found(answer) == expected
        assert all(hit.known for hit in answer)
        np.testing.assert_array_equal(answer.code, code)
        assert found(asked.search(features=QUERY[None].tolist(), k=N)) == expected
        assert found(asked.search(code, k=N)) == expected
        in_first_half = asked.search(features=QUERY, k=N, where={"half": True})
        assert found(in_first_half) == nearest(of_features, code, lambda i: i < 15)
        within = asked.within(None, expected[9][1], features=QUERY)
        assert found(within) == [pair for pair in expected if pair[1] <= expected[9][1]]


def test_the_order_of_confidence_is_that_of_the_features(
    collection: Any, of_features: Hasher
) -> None:
    margins = of_features.margins(QUERY[None].astype(np.float64))[0]
    agree = agreement(margins, of_features.encode(features=VECTORS))
    first = [i for i, _ in nearest(of_features, of_features.encode(features=QUERY[None])[0])]
    # Equal codes agree equally; the last digits of a product depend on where a row stands in it.
    expected = sorted(first, key=lambda i: -round(agree[i], 9))
    assert collection.search(features=QUERY, k=N, order="confidence").ids == expected


def test_words_and_codes_in_one_score(collection: Any, of_features: Hasher) -> None:
    by_words = {hit.id: hit.score for hit in collection.search("star", N, by="words")}
    assert by_words.keys() == {i for i, text in enumerate(TEXTS) if "star" in text}
    answer = collection.search("star", N, features=QUERY)
    assert (answer.by, answer.query, len(answer)) == ("both", "star", N)
    margins = of_features.margins(QUERY[None].astype(np.float64))[0]
    agree = agreement(margins, of_features.encode(features=VECTORS))
    for hit in answer:
        expected = by_words.get(hit.id, 0.0) + of_features.weight_beside_words * agree[hit.id]
        assert hit.score == pytest.approx(expected)
    assert [hit.score for hit in answer] == sorted((h.score for h in answer), reverse=True)


def test_a_text_alone_is_searched_by_words(collection: Any) -> None:
    answer = collection.search("star", N)
    assert (answer.by, answer.code, answer.known_words) == ("words", None, None)
    assert {hit.distance for hit in answer} == {None}
    scores = [hit.score for hit in answer]
    assert answer.ids == sorted(answer.ids, key=lambda i: (-scores[answer.ids.index(i)], i))
    assert "star" in str(answer)
    with pytest.raises(ValueError, match="there are no distances: the query has no code"):
        _ = answer.distances
    with pytest.warns(UserWarning, match="no document has a field 'haff'"):
        assert len(collection.search("star", where={"haff": True})) == 0


def test_documents_like_one_are_found_by_its_code(collection: Any, of_features: Hasher) -> None:
    codes = of_features.encode(features=VECTORS)
    for id_ in (0, 4):  # which has no text
        expected = [pair for pair in nearest(of_features, codes[id_]) if pair[0] != id_]
        assert found(collection.more_like(id_, N, by="codes")) == expected
    assert collection.more_like(0, 5).by == "both"
    # Without words, and with every bit counting the same, the score is the order of distances.
    assert found(collection.more_like(4, 5)) == expected[:5]


def test_an_upsert_brings_new_features(collection: Any, of_features: Hasher) -> None:
    changed = embedded(["ship sail"])
    new = [{"id": 0, "text": "ship sail"}, {"id": "new", "text": ""}]
    assert collection.upsert(new, features=np.concatenate([changed, changed])) == 2
    code = of_features.encode(features=changed)[0].tobytes()
    stored = Newest(collection).find([0, "new", 1])
    assert (stored[0].code, stored["new"].code) == (code, code)
    assert stored[1].code == of_features.encode(features=VECTORS[1:2])[0].tobytes()
    assert collection.more_like(0, 1, by="codes").distances.tolist() == [0]
    assert collection.delete(["new"]) == 1


BAD = {
    "none": (
        None,
        r"was fitted with features .* pass features= \(--features on the command line\)",
    ),
    "too few": (VECTORS[1:], "one row per document, in the same order: got 29 rows for 30"),
    "too many": (np.concatenate([VECTORS, VECTORS[:2]]), "got 32 rows for 30 documents"),
    "too wide": (np.ones((N, 7)), "features must have 6 columns, as they had in fit, got 7"),
    "not finite": (
        np.where(np.arange(N)[:, None] == 7, np.nan, VECTORS),
        "features must be finite numbers, got nan in row 7, column 0",
    ),
    "integers": (np.ones((N, 6), dtype=np.int64), "a matrix of floats, .* an array of int64"),
    "one row": (VECTORS[0], r"a matrix of floats, .* an array of shape \(6,\)"),
    "sparse": (sparse.csr_matrix(VECTORS), "got a sparse one: tf-idf goes into X"),
    "objects": ([[object()] * 6] * N, "a matrix of floats, .* an array of object"),
}


@pytest.mark.parametrize(("features", "message"), BAD.values(), ids=BAD.keys())
def test_features_that_do_not_fit_are_named_and_nothing_is_added(
    engine: Any, of_features: Hasher, features: Any, message: str
) -> None:
    collection = engine.create(of_features)
    for write in (collection.add, collection.upsert):
        with pytest.raises(ValueError, match=message):
            write(DOCUMENTS, features=features)
    with pytest.raises(ValueError, match=message):
        collection.add_resumably(iter(DOCUMENTS), "bad", features=features)
    assert (len(collection), Newest(collection).state.unfinished) == (0, None)


def test_a_stream_is_counted_before_its_last_batch(engine: Any, of_features: Hasher) -> None:
    collection = engine.create(of_features)

    def stream(n: int) -> Iterator[dict[str, Any]]:
        return ({"id": i, "text": TEXTS[i % N]} for i in range(n))

    vectors = VECTORS[np.arange(1030) % N]
    with pytest.raises(ValueError, match="got 1025 rows for 1024 documents"):
        collection.add(stream(1024), features=vectors[:1025])
    assert len(collection) == 0
    with pytest.raises(ValueError, match="got 1026 rows for 1030 documents"):
        collection.add(stream(1030), features=vectors[:1026])
    assert len(collection) == 1024
    assert collection.upsert(stream(1030), features=vectors) == 1030
    codes = of_features.encode(features=vectors)
    np.testing.assert_array_equal(Newest(collection).rows().codes, codes)
    assert collection.delete(range(1030)) == 1030


def test_an_interrupted_add_resumes_with_the_same_features(
    engine: Any, of_features: Hasher
) -> None:
    collection = engine.create(of_features)
    documents = [{"id": i, "text": TEXTS[i % N]} for i in range(1100)]
    vectors = VECTORS[np.arange(1100) % N].astype(np.float64)

    def broken() -> Iterator[dict[str, Any]]:
        yield from documents[:1050]
        raise InterruptedError

    with pytest.raises(InterruptedError):
        collection.add_resumably(broken(), "all", features=vectors)
    assert len(collection) == 1024
    other = vectors.copy()
    other[1000, 2] += 0.5
    with pytest.raises(ChangedDocumentsError, match="metadata or features up to number 1023 are"):
        collection.add_resumably(documents, "all", features=other)
    assert collection.add_resumably(documents, "all", features=vectors.astype(np.float32)) == 76
    np.testing.assert_array_equal(
        Newest(collection).rows().codes, of_features.encode(features=vectors.astype(np.float32))
    )
    assert collection.delete(range(1100)) == 1100


def test_queries_that_do_not_fit_are_named(collection: Any, of_features: Hasher) -> None:
    code = of_features.encode(features=QUERY[None])[0]
    hint = "pass features= .*; a text alone is searched for by='words'"
    for arguments, message in [
        ({"query": "star", "by": "codes"}, hint),
        ({"query": "star", "by": "both"}, "pass features="),
        ({"query": "star", "order": "confidence"}, "pass features="),
        ({"features": QUERY, "by": "words"}, "compares words: search for a text, not for features"),
        ({"features": QUERY, "order": "words"}, "order 'words' compares words"),
        ({"query": code, "features": QUERY}, "a code or have features, got both"),
        ({"features": QUERY[:5]}, "features must have 6 columns, as they had in fit, got 5"),
        ({"features": VECTORS[:2]}, r"the vector of one query, got an array of shape \(2, 6\)"),
        ({"features": QUERY * np.nan}, "must be finite numbers, got nan in row 0, column 0"),
        ({"query": " ", "features": QUERY}, "the query is empty"),
    ]:
        with pytest.raises(ValueError, match=message):
            collection.search(**arguments)
    with pytest.raises(ValueError, match="pass features="):
        collection.within("star", 3)
    for query in (None, QUERY):
        with pytest.raises(TypeError, match="query must be a text or one packed code"):
            collection.search(query)


def test_a_model_of_words_takes_no_features(engine: Any, hasher: Hasher) -> None:
    collection = engine.empty(hasher)
    message = "LSH reads only words, got features"
    with pytest.raises(ValueError, match=message):
        collection.add(DOCUMENTS, features=VECTORS)
    with pytest.raises(ValueError, match=message):
        collection.search("star", features=QUERY)
    assert len(collection) == 0


def test_texts_decide_what_is_a_duplicate(collection: Any) -> None:
    twice = [
        {"id": "a", "text": "star planet moon orbit"},
        {"id": "b", "text": "star planet moon orbit"},
    ]
    collection.add(twice, features=VECTORS[:2])
    assert Newest(collection).is_duplicate("star planet moon orbit")
    assert not Newest(collection).is_duplicate("bread butter oven flour")
    assert ("a", ["b"]) in [
        (g.kept, [d.id for d in g.duplicates]) for g in Newest(collection).duplicates()
    ]


def test_what_is_kept_comes_out(
    engine: Any, collection: Any, of_features: Hasher, tmp_path: Path
) -> None:
    codes = of_features.encode(features=VECTORS)
    stats = collection.stats()
    assert (stats["features"], stats["no_known_word"], stats["method"]) == (6, 0, "NASH")
    Newest(collection).check()
    Newest(collection).export(tmp_path / "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == DOCUMENTS
    Newest(collection).export_codes(tmp_path / "codes")
    stored = read_codes(tmp_path / "codes", model=of_features.fingerprint())
    np.testing.assert_array_equal(stored.codes, codes)
    collection.backup(tmp_path / "backup")
    with Collection.open(tmp_path / "backup", of_features) as copy:
        Newest(copy).check()
        assert found(copy.search(features=QUERY)) == found(collection.search(features=QUERY))


def test_a_rehash_reads_texts_and_so_takes_no_features(
    engine: Any, collection: Any, of_features: Hasher, long_hasher: Hasher
) -> None:
    other = NASH(
        8,
        training=Training(epochs=1, device="cpu"),
        network=Network(hidden_units=4),
        text=Text(max_df=1.0),
    )
    other.fit(TEXTS, features=VECTORS)
    with pytest.raises(
        ValueError, match="a collection keeps no features, so it cannot be rehashed"
    ):
        collection.rehash(other)
    with pytest.raises(ValueError, match="a cluster hashes texts"):
        add_from(collection, ["corpus.jsonl"])
    assert found(collection.search(features=QUERY, k=N)) == nearest(
        of_features, of_features.encode(features=QUERY[None])[0]
    )
    reader = Collection.open(engine.location(collection))
    collection.rehash(long_hasher)
    texts = [document["text"] for document in DOCUMENTS]
    for opened in (collection, reader):  # which learns of it when it asks
        np.testing.assert_array_equal(Newest(opened).rows().codes, long_hasher.encode(texts))
        assert opened.search("star", 1, by="codes").code is not None
        assert opened.stats()["features"] is None
        with pytest.raises(ValueError, match="LSH reads only words, got features"):
            opened.upsert(DOCUMENTS[:1], features=VECTORS[:1])
    assert reader.upsert(DOCUMENTS[:1]) == 1
    reader.close()


# The service


@pytest.fixture
def client(engine: Any, collection: Any) -> Iterator[httpx.Client]:
    settings = Settings(engine.location(collection), api_key=KEY)
    with (
        serving_in_a_thread(settings) as served,
        httpx.Client(base_url=f"http://127.0.0.1:{served.port}", timeout=60) as made,
    ):
        yield made


def test_the_service_searches_for_vectors(client: httpx.Client, collection: Any) -> None:
    vector = QUERY.tolist()
    for query in ({"features": vector}, {"text": "star", "features": vector}, {"text": "star"}):
        answer = client.post("/v1/search", json={**query, "k": N}).json()
        expected = collection.search(query.get("text"), N, features=query.get("features"))
        assert answer["query"]["by"] == expected.by
        assert answer["query"]["code"] == (
            None if expected.code is None else expected.code.tobytes().hex()
        )
        assert [(hit["id"], hit["distance"]) for hit in answer["hits"]] == found(expected)
        for hit, one in zip(answer["hits"], expected, strict=True):
            assert hit["score"] == (None if one.score is None else round(one.score, 4))
            if expected.by != "codes":
                assert sum(hit["parts"].values()) == pytest.approx(one.score, abs=2e-4)
                assert (hit["parts"]["code"] == 0) == (expected.by == "words")
    similar = client.post("/v1/similar", json={"id": 0, "k": 5}).json()["hits"]
    assert [(hit["id"], hit["distance"]) for hit in similar] == found(collection.more_like(0, 5))
    for hit in similar:  # the code takes part in the score, also where nothing says how surely
        assert hit["parts"]["code"] != 0
        assert sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=2e-4)
    told = client.get("/v1/stats").json()
    assert (told["features"], told["no_known_word"]) == (6, 0)


def test_the_service_counts_and_goes_on_also_for_vectors(
    client: httpx.Client, collection: Any
) -> None:
    halves_of = {
        "all": [i < 15 for i in range(N)],
        "star": [i < 15 for i in range(N) if i != 4 and "star" in TEXTS[i].split()],
    }
    asked = [
        ({"features": QUERY.tolist()}, "all"),
        ({"text": "star", "features": QUERY.tolist()}, "star"),
        ({"text": "star"}, "star"),
    ]
    for query, matching in asked:
        counted = {"facets": ["half"], "reasons": True}
        whole = client.post("/v1/search", json={**query, **counted, "k": N}).json()
        rest = client.post("/v1/search", json={**query, **counted, "k": N, "offset": 2}).json()
        timed = {"hits", "milliseconds"}
        assert {key: rest[key] for key in rest.keys() - timed} == {
            key: whole[key] for key in whole.keys() - timed
        }
        assert rest["hits"] == whole["hits"][2:]
        halves = halves_of[matching]
        assert whole["total"] == len(halves) > 2
        assert {one["value"]: one["count"] for one in whole["facets"]["half"]["values"]} == {
            half: halves.count(half) for half in halves
        }
        for hit in whole["hits"]:  # a word has no code that could be near to that of a vector
            asked_for = "text" in query and hit["id"] != 4 and "star" in TEXTS[hit["id"]].split()
            assert hit["reasons"] == {"shared": ["star"] if asked_for else [], "near": []}
        unknown = client.post("/v1/search", json={**query, "facets": ["halve"]}).json()
        assert "is 'half' meant?" in unknown["warning"]
    several = client.post("/v1/search/several", json={"queries": [query for query, _ in asked]})
    assert [answer["total"] for answer in several.json()["answers"]] == [
        len(halves_of[matching]) for _, matching in asked
    ]


def test_the_service_says_what_a_collection_of_vectors_is_about(
    client: httpx.Client, collection: Any
) -> None:
    told = client.get("/v1/overview").json()
    assert told["topics"]
    assert told["questions"]
    for text in told["questions"]:
        assert client.post("/v1/search", json={"text": text}).json()["hits"]


def test_the_service_adds_and_explains_with_vectors(
    client: httpx.Client, of_features: Hasher
) -> None:
    writer = {"authorization": f"Bearer {KEY}"}
    vector = embedded(["ship sail"])[0].tolist()
    code = of_features.encode(features=[vector])[0].tobytes().hex()

    def add(*documents: dict[str, Any], **rest: Any) -> httpx.Response:
        return client.post(
            "/v1/documents", json={"documents": list(documents), **rest}, headers=writer
        )

    given = {"id": "new", "text": "ship sail", "features": vector}
    assert add(given).json()["written"] == 1
    assert (
        add({**given, "text": "", "features": [*vector[:5], 1]}, overwrite=True).status_code == 200
    )
    assert add(given, overwrite=True).json()["written"] == 1
    (stored,) = client.post("/v1/documents/get", json={"ids": ["new"]}).json()["documents"]
    assert (stored["code"], stored["text"]) == (code, "ship sail")
    for query in ({"text": "sail", "features": vector}, {"id": "new"}, {"code": code}):
        told = client.post("/v1/explain", json={"query": query, "id": "new"}).json()
        assert told["distance"] == 0
    for refused, message in [
        (add({"id": 99, "text": "star"}), "pass features="),
        (add({"id": 99, "text": "", "features": vector[:5]}), "features must have 6 columns"),
        (
            add(given, {"id": 99, "text": "star"}),
            "features of one length: 'new' has 6 numbers, 99 has 0",
        ),
        (add({"id": 99, "text": "", "features": ["1"]}), "should be a valid number"),
        (
            client.post("/v1/search", json={"k": 3}),
            "nothing to search for: send a text, or features",
        ),
        (client.post("/v1/search", json={"text": "star", "by": "codes"}), "pass features="),
        (client.post("/v1/search", json={"features": []}), "at least 1 item"),
        (
            client.post("/v1/explain", json={"query": {"text": "star"}, "id": "new"}),
            "pass features=",
        ),
    ]:
        assert refused.status_code == 422
        assert message in refused.json()["error"]["message"]
