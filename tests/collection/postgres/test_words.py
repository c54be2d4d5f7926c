"""Words in PostgreSQL: what a folder finds, whatever is joined or overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash import LSH, Text
from boltzhash.collection import Collection
from boltzhash.collection.postgres import codes, pages, words
from boltzhash.collection.postgres.pages import Documents, pages_of, with_words
from boltzhash.corpus import Document
from boltzhash.errors import CollectionError
from boltzhash.search.counted import DocumentCounter
from boltzhash.search.segments import digests_of
from boltzhash.text.analyzer import Analyzer
from snapshots import Newest, run_in

VOCABULARY = "star planet moon orbit comet bread butter oven flour sugar ship sail anchor".split()
QUESTIONS = [
    *("star", "bread and butter", "moon orbit comet star", "doc-7", "unheard", "Doc-7 moon"),
    *('"moon orbit"', "moon -orbit", 'star -"bread butter"', '"bread" -doc-3 sail'),
]


def documents(n: int, start: int = 0, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng([seed, start])
    return [
        {
            "id": f"doc-{i}" if i % 5 else i,
            "text": " ".join(rng.choice(VOCABULARY, rng.integers(2, 9))),
            "metadata": {"even": i % 2 == 0, "title": f"The {rng.choice(VOCABULARY)}"},
        }
        for i in range(start, start + n)
    ]


@pytest.fixture(scope="module")
def hasher() -> LSH:
    texts = [f"{one} {other}" for one in VOCABULARY for other in VOCABULARY]
    return LSH(16, text=Text(max_df=1.0)).fit(texts)


@pytest.fixture
def location(postgres_url: str, request: pytest.FixtureRequest) -> str:
    number = abs(hash(request.node.nodeid)) % 10**12
    return f"{postgres_url}#words_{number}"


@pytest.fixture
def folder(tmp_path: Path, hasher: LSH) -> Iterator[Collection]:
    with Collection.create(tmp_path / "folder", hasher) as made:
        yield made


def check_same_answers(one: Collection, folder: Collection, questions: list[str]) -> None:
    """Ids, their order, distances, scores and BM25."""
    for question in questions:
        for by in ("words", "both"):
            for where in (None, {"even": True}):
                asked = (question, by, where)
                answer = one.search(question, 50, by=by, where=where)
                expected = folder.search(question, 50, by=by, where=where)
                assert answer.ids == expected.ids, asked
                assert answer.documents == expected.documents, asked
                assert [hit[1:] for hit in answer] == [hit[1:] for hit in expected], asked


def n_segments(collection: Collection) -> int:
    return int(run_in(collection, "SELECT count(*) FROM word_segments").fetchone()[0])


# Pages, without a server


@pytest.mark.parametrize("size", [1, 100, 1_800])
def test_pages_give_back_what_was_put_in(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_PAGE", size)
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{w}" for w in rng.zipf(1.3, 40) if w < 500) for _ in range(599)]
    given = [Document(i, f"everywhere {text}") for i, text in enumerate(texts)]
    segment = DocumentCounter(Analyzer("none")).segment(range(1, 600), given)
    cut = list(pages_of(segment))
    assert [page.first for page in cut] == sorted(page.first for page in cut)
    about = Documents(segment.places, segment.lengths, segment.places[:0])
    made = with_words(about, [page.contents for page in cut])
    for one, expected in zip(made[:6], segment[:6], strict=True):
        np.testing.assert_array_equal(one, expected)
    everywhere = pages.number_of(int(digests_of(["everywhere"])[0]))
    (own,) = [page for page in cut if page.first == everywhere]
    assert len(own.contents) == 4 + 12 + 599 * 5  # no other word is fetched with it


def test_of_no_words_there_is_no_page() -> None:
    assert list(pages_of(DocumentCounter(Analyzer()).segment([3], [Document(3, "")]))) == []


# On a server


@pytest.mark.engines
def test_the_answers_of_a_folder_whatever_happens(
    location: str, hasher: LSH, folder: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments are joined all the time, and written anew; two clients write and read."""
    monkeypatch.setattr(words, "_FEW", 3)
    monkeypatch.setattr(words, "_MANY_GONE", 12)
    rng, most = np.random.default_rng(0), 0
    with Collection.create(location, hasher) as one, Collection.open(location) as other:
        for step in range(30):
            writer = (one, other)[step % 2]
            some = documents(int(rng.integers(1, 12)), int(rng.integers(0, 60)), seed=step)
            gone = [f"doc-{i}" for i in rng.integers(0, 60, 3)]
            for collection in (writer, folder):
                collection.upsert(some)
                collection.delete(gone)
            most = max(most, n_segments(one))
            for reader in (one, other):
                check_same_answers(reader, folder, [QUESTIONS[step % len(QUESTIONS)]])
        assert most < 16
        check_same_answers(other, folder, QUESTIONS)
        Newest(one).check()


