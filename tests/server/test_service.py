"""The API over a real socket: every answer compared with the collection, or with plain NumPy."""

from __future__ import annotations

import base64
import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pytest

from boltzhash import Hasher
from boltzhash.codes import hamming, unpack
from boltzhash.collection import Collection
from boltzhash.text.passages import cut
from boltzhash.text.tokens import tokenize
from snapshots import Newest

SEARCHES = ["star and planet", "the bread is in the oven", "captain of a ship", "sail moon sugar"]


def exact(
    hasher: Hasher, documents: list[dict[str, Any]], code: np.ndarray, k: int
) -> list[tuple[Any, int]]:
    """The k nearest, by the plain reference: (distance, order of insertion)."""
    distances = hamming(code[None], hasher.transform(d["text"] for d in documents))[0]
    order = np.argsort(distances, kind="stable")[:k]
    return [(documents[i]["id"], int(distances[i])) for i in order]


def pairs(answer: httpx.Response) -> list[tuple[Any, int]]:
    assert answer.status_code == 200, answer.text
    return [(hit["id"], hit["distance"]) for hit in answer.json()["hits"]]


# Searching


@pytest.mark.parametrize("text", SEARCHES)
def test_search_by_codes_is_exact(served: Any, corrsh: Hasher, documents: Any, text: str) -> None:
    answer = served.post("/v1/search", text=text, k=15, by="codes")
    assert pairs(answer) == exact(corrsh, documents, corrsh.transform([text])[0], 15)
    body = answer.json()
    assert body["query"] == {
        "code": corrsh.transform([text]).tobytes().hex(),
        "by": "codes",
        "known_words": int(corrsh.known_word_counts([text])[0]),
    }
    assert body["generation"] == 1
    by_id = {document["id"]: document for document in documents}
    for hit in body["hits"]:
        document = by_id[hit["id"]]
        assert (hit["score"], hit["parts"], hit["words"]) == (None, None, None)
        assert hit["metadata"] == document["metadata"]
        assert hit["code"] == corrsh.transform([document["text"]]).tobytes().hex()
        line = "".join(piece["text"] for piece in hit["snippet"])
        assert line == document["text"]  # they are short enough to be shown whole
        marked = {piece["text"] for piece in hit["snippet"] if piece.get("marked")}
        assert marked == set(tokenize(text)).intersection(tokenize(document["text"]))


def ranking(hits: Iterable[Any]) -> list[tuple[Any, ...]]:
    """What a collection found, as the service says it."""
    return [
        (hit.id, hit.distance, round(hit.score, 4), round(hit.words, 4), hit.code.hex())
        for hit in hits
    ]


def ranking_of(answer: httpx.Response) -> list[tuple[Any, ...]]:
    assert answer.status_code == 200, answer.text
    names = ("id", "distance", "score", "words", "code")
    return [tuple(hit[name] for name in names) for hit in answer.json()["hits"]]


@pytest.mark.parametrize("by", [None, "both", "words"])
@pytest.mark.parametrize(
    "text", [*SEARCHES, "planets of the moon -star", '"star planet"', "sea-61", "xylophone bread"]
)
def test_search_by_words_is_the_collections(
    served: Any, served_folder: Path, text: str, by: str | None
) -> None:
    answer = served.post("/v1/search", text=text, k=15, by=by)
    with Collection.open(served_folder) as collection:
        expected = collection.search(text, 15, by=by)
    assert ranking_of(answer) == ranking(expected)
    assert answer.json()["query"]["by"] == expected.by == (by or "both")


def test_the_parts_of_a_score_are_those_of_the_formula(served: Any, corrsh: Hasher) -> None:
    text = "planets and a moon"
    (margins,) = corrsh.margins(corrsh.tfidf([text]))
    hits = served.post("/v1/search", text=text, k=100).json()["hits"]
    spreads = []
    for hit in hits:
        signs = np.where(
            unpack(np.frombuffer(bytes.fromhex(hit["code"]), np.uint8)[None])[0], 1, -1
        )
        by_code = 0.3 * float(signs @ margins) / float(np.linalg.norm(margins))
        assert hit["parts"]["code"] == pytest.approx(by_code, abs=1e-4)
        assert sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=2e-4)
        if hit["words"] > 0:
            spreads.append(hit["words"] / hit["parts"]["words"])
        else:
            assert hit["parts"]["words"] == pytest.approx(0, abs=1e-4)
    np.testing.assert_allclose(spreads, spreads[0], rtol=2e-3)  # one spread for all
    assert 20 < len(spreads) < len(hits)
    by_words = served.post("/v1/search", text=text, by="words").json()["hits"]
    assert all(hit["parts"] == {"words": hit["score"], "code": 0} for hit in by_words)
    assert by_words


@pytest.mark.parametrize("order", ["distance", "confidence", "words"])
def test_an_order_is_the_collections(served: Any, served_folder: Path, order: str) -> None:
    answer = served.post("/v1/search", text="planet moon", k=20, order=order)
    with Collection.open(served_folder) as collection:
        expected = collection.search("planet moon", 20, order=order)
    assert pairs(answer) == [(hit.id, hit.distance) for hit in expected]
    assert answer.json()["query"]["by"] == "codes"


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"text": ""}, "the query is empty: give a text to search for"),
        (
            {"text": "-moon"},
            "'-moon' has no word to search for: add one that documents should have",
        ),
        ({"text": "moon", "order": "mood"}, "order must be one of distance, confidence, words"),
        ({"text": "moon", "order": "words", "by": "both"}, "order is for by='codes'"),
        ({"text": "moon", "by": "mood"}, "Input should be 'both', 'words' or 'codes'"),
        ({"text": "moon", "rerank": True}, "Extra inputs are not permitted"),
    ],
)
def test_what_cannot_be_searched_for_is_refused(
    served: Any, asked: dict[str, Any], problem: str
) -> None:
    refused = served.post("/v1/search", **asked)
    assert refused.status_code == 422
    assert problem in refused.json()["error"]["message"]


