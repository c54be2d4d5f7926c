"""The service over every engine: the answers are those of the collection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from boltzhash import Hasher
from boltzhash.server.map_file import StoredMap, save_map, with_names
from boltzhash.server.settings import Settings
from services import KEY, serving_in_a_thread
from snapshots import Newest

WRITER = {"authorization": f"Bearer {KEY}"}
TEXTS = ["star planet", "moon orbit", "bread butter", "oven flour", "ship sail", "anchor wave"]


@pytest.fixture
def collection(engine: Any, long_hasher: Hasher) -> Any:
    made = engine.create(long_hasher)
    made.add(
        {"id": i, "text": TEXTS[i % 6], "metadata": {"topic": i % 6, "half": i < 9}}
        for i in range(18)
    )
    return made


@pytest.fixture
def client(engine: Any, collection: Any) -> Iterator[httpx.Client]:
    settings = Settings(engine.location(collection), allowed_hosts=("*",), api_key=KEY)
    with (
        serving_in_a_thread(settings) as served,
        httpx.Client(base_url=f"http://127.0.0.1:{served.port}", timeout=60) as made,
    ):
        yield made


def pairs(answer: Any) -> list[tuple[Any, int]]:
    assert answer.status_code == 200, answer.text
    return [(hit["id"], hit["distance"]) for hit in answer.json()["hits"]]


def test_searching(client: httpx.Client, collection: Any, long_hasher: Hasher) -> None:
    where = {"half": True}
    for by in (None, "codes", "words", "both"):
        asked = {"text": "planet moon", "k": 7, "where": where, "by": by}
        expected = collection.search("planet moon", 7, by=by, where=where)
        answer = client.post("/v1/search", json=asked)
        assert pairs(answer) == [(hit.id, hit.distance) for hit in expected]
        hits = answer.json()["hits"]
        assert [hit["code"] for hit in hits] == [hit.code.hex() for hit in expected]
        assert [hit["score"] for hit in hits] == [
            None if hit.score is None else round(hit.score, 4) for hit in expected
        ]
        assert answer.json()["query"]["by"] == expected.by
        similar = pairs(client.post("/v1/similar", json={"id": 4, "k": 2, "by": by}))
        assert similar == [(10, 0), (16, 0)]
    code = long_hasher.transform(["oven flour"]).tobytes().hex()
    assert pairs(client.post("/v1/nearest", json={"code": code, "k": 3})) == [
        (3, 0),
        (9, 0),
        (15, 0),
    ]
    explained = client.post("/v1/explain", json={"query": {"text": "ship sail"}, "id": 4}).json()
    assert explained["distance"] == 0
    assert explained["shared_words"] == ["sail", "ship"] or explained["shared_words"] == [
        "ship",
        "sail",
    ]


def test_writing(client: httpx.Client, collection: Any) -> None:
    added = {"documents": [{"id": "new", "text": "star planet", "metadata": {}}]}
    assert client.post("/v1/documents", json=added).status_code == 401
    written = client.post("/v1/documents", json=added, headers=WRITER)
    assert written.status_code == 200, written.text
    assert written.json()["written"] == 1
    again = client.post("/v1/documents", json=added, headers=WRITER)
    assert again.status_code == 409
    overwritten = client.post("/v1/documents", json={**added, "overwrite": True}, headers=WRITER)
    assert overwritten.json()["generation"] > written.json()["generation"]
    assert pairs(client.post("/v1/search", json={"text": "star planet", "k": 4}))[-1] == ("new", 0)
    deleted = client.post(
        "/v1/documents/delete", json={"ids": ["new", "no"]}, headers=WRITER
    ).json()
    assert deleted["deleted"] == 1
    assert client.get("/v1/stats").json()["generation"] == deleted["generation"]
    found = client.post("/v1/documents/get", json={"ids": ["new", 3]}).json()["documents"]
    assert [(document["id"], document["text"]) for document in found] == [(3, "oven flour")]


def test_duplicates(client: httpx.Client, collection: Any) -> None:
    answer = client.get("/v1/duplicates").json()
    groups = [(group["kept"], group["duplicates"]) for group in answer["groups"]]
    assert groups == [
        (kept, [member._asdict() for member in members])
        for kept, members in Newest(collection).duplicates()
    ]
    shown = [[document["id"] for document in group["documents"]] for group in answer["groups"]]
    assert shown == [[i, i + 6, i + 12] for i in range(6)]


def test_the_map(client: httpx.Client, collection: Any) -> None:
    assert client.get("/v1/map").json()["made"] is False
    rows, model = Newest(collection).rows(), Newest(collection).state.model
    points = np.linspace(0, 1, 36, dtype=np.float32).reshape(18, 2)
    stored = StoredMap(model, rows.places, rows.codes, points)
    save_map(collection, with_names(Newest(collection), stored))
    shown = client.get("/v1/map", params={"field": "topic"}).json()
    assert shown["numbers"] == rows.places.tolist()
    assert shown["x"] == np.round(points[:, 0] * 65535).astype(int).tolist()
    assert sorted(shown["values"]) == sorted([*map(str, range(6)), "other", "none"])
    (document,) = client.get(f"/v1/map/{rows.places[7]}").json()["documents"]
    assert document["id"] == 7
    fields = client.get("/v1/fields").json()["fields"]
    assert [entry["count"] for entry in fields["half"]] == [9, 9]