@pytest.mark.engines
@pytest.mark.parametrize("few", [0, 10_000])
def test_a_word_of_many_documents(
    location: str, hasher: LSH, folder: Collection, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a page holds; codes are searched among places, or without those ruled out."""
    monkeypatch.setattr(codes, "_FEW", few)
    given = [
        {"id": i, "text": f"moon {VOCABULARY[i % 13]} n{i}", "metadata": {"even": i % 2 == 0}}
        for i in range(3000)
    ]
    with Collection.create(location, hasher) as collection:
        for made in (collection, folder):
            made.add(given)
            made.delete(range(0, 3000, 7))
        check_same_answers(collection, folder, ["moon", "moon star", "n1234 moon", "-moon star"])
        check_same_answers(collection, folder, ["moon -star", '"moon star" sail'])


@pytest.mark.engines
def test_a_near_duplicate_is_found_by_its_words(location: str, hasher: LSH) -> None:
    """Though a thousand documents are nearer by code."""
    unknown = " ".join(f"n{i}" for i in range(40))
    with Collection.create(location, hasher) as collection:
        collection.add({"id": i, "text": "moon orbit"} for i in range(1100))
        collection.add([{"id": "near", "text": f"{unknown} bread butter"}])
        assert "near" not in collection.search(f"{unknown} moon orbit", 1000, by="codes").ids
        assert Newest(collection).is_duplicate(f"{unknown} moon orbit")
        assert not Newest(collection).is_duplicate(f"{unknown} moon orbit", 0.99)
        collection.delete(["near"])
        assert not Newest(collection).is_duplicate(f"{unknown} moon orbit")
        collection.upsert([{"id": 3, "text": "x y z"}])
        assert Newest(collection).is_duplicate("X, y, z")  # letters alone: all are compared


@pytest.mark.engines
def test_what_is_not_committed_leaves_no_words(
    location: str, hasher: LSH, folder: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Collection.create(location, hasher) as collection:
        for made in (collection, folder):
            made.add(documents(40))
        with monkeypatch.context() as patch, pytest.raises(InterruptedError):
            patch.setattr(words.WordsWriter, "_tidy", _interrupted)  # after its words were written
            collection.upsert(documents(20, start=30, seed=1))
        check_same_answers(collection, folder, QUESTIONS)
        Newest(collection).check()


def _interrupted(*_: Any) -> None:
    raise InterruptedError


@pytest.mark.engines
def test_many_overwritten_documents_are_forgotten(
    location: str, hasher: LSH, folder: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "_MANY_GONE", 50)
    with Collection.create(location, hasher) as collection:
        for made in (collection, folder):
            made.add(documents(100))
            made.upsert(documents(60, seed=1))
        sizes = "SELECT sum(n_documents), sum(n_gone) FROM word_segments"
        assert run_in(collection, sizes).fetchone() == (100, 0)
        check_same_answers(collection, folder, QUESTIONS)


@pytest.mark.engines
def test_words_of_another_version_are_made_again(
    location: str, hasher: LSH, folder: Collection
) -> None:
    with Collection.create(location, hasher) as collection:
        for made in (collection, folder):
            made.add(documents(60))
        run_in(collection, "UPDATE state SET word_rules = 'words 0'")
        run_in(collection, "DELETE FROM word_pages")
        for ask in (lambda: collection.search("moon", by="words"), lambda: collection.delete([0])):
            with pytest.raises(CollectionError, match=r"made by other rules \(words 0; here words"):
                ask()
        assert collection.search("moon", by="codes").ids
        with Collection.open(location) as again:
            check_same_answers(again, folder, QUESTIONS)
        check_same_answers(collection, folder, QUESTIONS)


@pytest.mark.engines
def test_damaged_words_are_found(location: str, hasher: LSH) -> None:
    with Collection.create(location, hasher) as collection:
        collection.add(documents(60))
        Newest(collection).check()
        run = partial(run_in, collection)
        last = "set_byte(contents, length(contents) - 1, 9)"
        run(
            f"UPDATE word_pages SET contents = {last} WHERE first = (SELECT min(first) FROM word_pages)"
        )
        with pytest.raises(CollectionError, match="words of some documents are not those of their"):
            Newest(collection).check()
        run("DELETE FROM word_pages")
        run("DELETE FROM word_segments")
        with pytest.raises(CollectionError, match="counts 60 documents and has words of 0"):
            Newest(collection).check()


@pytest.mark.engines
def test_a_model_of_another_language_brings_its_words(location: str) -> None:
    texts = ["die Häuser am Meer", "ein Haus im Wald", "der Wald und das Meer"]
    german = LSH(16, text=Text(language="german", max_df=1.0)).fit(texts)
    with Collection.create(location, german) as collection, Collection.open(location) as other:
        collection.add({"id": i, "text": text} for i, text in enumerate(texts))
        assert set(other.search("Häusern", by="words").ids) == {0, 1}
        collection.rehash(LSH(16, text=Text(language=None, max_df=1.0)).fit(texts))
        for client in (collection, other):
            assert client.search("Häusern", by="words").ids == []
            assert client.search("Häuser", by="words").ids == [0]
        other.add([{"id": 3, "text": "Häuser"}])
        assert set(collection.search("Häuser", by="words").ids) == {0, 3}
        Newest(collection).check()