@pytest.mark.parametrize("by", [None, "words", "codes"])
@pytest.mark.parametrize("id_", ["sky-3", "kitchen-40", 7])
def test_more_like_a_document_is_the_collections(
    served: Any, served_folder: Path, corrsh: Hasher, documents: Any, id_: Any, by: str | None
) -> None:
    where = {"number": {"<": 80}}
    answer = served.post("/v1/similar", id=id_, k=8, by=by, where=where)
    found = pairs(answer)
    assert len(found) == 8
    assert id_ not in [found_id for found_id, _ in found]
    if by == "codes":
        text = next(d["text"] for d in documents if d["id"] == id_)
        allowed = [d for d in documents if d["metadata"].get("number", 80) < 80]
        nearest = exact(corrsh, allowed, corrsh.transform([text])[0], 9)
        assert found == [pair for pair in nearest if pair[0] != id_][:8]
    else:
        with Collection.open(served_folder) as collection:
            assert ranking_of(answer) == ranking(collection.more_like(id_, 8, by=by, where=where))


def test_words_are_marked_in_every_form(service: Any) -> None:
    texts = {
        "in a sentence": "The captain was sailing. She reads old charts, and he read them too.",
        "as a name": "See email.message, EmailMessage and send_email for e-mail in the U.S.A.",
        "without spaces": "東京都の天気は晴れ",
    }
    written = [{"id": id_, "text": text} for id_, text in texts.items()]
    service.write("/v1/documents", documents=written)

    def marked(text: str) -> dict[str, list[str]]:
        found = service.post("/v1/search", text=text, by="words").json()["hits"]
        return {
            hit["id"]: [piece["text"] for piece in hit["snippet"] if piece.get("marked")]
            for hit in found
            if hit["id"] in texts
        }

    assert marked("reading a chart") == {"in a sentence": ["reads", "charts", "read"]}
    assert marked("emails of the USA") == {
        "as a name": ["email", "EmailMessage", "email", "e-mail", "U.S.A"]
    }
    assert marked("京都の") == {"without spaces": ["京都の"]}
    assert marked("reads -captain") == {}
    asked = {"query": {"text": "reading"}, "id": "in a sentence"}
    assert service.post("/v1/explain", **asked).json()["shared_words"] == ["reads"]


def test_a_hit_says_which_passage_it_was_found_by(
    serve: Callable[..., Any], tmp_path: Path, corrsh: Hasher
) -> None:
    """Offsets are of characters, and not of what UTF-16 or UTF-8 makes of them."""
    before, after = "🚢 The ship has a sail. " * 20, "The oven is for bread. " * 20
    text = before + "A star and a planet have an orbit. " * 8 + after
    with Collection.create(tmp_path / "c", corrsh, passages=30) as collection:
        collection.add([{"id": "long", "text": text}, {"id": "short", "text": "A moon."}])
    with serve(tmp_path / "c") as service:
        for by in ("codes", "words", "both"):
            asked = {"text": "star and planet", "by": by, "reasons": True}
            hits = service.post("/v1/search", **asked).json()["hits"]
            hit = next(hit for hit in hits if hit["id"] == "long")
            passage = text[hit["passage"]["start"] : hit["passage"]["end"]]
            assert "A star and a planet have an orbit." in passage
            assert len(passage) < len(text) / 4
            assert "".join(piece["text"] for piece in hit["snippet"]) in passage
            assert set(hit["reasons"]["shared"]) == {"star", "planet"}
            assert hit["code"] == corrsh.transform([passage]).tobytes().hex()
            query = {"text": "star and planet"}
            told = service.post("/v1/explain", query=query, id="long", code=hit["code"]).json()
            assert told["distance"] == hit["distance"]
            assert told["document_code"] == hit["code"]
        told = service.client.get("/v1/stats").json()
        assert told["documents"] == 2
        assert told["passages"] == {"words": 30, "passages": len(cut(text, 30)) + 1}
        written = {"id": "more", "text": text}
        service.write("/v1/documents", documents=[written]).raise_for_status()
        told = service.client.get("/v1/stats").json()
        assert told["passages"]["passages"] == 2 * len(cut(text, 30)) + 1


def test_ids_of_other_types_are_other_ids(served: Any) -> None:
    assert served.post("/v1/similar", id="7").status_code == 404
    assert served.post("/v1/similar", id=7).status_code == 200


def test_filters_come_before_the_cut(served: Any, corrsh: Hasher, documents: Any) -> None:
    where = {"topic": ["sea", "kitchen"], "number": {">=": 50, "<": 70}}
    allowed = [d for d in documents if 50 <= d["metadata"].get("number", 0) < 70]
    answer = served.post("/v1/search", text="star", k=100, where=where, by="codes")
    assert pairs(answer) == exact(corrsh, allowed, corrsh.transform(["star"])[0], 100)
    assert len(allowed) == 20
    by_both = served.post("/v1/search", text="star", k=100, where=where)
    assert {hit["id"] for hit in by_both.json()["hits"]} == {d["id"] for d in allowed}


