"""What a collection is about, and why a hit is one: both in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash import Hasher
from boltzhash.codes import unpack
from boltzhash.collection import Collection
from boltzhash.server.marks import Sought
from boltzhash.server.overview import describe, overview
from boltzhash.server.reasons import reasons
from boltzhash.server.service import Recent
from small_corpus import TOPICS
from snapshots import Newest


def test_topics_are_those_of_the_documents(served: Any) -> None:
    told = served.client.get("/v1/overview").json()
    assert told["documents"] == 91
    assert told["generation"] == 1
    assert len(told["topics"]) == 3
    shares = [topic["share"] for topic in told["topics"]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1, abs=1e-3)
    named = [set(topic["words"]) for topic in told["topics"]]
    assert all(len(words) == 5 for words in named)
    for words in TOPICS.values():
        assert sum(named_by <= set(words.split()) for named_by in named) == 1


def test_a_question_finds_the_document_it_is_from(
    tmp_path: Path, corrsh: Hasher, documents: Any
) -> None:
    with Collection.create(tmp_path / "collection", corrsh) as collection:
        collection.add(documents)
        topics, questions = describe(Newest(collection))
        texts = {document["text"] for document in documents}
        asked = [question for question in questions if question in texts]
        assert asked
        for question in asked:
            (first,) = collection.search(question, 1)
            assert first.document is not None
            assert first.document.text == question
        words = [" ".join(topic["words"][:2]) for topic in topics]
        assert set(questions) <= texts | set(words)
        assert describe(Newest(collection)) == (topics, questions)


def test_without_short_sentences_questions_are_words_of_topics(
    tmp_path: Path, corrsh: Hasher, texts: list[str]
) -> None:
    with Collection.create(tmp_path / "collection", corrsh) as collection:
        collection.add({"id": i, "text": f"{text} {text}"} for i, text in enumerate(texts))
        topics, questions = describe(Newest(collection))
        assert questions == [" ".join(topic["words"][:2]) for topic in topics]
        assert len(questions) == 3


def test_overviews_of_next_to_nothing(tmp_path: Path, lsh: Hasher) -> None:
    with Collection.create(tmp_path / "collection", lsh) as collection:
        assert describe(Newest(collection)) == ([], [])
        collection.add([{"id": "unknown", "text": "xylophone"}])
        assert describe(Newest(collection)) == ([], [])
        collection.add([{"id": "one", "text": "moon and star"}])
        assert describe(Newest(collection)) == (
            [],
            [],
        )  # a word that one document has names nothing
        collection.add([{"id": "two", "text": "star and moon"}])
        assert describe(Newest(collection)) == (
            [{"words": ["moon", "star"], "share": 1.0}],
            ["moon and star"],
        )


def test_an_overview_is_kept_for_a_while(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("boltzhash.server.service.time.monotonic", lambda: clock[0])
    kept = Recent(overview, 60)
    with Collection.open(folder) as collection:
        first = kept.view(Newest(collection))
        collection.add([{"id": "new", "text": "moon star"}])
        assert kept.view(Newest(collection)) is first
        clock[0] = 61
        later = kept.view(Newest(collection))
        assert later["documents"] == first["documents"] + 1
        assert later["generation"] > first["generation"]


# Reasons


def test_reasons_are_said_if_they_are_asked_for(served: Any) -> None:
    asked = {"text": "captains of a ship", "k": 20}
    plain = served.post("/v1/search", **asked).json()
    told = served.post("/v1/search", **asked, reasons=True).json()
    assert all("reasons" not in hit for hit in plain["hits"])
    for hit, bare in zip(told["hits"], plain["hits"], strict=True):
        reason = hit.pop("reasons")
        assert hit == bare
        text = served.post("/v1/documents/get", ids=[hit["id"]]).json()["documents"][0]["text"]
        assert reason["shared"] == [
            word for word in dict.fromkeys(text.split()) if word in ("captain", "ship")
        ]
        assert set(reason["near"]) <= set(text.split()) - {"captain", "ship"}
    assert reason["shared"]


def test_more_like_one_says_why_as_well(served: Any) -> None:
    told = served.post("/v1/similar", id="sea-70", k=5, reasons=True).json()
    first = served.post("/v1/documents/get", ids=["sea-70"]).json()["documents"][0]["text"]
    for hit in told["hits"]:
        assert set(hit["reasons"]["shared"]) <= set(first.split())
    assert told["hits"][0]["reasons"]["shared"]
    assert any(hit["reasons"]["near"] for hit in told["hits"])  # bits that are there are all sure


def test_words_are_near_whose_codes_agree(corrsh: Hasher, folder: Path) -> None:
    """Against the plain definition: the bits of each word, weighed by how sure the query's are."""
    with Collection.open(folder) as collection:
        sought = Sought.by_query(Newest(collection).words, "captain")
        documents = list(collection)[:60:7]
    word = next(word for word in documents[0].text.split() if word != "captain")
    leaning = (
        unpack(corrsh.encode([word]))[0].astype(float) * 2 - 1
    )  # one word agrees with all bits
    margins = leaning * (np.arange(32) + 0.5)
    told = reasons(corrsh, documents, sought, margins)
    for document, reason in zip(documents, told, strict=True):
        words = sorted(set(document.text.split()) - {"captain"})
        bits = unpack(corrsh.encode(words)).astype(float) * 2 - 1
        agree = dict(zip(words, bits @ margins / np.linalg.norm(margins), strict=True))
        best = sorted((-value, word) for word, value in agree.items() if value >= 1)[:4]
        assert sorted(reason["near"]) == sorted(word for _, word in best)
    assert any(reason["near"] for reason in told)
    assert all(r["near"] == [] for r in reasons(corrsh, documents, sought, None))


def test_by_words_alone_nothing_is_a_reason_but_words(served: Any) -> None:
    asked = {"text": "captain of a ship", "k": 20, "reasons": True}
    by_both = served.post("/v1/search", **asked).json()["hits"]
    by_words = served.post("/v1/search", **asked, by="words").json()["hits"]
    assert any(hit["reasons"]["near"] for hit in by_both)
    assert all(hit["reasons"]["shared"] and not hit["reasons"]["near"] for hit in by_words)


def test_words_unknown_to_the_model_are_near_nothing(served: Any) -> None:
    told = served.post("/v1/search", text="copy", k=5, reasons=True, by="codes").json()
    assert told["query"]["known_words"] == 0
    assert all(hit["reasons"]["near"] == [] for hit in told["hits"])