def test_a_filter_that_nothing_could_match_is_pointed_out(served: Any) -> None:
    answer = served.post("/v1/search", text="star", where={"nummber": 51}).json()
    assert answer["hits"] == []
    expected = "no document has a field 'nummber' (is 'number' meant?); fields are: "
    assert answer["warning"].startswith(expected)
    answer = served.post("/v1/search", text="star", where={"number": "51"}).json()
    assert answer["warning"].startswith("no document has a string in the field 'number'")


def test_null_is_no_filter(served: Any) -> None:
    def found(**asked: Any) -> dict[str, Any]:
        answer: dict[str, Any] = served.post("/v1/search", text="star", **asked).json()
        del answer["milliseconds"]
        return answer

    assert found(where=None) == found(where={}) == found()


@pytest.mark.parametrize("by", ["both", "words", "codes"])
def test_offset_goes_on_where_the_last_answer_ended(served: Any, by: str) -> None:
    whole = served.post("/v1/search", text="star and planet", k=30, by=by).json()["hits"]
    parts = [
        served.post("/v1/search", text="star and planet", k=7, offset=offset, by=by).json()
        for offset in (0, 7, 14, 21)
    ]
    assert [hit for part in parts for hit in part["hits"]] == whole[:28]
    assert len({part["total"] for part in parts}) == 1


def test_offset_of_documents_like_one_and_near_a_code(served: Any) -> None:
    for path, asked in (("similar", {"id": "sky-3"}), ("nearest", {"code": "0102fe80"})):
        whole = served.post(f"/v1/{path}", k=20, **asked).json()["hits"]
        assert served.post(f"/v1/{path}", k=5, offset=10, **asked).json()["hits"] == whole[10:15]


def test_offset_reaches_no_further_than_hits_are_in_order(served: Any) -> None:
    assert served.post("/v1/search", text="star", k=100, offset=400).json()["hits"] == []
    refused = served.post("/v1/search", text="star", k=100, offset=401)
    assert refused.status_code == 422
    assert "at most 500 together, got 501" in refused.json()["error"]["message"]


def test_facets_count_what_matches(served: Any, documents: Any) -> None:
    asked = {"text": "star bread", "k": 1, "facets": ["topic", "number"]}
    answer = served.post("/v1/search", by="words", **asked).json()
    having = [d for d in documents if {"star", "bread"} & set(tokenize(d["text"]))]
    assert 1 < len(having) < len(documents)
    assert answer["total"] == len(having)
    topics = Counter(d["metadata"]["topic"] for d in having if "topic" in d["metadata"])
    expected = sorted(topics.items(), key=lambda pair: (-pair[1], pair[0]))
    facets = answer["facets"]
    assert facets["topic"]["values"] == [{"value": v, "count": n} for v, n in expected]
    numbers = [d["metadata"]["number"] for d in having if "number" in d["metadata"]]
    assert (facets["number"]["least"], facets["number"]["most"]) == (min(numbers), max(numbers))
    assert (facets["topic"]["least"], facets["topic"]["most"]) == (None, None)
    both = served.post("/v1/search", **asked).json()
    assert (both["total"], both["facets"]) == (answer["total"], facets)
    by_code = served.post("/v1/nearest", code="00000000", facets=["topic"]).json()
    assert by_code["total"] == len(documents)
    assert sum(value["count"] for value in by_code["facets"]["topic"]["values"]) == 90
    few = served.post("/v1/nearest", code="00000000", where={"topic": "sea"}).json()
    assert few["total"] == 30
    assert "facets" not in few
    misspelt = served.post("/v1/search", text="star", facets=["topik"]).json()
    assert "'topik' (is 'topic' meant?)" in misspelt["warning"]


def test_a_query_of_unknown_words_says_so_and_finds_by_its_words(service: Any) -> None:
    nothing = service.post("/v1/search", text="xylophone").json()
    assert (nothing["query"]["known_words"], nothing["hits"]) == (0, [])
    added = [{"id": "new", "text": "Two xylophones."}]
    assert service.write("/v1/documents", documents=added).status_code == 200
    answer = service.post("/v1/search", text="xylophone").json()
    assert answer["query"]["known_words"] == 0
    (hit,) = answer["hits"]
    assert (hit["id"], hit["parts"]["code"]) == ("new", 0)
    assert hit["parts"]["words"] == hit["score"] > 0
    by_codes = service.post("/v1/search", text="xylophone", by="codes").json()
    assert len(by_codes["hits"]) == 10


# Explaining


def test_an_explanation_has_the_bits_of_both_codes(
    served: Any, corrsh: Hasher, documents: Any
) -> None:
    text, hit = "star planet bread", documents[3]
    one, other = corrsh.transform([text, hit["text"]])
    answer = served.post("/v1/explain", query={"text": text}, id=hit["id"]).json()
    ours, theirs = unpack(one[None])[0], unpack(other[None])[0]
    assert answer["distance"] == int((ours != theirs).sum())
    assert [bit["agrees"] for bit in answer["bits"]] == (ours == theirs).tolist()
    assert [bit["on"] for bit in answer["bits"]] == theirs.tolist()
    bits = unpack(corrsh.transform([d["text"] for d in documents]))
    tokens = [set(tokenize(d["text"])) for d in documents]
    for bit in answer["bits"]:
        same = bits[:, bit["bit"]] == bit["on"]
        for word in bit["words"]:  # it sets the document's side apart
            has = np.array([word in some for some in tokens])
            assert has[same].mean() > has[~same].mean()
        assert bit["in_query"] == [w for w in bit["words"] if w in tokenize(text)]
        assert bit["in_document"] == [w for w in bit["words"] if w in tokenize(hit["text"])]
    shared = set(tokenize(text)).intersection(tokenize(hit["text"]))
    assert set(answer["shared_words"]) == shared


def test_a_document_or_a_code_can_be_explained_too(served: Any, corrsh: Hasher) -> None:
    by_id = served.post("/v1/explain", query={"id": "sky-0"}, id=7).json()
    assert by_id["distance"] == 0
    assert all(bit["agrees"] for bit in by_id["bits"])
    flipped = bytes(255 - byte for byte in bytes.fromhex(by_id["document_code"])).hex()
    by_code = served.post("/v1/explain", query={"code": flipped}, id=7).json()
    assert by_code["distance"] == 32


# The collection


def test_near_duplicates_are_the_collections(served: Any, served_folder: Path) -> None:
    with Collection.open(served_folder) as collection:
        groups = Newest(collection).duplicates(0.5, keep="newest")
    assert groups
    asked = {"min_similarity": 0.5, "keep": "newest", "limit": 100}
    answer = served.client.get("/v1/duplicates", params=asked).json()
    assert (answer["min_similarity"], answer["keep"]) == (0.5, "newest")
    assert answer["n_groups"] == len(groups)
    assert answer["n_extra"] == sum(len(group.duplicates) for group in groups)
    for told, group in zip(answer["groups"], groups, strict=True):
        assert told["size"] == 1 + len(group.duplicates)
        assert told["kept"] == group.kept
        assert told["similarity"] == min(member.similarity for member in group.duplicates)
        assert told["duplicates"] == [member._asdict() for member in group.duplicates]
        whole = [group.kept, *(member.id for member in group.duplicates)][:20]
        assert [document["id"] for document in told["documents"]] == whole
    second = served.client.get("/v1/duplicates", params={**asked, "offset": 1, "limit": 1})
    assert second.json()["groups"] == answer["groups"][1:2]
    default = served.client.get("/v1/duplicates").json()  # not what was asked for last
    assert [group["kept"] for group in default["groups"]] == ["sky-0"]
    assert default["groups"][0]["duplicates"] == [{"id": 7, "similarity": 1.0}]


def test_fields_list_the_commonest_values(served: Any) -> None:
    fields = served.client.get("/v1/fields").json()["fields"]
    assert fields["topic"] == [{"value": t, "count": 30} for t in ("kitchen", "sea", "sky")]
    assert fields["copied"] == [{"value": True, "count": 1}]
    assert fields["number"][0] == {"value": 0, "count": 1}
    assert len(fields["number"]) == 30


def test_one_document_by_its_address(served: Any, documents: Any) -> None:
    for address, number in (("sea-61", 61), ("%22sea-61%22", 61), ("7", -1)):
        told = served.client.get(f"/v1/documents/{address}").json()
        assert told["generation"] == 1
        document = told["document"]
        assert {name: document[name] for name in documents[number]} == documents[number]
    missing = served.client.get("/v1/documents/%227%22")  # the string
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "no_such_document")


def test_every_id_has_an_address(service: Any) -> None:
    names = ["a/b", "get", "ö ?#%", "..", "/", "a/", "[1]", "true", "nul\0", "a\nb", "x" * 1000]
    ids: list[Any] = [*names, 0, -5, 2**53 - 1]
    written = [{"id": id_, "text": f"number {i}"} for i, id_ in enumerate(ids)]
    assert service.write("/v1/documents", documents=written).status_code == 200

    def text_at(id_: str) -> str:
        told = service.client.get(f"/v1/documents/{quote(id_, safe='')}").json()
        return str(told["document"]["text"])

    for number, id_ in enumerate(ids):
        assert text_at(json.dumps(id_)) == f"number {number}"
        if id_ != "..":  # clients take it for a step up
            assert text_at(str(id_)) == f"number {number}"


def test_a_walk_through_all_documents_survives_writes(service: Any, documents: Any) -> None:
    seen: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        told = service.client.get("/v1/documents", params={"after": after, "limit": 40}).json()
        if after == 0:
            assert (told["total"], told["generation"]) == (91, 1)
            service.write("/v1/documents", documents=[{"id": "new", "text": "moon"}])
            service.write("/v1/documents/delete", ids=["sky-0", "sea-61"])
        seen += told["documents"]
        after = told["next"]
    expected = [d["id"] for d in documents if d["id"] != "sea-61"]
    assert [document["id"] for document in seen] == [*expected, "new"]
    assert set(seen[0]) == {"id", "title", "text", "metadata", "code"}
    last = service.client.get("/v1/documents", params={"limit": 90}).json()
    assert (len(last["documents"]), last["next"]) == (90, None)
    assert len(service.client.get("/v1/documents").json()["documents"]) == 20
    for wrong in ({"limit": 101}, {"limit": 0}, {"after": -1}, {"afer": 3}):
        assert service.client.get("/v1/documents", params=wrong).status_code == 422


def test_several_searches_are_those_of_one_each(served: Any) -> None:
    queries = [
        {"text": "star", "k": 3, "facets": ["topic"]},
        {"text": "bread", "by": "codes", "offset": 5, "where": {"topic": "sea"}},
        {"text": "moon", "where": {"topik": 1}},
    ]
    together = served.post("/v1/search/several", queries=queries).json()
    assert (together["generation"], together["milliseconds"] > 0) == (1, True)
    for told, query in zip(together["answers"], queries, strict=True):
        alone = served.post("/v1/search", **query).json()
        del alone["generation"], alone["milliseconds"]
        assert told == alone
    refused = served.post("/v1/search/several", queries=[{"text": "moon"}, {"text": "-moon"}])
    assert refused.status_code == 422
    assert refused.json()["error"]["message"].startswith("queries.1: '-moon' has no word")
    wrong = served.post("/v1/search/several", queries=[{"text": "moon", "k": 0}])
    assert wrong.json()["error"]["details"][0]["where"] == "body.queries.0.k"
    many = served.post("/v1/search/several", queries=[{"text": "moon"}] * 21)
    assert "20" in many.json()["error"]["message"]


def test_a_misspelt_query_parameter_is_refused(served: Any) -> None:
    def refused(path: str) -> str:
        answer = served.client.get(path)
        assert answer.status_code == 422
        return str(answer.json()["error"]["message"])

    assert "'min_similarty' (is 'min_similarity' meant?)" in refused(
        "/v1/duplicates?min_similarty=0.9"
    )
    assert "there are: min_similarity, keep," in refused("/v1/duplicates?radius=3")
    assert "this address takes none" in refused("/v1/stats?verbose=1")
    answer = served.client.post("/v1/search?k=3", json={"text": "moon"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")


LARGE = 2**53 + 1  # 9007199254740992 to JavaScript


def test_ids_that_javascript_rounds_are_sent_as_digits(service: Any) -> None:
    shown = {"int64": "9007199254740993"}
    texts = {LARGE: "a large comet", LARGE + 1: "a large comet", -LARGE: "sugar", LARGE - 2: "salt"}
    written = [{"id": id_, "text": text} for id_, text in texts.items()]
    written[1]["id"] = {"int64": str(LARGE + 1)}
    assert service.write("/v1/documents", documents=written).json()["written"] == 4

    def first_id(path: str, **asked: Any) -> Any:
        return service.post(path, **asked).json()["hits"][0]["id"]

    assert first_id("/v1/search", text="large comet", by="words") == shown
    for sent in (LARGE, shown):
        assert first_id("/v1/similar", id=sent) == {"int64": "9007199254740994"}
        asked = service.post("/v1/explain", query={"id": sent}, id=sent)
        assert asked.json()["distance"] == 0
        got = service.post("/v1/documents/get", ids=[sent, LARGE - 2]).json()["documents"]
        assert [document["id"] for document in got] == [shown, 2**53 - 1]
    (group,) = service.client.get("/v1/duplicates?min_similarity=1").json()["groups"][1:]
    assert (group["kept"], group["documents"][0]["id"]) == (shown, shown)
    assert group["duplicates"][0]["id"] == {"int64": "9007199254740994"}
    told = service.client.get(f"/v1/documents/{LARGE}").json()
    assert told["document"]["id"] == shown
    gone = service.write("/v1/documents/delete", ids=[shown, {"int64": str(-LARGE)}])
    assert gone.json()["deleted"] == 2
    for wrong in ("9223372036854775808", "1e3", "007", "", "-0", 7, None):
        assert service.post("/v1/similar", id={"int64": wrong}).status_code == 422
    assert service.post("/v1/similar", id={"int64": "7", "more": 1}).status_code == 422
    assert service.post("/v1/similar", id={"int64": "7"}).status_code == 200


def test_stats_and_documents(served: Any, documents: Any) -> None:
    stats = served.client.get("/v1/stats").json()
    assert (stats["documents"], stats["bits"], stats["method"]) == (
        len(documents),
        32,
        "SemanticHasher",
    )
    assert stats["writing"] is True
    got = served.post("/v1/documents/get", ids=[7, "none", "sea-61"]).json()["documents"]
    assert [(d["id"], d["text"], d["metadata"]) for d in got] == [
        (d["id"], d["text"], d["metadata"]) for d in (documents[-1], documents[61])
    ]
    assert got[0]["title"] == "A copy"


# Writing


def test_writes_are_seen_at_once_and_raise_the_generation(
    serve: Callable[..., Any], folder: Path, lsh: Hasher, documents: Any
) -> None:
    new = {"id": "new", "text": "comet comet galaxy", "metadata": {"topic": "new"}}
    with serve(folder) as service:
        added = service.write("/v1/documents", documents=[new])
        assert (added.status_code, added.json()) == (200, {"generation": 2, "written": 1})
        found = service.post("/v1/search", text="comet comet galaxy", where={"topic": "new"})
        assert (found.json()["generation"], pairs(found)) == (2, [("new", 0)])
        again = service.write("/v1/documents", documents=[new])
        assert again.status_code == 409
        assert "'new'" in again.json()["error"]["message"]
        other = {**new, "text": "sugar"}
        replaced = service.write("/v1/documents", documents=[other], overwrite=True)
        assert replaced.json()["generation"] == 3
        gone = service.write("/v1/documents/delete", ids=["sky-0", "nowhere"])
        assert gone.json() == {"generation": 4, "deleted": 1}
        left = [*documents[1:], other]
        found = service.post("/v1/search", text="sugar", k=100, by="codes")
        assert pairs(found) == exact(lsh, left, lsh.transform(["sugar"])[0], 100)
        assert service.stop() == 0
    with Collection.open(folder) as collection:
        assert [d.id for d in collection] == [d["id"] for d in left]
        Newest(collection).check()


def test_workers_see_each_others_writes_and_end_with_their_parent(
    serve: Callable[..., Any], folder: Path
) -> None:
    with serve(folder, "--workers", "2") as service:
        metrics = set()
        for number in range(7):
            with httpx.Client(base_url=service.address) as new:  # whichever worker takes it
                headers = {"authorization": "Bearer a-key-for-tests"}
                body = {"documents": [{"id": number, "text": "comet"}]}
                made = new.post("/v1/documents", json=body, headers=headers, timeout=30).json()
            for _ in range(4):
                with httpx.Client(base_url=service.address) as other:
                    seen = other.post("/v1/documents/get", json={"ids": [number]}).json()
                    assert seen["generation"] == made["generation"] == number + 2
                    assert [d["id"] for d in seen["documents"]] == [number]
                    metrics.add(_count(service, "/v1/documents/get"))
        assert max(metrics) == 7 * 4  # counted together
        service.process.kill()
        service.process.wait()
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", service.port), timeout=1).close()
            except OSError:
                return
            time.sleep(0.1)
        raise AssertionError("the workers live on")


def test_a_refused_batch_changes_nothing(served: Any) -> None:
    batch = [{"id": "fresh", "text": "a"}, {"id": "sky-1", "text": "b"}]
    assert served.write("/v1/documents", documents=batch).status_code == 409
    twice = [{"id": "fresh", "text": "a"}, {"id": "fresh", "text": "b"}]
    refused = served.write("/v1/documents", documents=twice)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "id_twice")
    assert "the id 'fresh' is in this request 2 times" in refused.json()["error"]["message"]
    stats = served.client.get("/v1/stats").json()
    assert (stats["generation"], stats["documents"]) == (1, 91)


def test_a_document_that_is_overwritten_twice_in_one_request_counts_once(service: Any) -> None:
    twice = [{"id": "a", "text": "star"}, {"id": "b", "text": "sea"}, {"id": "a", "text": "moon"}]
    written = service.write("/v1/documents", documents=twice, overwrite=True).json()
    assert written["written"] == 2
    assert service.client.get("/v1/documents/a").json()["document"]["text"] == "moon"


def test_with_a_key_for_reading_nothing_is_read_without_one(
    serve: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOLTZHASH_READ_KEY", "a-reader")
    wrong = [
        None,
        "Bearer wrong",
        "Bearer",
        "Basic !",
        "Basic " + _basic("a-reader", "x"),
        "a-reader",
    ]
    right = ["Bearer a-reader", "bearer a-key-for-tests", "Basic " + _basic("any", "a-reader")]
    with serve(folder, "--workers", "2") as service:

        def answers(given: str | None) -> list[httpx.Response]:
            headers = {} if given is None else {"authorization": given}
            paths = ("/", "/page/app.js", "/docs", "/openapi.json", "/metrics", "/v1/stats")
            found = service.client.post("/v1/search", json={"text": "moon"}, headers=headers)
            return [found, *(service.client.get(path, headers=headers) for path in paths)]

        for given in wrong:
            for answer in answers(given):
                assert (answer.status_code, answer.json()["error"]["code"]) == (401, "key_needed")
                assert answer.headers["www-authenticate"].startswith("Basic realm=")
        for given in right:
            assert {answer.status_code for answer in answers(given)} == {200}
        for path in ("/healthz", "/readyz"):
            assert service.client.get(path).status_code == 200
        body = {"documents": [{"id": 1, "text": "moon"}]}
        for given in ("Bearer a-reader", "Basic " + _basic("any", "a-key-for-tests")):
            headers = {"authorization": given}
            refused = service.client.post("/v1/documents", json=body, headers=headers)
            assert refused.status_code == 401
        assert service.write("/v1/documents", **body).status_code == 200


def _basic(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize("given", [None, "wrong", "a-key-for-test", "a-key-for-tests ✓"])
def test_writing_needs_the_key(served: Any, given: str | None) -> None:
    headers = {} if given is None else {"authorization": f"Bearer {given}".encode()}
    for path in ("/v1/documents", "/v1/documents/delete"):
        body = (
            {"ids": ["sky-0"]}
            if path.endswith("delete")
            else {"documents": [{"id": 1, "text": ""}]}
        )
        answer = served.client.post(path, json=body, headers=headers)
        assert answer.status_code == 401
        assert "Authorization: Bearer" in answer.json()["error"]["message"]
    assert served.client.get("/v1/stats").json()["generation"] == 1


def test_without_a_key_writing_is_off(serve: Callable[..., Any], folder: Path) -> None:
    with serve(folder, key=None) as service:
        for headers in ({}, {"authorization": "Bearer None"}):
            body = {"documents": [{"id": 1, "text": "a"}]}
            answer = service.client.post("/v1/documents", json=body, headers=headers)
            assert answer.status_code == 403
            assert "BOLTZHASH_API_KEY" in answer.json()["error"]["message"]
        assert service.client.get("/v1/stats").json()["writing"] is False


def test_the_key_is_in_no_log_and_no_answer(serve: Callable[..., Any], folder: Path) -> None:
    with serve(folder, key="a-very-secret-key") as service:
        service.client.post("/v1/documents", headers={"authorization": "Bearer a-very-secret-key"})
        service.client.post("/v1/documents", headers={"authorization": "Bearer a-wrong-secret"})
        texts = [service.client.get(p).text for p in ("/", "/docs", "/openapi.json", "/metrics")]
        service.stop()
        assert not re.search("secret", service.log.read_text() + "".join(texts))


# Operations


def test_health_readiness_and_metrics(served: Any) -> None:
    assert served.client.get("/healthz").json() == {"status": "ok"}
    assert served.client.get("/readyz").json() == {"status": "ready"}
    before = _count(served, "/v1/nearest")
    served.post("/v1/nearest", code="00000000")
    served.client.post("/v1/made/up/path")
    assert _count(served, "/v1/nearest") == before + 1
    text = served.client.get("/metrics").text
    assert "\nboltzhash_documents 91\n" in text
    assert "\nboltzhash_generation 1\n" in text
    assert 'route="other",status="404"' in text
    assert "made/up" not in text


def _count(served: Any, route: str) -> float:
    found = re.search(
        rf'boltzhash_requests_total{{method="POST",route="{route}",status="200"}} (\S+)',
        served.client.get("/metrics").text,
    )
    return float(found.group(1)) if found else 0.0


def test_the_description_names_every_address_and_the_page_shows_it(served: Any) -> None:
    description = served.client.get("/openapi.json").json()
    assert description["openapi"].startswith("3.1")
    page = served.client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    for path in description["paths"]:
        assert path in page.text
    assert not re.search(r'(src|href)="(https?:)?//', page.text)


@pytest.mark.parametrize(
    "path",
    ["/", "/docs", "/page/app.js", "/v1/stats", "/healthz", "/metrics", "/nothing", "/v1/search"],
)
def test_head_answers_as_get_does_without_the_body(served: Any, path: str) -> None:
    """It was 405 everywhere."""
    get, head = served.client.get(path), served.client.head(path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    names = ("content-type", "content-length", "etag", "allow", "content-security-policy")
    if path == "/metrics":
        names = ("content-type",)  # it counts requests
    assert [head.headers.get(name) for name in names] == [get.headers.get(name) for name in names]
    assert 'method="HEAD"' in served.client.get("/metrics").text


def test_a_slash_too_many_leads_to_a_relative_place(served: Any) -> None:
    """An absolute one names the scheme and the path that the service sees, not those of a proxy."""
    get = served.client.get
    assert get("/v1/stats/").status_code == 307
    assert get("/v1/stats/").headers["location"] == "../stats"
    asked = get("/v1/duplicates/?min_similarity=0.9&keep=newest")
    assert asked.headers["location"] == "../duplicates?min_similarity=0.9&keep=newest"
    followed = get("/v1/map/3/", follow_redirects=True)
    assert (followed.status_code, len(followed.json()["documents"])) == (200, 1)
    found = served.client.post("/v1/search/", json={"text": "star"}, follow_redirects=True)
    assert found.json()["hits"]
    assert get("/v1/documents/?limit=3").headers["location"] == "../documents?limit=3"
    for path in ("/nothing/", "/v1/stats//", "/v1//"):
        assert get(path).status_code == 404


def test_a_request_is_called_in_answer_and_log_as_its_sender_calls_it(
    service: Any, folder: Path
) -> None:
    given = service.client.get("/v1/stats", headers={"x-request-id": "proxy-7"})
    assert given.headers["x-request-id"] == "proxy-7"
    made = {service.client.get("/nothing").headers["x-request-id"] for _ in range(2)}
    odd = service.client.get("/healthz", headers={"x-request-id": "two words"})
    made.add(odd.headers["x-request-id"])
    assert len(made) == 3
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in made)
    (folder / "collection.sqlite").write_bytes(b"not a database" * 1000)
    name = {"x-request-id": "unlucky"}
    refused = service.client.post("/v1/search", json={"text": "moon"}, headers=name)
    assert refused.status_code == 500
    date = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ERROR \[unlucky\] .*collection"
    assert re.search(date, service.log.read_text(), re.MULTILINE)


def test_errors_have_a_code_for_programs(served: Any) -> None:
    def code(answer: httpx.Response) -> str:
        return str(answer.json()["error"]["code"])

    assert code(served.post("/v1/similar", id="nowhere")) == "no_such_document"
    assert code(served.post("/v1/search", text="")) == "invalid"
    assert code(served.post("/v1/search", text="a", k=0)) == "invalid"
    assert code(served.post("/v1/documents", documents=[{"id": 1, "text": ""}])) == "key_needed"
    twin = [{"id": "sky-1", "text": ""}]
    assert code(served.write("/v1/documents", documents=twin)) == "id_exists"
    assert code(served.client.get("/nowhere")) == "not_found"
    assert code(served.client.delete("/v1/stats")) == "method_not_allowed"
    schemas = served.client.get("/openapi.json").json()["components"]["schemas"]
    assert {"busy", "no_collection"} < set(schemas["ErrorBody"]["properties"]["code"]["enum"])


def test_a_browser_that_has_a_file_of_the_page_does_not_load_it_again(served: Any) -> None:
    tag = served.client.get("/page/app.js").headers["etag"]
    for given in (tag, f"W/{tag}", f'"other", {tag}'):  # proxies that compress weaken tags
        answer = served.client.get("/page/app.js", headers={"if-none-match": given})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == tag
    other = served.client.get("/page/app.js", headers={"if-none-match": '"other"'})
    assert other.status_code == 200


def test_no_collection_is_not_an_error_until_it_is_asked(
    serve: Callable[..., Any], tmp_path: Path, lsh: Hasher
) -> None:
    folder = tmp_path / "to come"
    with serve(folder) as service:
        assert service.client.get("/healthz").status_code == 200
        refused = service.client.get("/readyz")
        assert refused.status_code == 503
        assert "boltzhash index" in refused.json()["error"]["message"]
        assert str(tmp_path) not in refused.text
        assert service.client.get("/metrics").status_code == 200
        assert service.client.get("/").status_code == 200
        with Collection.create(folder, lsh) as collection:
            collection.add([{"id": 1, "text": "moon"}])
        assert pairs(service.post("/v1/search", text="moon")) == [(1, 0)]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_collection_that_is_gone_is_noticed_before_anything_is_written(
    serve: Callable[..., Any], folder: Path, workers: str
) -> None:
    """It was answered with 200, and the document was in no file."""
    document = {"id": "late", "text": "moon"}
    with serve(folder, "--workers", workers) as service:
        assert service.post("/v1/search", text="moon").status_code == 200
        assert service.write("/v1/documents", documents=[{"id": 1, "text": ""}]).status_code == 200
        shutil.move(folder, folder.with_name("elsewhere"))
        for _ in range(4):  # on new connections, so that every worker is asked
            with httpx.Client(base_url=service.address, timeout=30) as new:
                key = {"authorization": "Bearer a-key-for-tests"}
                body = {"documents": [document]}
                refused = new.post("/v1/documents", json=body, headers=key)
                assert refused.status_code == 503
                assert "deleted or moved" in refused.json()["error"]["message"]
                for path in ("/readyz", "/v1/stats", "/v1/fields", "/v1/duplicates"):
                    assert new.get(path).status_code == 503, path
                assert new.post("/v1/search", json={"text": "moon"}).status_code == 503
                assert "boltzhash_documents" not in new.get("/metrics").text
        shutil.move(folder.with_name("elsewhere"), folder)
        assert service.client.get("/readyz").status_code == 200
        assert service.write("/v1/documents", documents=[document]).status_code == 200
    with Collection.open(folder) as collection:
        assert "late" in collection


def test_a_collection_that_was_replaced_is_the_one_that_is_served(
    serve: Callable[..., Any], folder: Path, tmp_path: Path, lsh: Hasher
) -> None:
    with Collection.create(tmp_path / "other", lsh) as other:
        other.add({"id": i, "text": "a new moon over the sea"} for i in range(2))
    with serve(folder) as service:
        before = service.client.get("/v1/duplicates").json()
        assert [group["kept"] for group in before["groups"]] == ["sky-0"]
        shutil.rmtree(folder)
        shutil.move(tmp_path / "other", folder)
        written = service.write("/v1/documents", documents=[{"id": "late", "text": "moon"}])
        assert written.json() == {"generation": 2, "written": 1}
        service.write("/v1/documents/delete", ids=["late"])
        found = service.post("/v1/search", text="moon").json()["hits"]
        assert [hit["id"] for hit in found] == [0, 1]
        after = service.client.get("/v1/duplicates").json()
        assert [group["kept"] for group in after["groups"]] == [0]
        assert service.client.get("/v1/stats").json()["documents"] == 2
    with Collection.open(folder) as collection:
        assert [document.id for document in collection] == [0, 1]
        Newest(collection).check()


def test_answers_about_a_collection_are_not_given_about_another_of_the_same_generation(
    serve: Callable[..., Any], folder: Path, tmp_path: Path, lsh: Hasher
) -> None:
    with Collection.create(tmp_path / "other", lsh) as other:
        other.add([{"id": 1, "text": "moon", "metadata": {"lang": "en"}}])
    with serve(folder) as service:
        paths = ("/v1/fields", "/v1/overview", "/v1/duplicates")
        before = [service.client.get(path).json() for path in paths]
        shutil.rmtree(folder)
        shutil.move(tmp_path / "other", folder)
        after = [service.client.get(path).json() for path in paths]
    assert all(told["generation"] == 1 for told in [*before, *after])
    fields, overview, duplicates = after
    assert list(fields["fields"]) == ["lang"]
    assert (overview["documents"], duplicates["n_groups"]) == (1, 0)


def test_a_rehash_elsewhere_is_seen(
    service: Any, folder: Path, corrsh: Hasher, documents: Any
) -> None:
    assert service.post("/v1/search", text="moon").json()["query"]["code"].__len__() == 4
    with Collection.open(folder) as collection:
        collection.rehash(corrsh)
    answer = service.post("/v1/search", text="moon", k=30, by="codes")
    assert pairs(answer) == exact(corrsh, documents, corrsh.transform(["moon"])[0], 30)


def test_serving_imports_nothing_that_is_slow_to_import(folder: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from boltzhash.server.app import create_app\n"
        "from boltzhash.server.settings import Settings\n"
        "from starlette.testclient import TestClient\n"
        "app = create_app(Settings(Path(sys.argv[1])))\n"
        "with TestClient(app, 'http://localhost') as client:\n"
        "    body = {'text': 'moon', 'order': 'words'}\n"
        "    assert client.post('/v1/search', json=body).json()['hits']\n"
        "    assert client.post('/v1/search', json={'text': 'moon'}).json()['hits']\n"
        "heavy = {'torch', 'umap', 'sklearn', 'scipy.stats', 'pandas'}.intersection(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True)
