"""From query texts to hits, against a reference of a few lines."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from boltzhash.collection import Collection
from boltzhash.corpus import Document
from boltzhash.hashers import LSH, Hasher, Text
from boltzhash.search import order
from boltzhash.search.finder import Finder
from boltzhash.search.hits import Answer, Hit

WORDS = "apple pear plum train bus tram lawyer court judge bread butter jam".split()


def make_documents(n: int) -> list[Document]:
    rng = np.random.default_rng(1)
    return [
        Document(f"d{i}" if i % 3 else i, " ".join(rng.choice(WORDS, size=rng.integers(1, 6))))
        for i in range(n)
    ]


DOCUMENTS = make_documents(120)
HASHER = LSH(8, text=Text(language=None, max_df=1.0)).fit([document.text for document in DOCUMENTS])
CODES = HASHER.transform(HASHER.tfidf([document.text for document in DOCUMENTS]))
QUERIES = ["apple pear", "train", "judge court lawyer", "apple zebra", "zebra", "", "apple pear"]


@pytest.fixture
def finder() -> Finder:
    return Finder(HASHER, CODES, [document.id for document in DOCUMENTS])


def corpus() -> Iterator[Document]:
    return iter(DOCUMENTS)


def nearest(query: str, k: int) -> list[tuple[int, int]]:
    """(distance, row) of the k nearest: the order of every search here."""
    code = HASHER.transform(HASHER.tfidf([query]))[0]
    distances = np.unpackbits(CODES ^ code, axis=1).sum(axis=1)
    return sorted((int(distance), row) for row, distance in enumerate(distances))[:k]


def reranked(query: str, candidates: int, k: int) -> list[tuple[int, int]]:
    """The same, the nearest ``candidates`` put in the order of their tf-idf cosine."""
    tfidf = HASHER.tfidf([query, *(document.text for document in DOCUMENTS)]).toarray()
    cosine = (tfidf[1:] @ tfidf[0]).round(12)
    return sorted(nearest(query, candidates), key=lambda hit: -cosine[hit[1]])[:k]


def as_hits(expected: list[tuple[int, int]]) -> list[Hit]:
    return [
        Hit(DOCUMENTS[row].id, distance, code=CODES[row].tobytes()) for distance, row in expected
    ]


def without_documents(answer: Answer) -> list[Hit]:
    return [hit._replace(document=None) for hit in answer.hits]


# Order


@pytest.mark.parametrize("k", [1, 3, 10, 119, 120, 500])
def test_hits_come_by_distance_and_insertion(finder: Finder, k: int) -> None:
    answers = finder.find(QUERIES, k)
    assert [answer.query for answer in answers] == QUERIES
    for query, answer in zip(QUERIES, answers, strict=True):
        assert answer.hits == as_hits(nearest(query, k))


def test_the_reference_has_ties_to_order() -> None:
    distances = [distance for distance, _ in nearest("apple pear", 120)]
    assert len(set(distances)) < 10


def test_a_query_is_answered_the_same_alone_and_among_others(finder: Finder) -> None:
    together = finder.find(QUERIES, 20)
    assert [finder.find([query], 20)[0].hits for query in QUERIES] == [a.hits for a in together]


@pytest.mark.parametrize(
    ("query", "known"),
    [("apple pear", 2), ("apple apple", 1), ("apple zebra", 1), ("zebra", 0), ("", 0)],
)
def test_known_words_are_counted(finder: Finder, query: str, known: int) -> None:
    assert finder.find([query], 2)[0].known_words == known


def test_no_queries_give_no_answers_and_read_no_corpus(finder: Finder) -> None:
    def unread() -> Iterator[Document]:
        raise AssertionError("the corpus was read")

    assert finder.find([], 10, corpus=unread) == []


def test_a_finder_over_no_documents() -> None:
    finder = Finder(HASHER, CODES[:0], [])
    answers = finder.find(["apple", "pear"], 10, order="words", corpus=lambda: [])
    assert [answer.hits for answer in answers] == [[], []]


# Rerank


@pytest.mark.parametrize(("k", "candidates"), [(5, 40), (10, 10), (40, 40), (3, 500)])
def test_the_nearest_codes_are_reordered_by_cosine(
    finder: Finder, k: int, candidates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order, "CANDIDATES", candidates)
    answers = finder.find(QUERIES, k, order="words", corpus=corpus)
    for query, answer in zip(QUERIES, answers, strict=True):
        assert without_documents(answer) == as_hits(reranked(query, candidates, k))


def test_reranking_changes_the_order_of_these_queries() -> None:
    assert reranked("apple pear", 40, 5) != nearest("apple pear", 5)


def test_only_the_candidates_are_reordered(finder: Finder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest 5 in the order of their words, then the others as they were."""
    monkeypatch.setattr(order, "CANDIDATES", 5)
    for query in QUERIES:
        answer = finder.find([query], 20, order="words", corpus=corpus)[0]
        expected = reranked(query, 5, 5) + nearest(query, 20)[5:]
        assert without_documents(answer) == as_hits(expected)


@pytest.mark.parametrize("options", [{"order": "words"}, {"by": "words"}, {"by": "both"}])
def test_comparing_words_needs_the_corpus(finder: Finder, options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="give the encoded corpus"):
        finder.find(["apple"], 5, **options)  # type: ignore[arg-type]


def test_an_order_is_of_codes(finder: Finder) -> None:
    with pytest.raises(ValueError, match="order is for by='codes', got by='both'"):
        finder.find(["apple"], 5, by="both", order="words", corpus=corpus)


# Words


@pytest.mark.parametrize("by", [None, "both", "words", "codes"])
def test_answers_are_those_of_a_collection(finder: Finder, by: str | None, tmp_path: Path) -> None:
    queries = [*filter(None, QUERIES), '"apple pear" -plum', "bread -butter", "d7"]
    with Collection.create(tmp_path / "library", HASHER) as collection:
        collection.add(DOCUMENTS)
        expected = [collection.search(query, 10, by=by) for query in queries]
    answers = finder.find(queries, 10, by=by, corpus=corpus)
    for answer, same in zip(answers, expected, strict=True):
        assert without_documents(answer) == without_documents(same)
        assert answer.by == same.by
    assert answers[-1].ids[:1] == ["d7"] or by == "codes"


@pytest.mark.parametrize("k", [0, -2])
@pytest.mark.parametrize("by", ["codes", "both"])
def test_k_must_be_positive(finder: Finder, k: int, by: str) -> None:
    with pytest.raises(ValueError, match=f"k must be at least 1, got {k}"):
        finder.find(["apple"], k, by=by, corpus=corpus)


# Corpus and snippets


def test_documents_are_those_of_the_hits(finder: Finder) -> None:
    by_id = {document.id: document for document in DOCUMENTS}
    for answer in finder.find(QUERIES, 10, corpus=corpus):
        assert [hit.document for hit in answer] == [by_id[hit.id] for hit in answer]


def test_without_a_corpus_there_are_no_texts(finder: Finder) -> None:
    answer = finder.find(["apple"], 10)[0]
    assert {hit.document for hit in answer} == {None}
    assert answer.documents == []


def test_the_corpus_is_read_once_for_all_queries(finder: Finder) -> None:
    readings = []

    def counted() -> Iterator[Document]:
        readings.append(1)
        return corpus()

    finder.find(QUERIES, 5, corpus=counted)
    assert len(readings) == 1


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (DOCUMENTS[:-1], "it has 119 documents, the codes 120"),
        ([], "it has 0 documents, the codes 120"),
        (
            [*DOCUMENTS, Document("new", "apple")],
            "document 120 has the id 'new', the codes expect no more",
        ),
        (
            [*DOCUMENTS[:4], DOCUMENTS[5], DOCUMENTS[4], *DOCUMENTS[6:]],
            "document 4 has the id 'd5', the codes expect 'd4'",
        ),
        (
            [Document("0", DOCUMENTS[0].text), *DOCUMENTS[1:]],
            "document 0 has the id '0', the codes expect 0",
        ),
    ],
    ids=["fewer", "none", "more", "another order", "a string for a number"],
)
def test_another_corpus_is_refused(finder: Finder, changed: list[Document], problem: str) -> None:
    with pytest.raises(ValueError, match="not the one") as raised:
        finder.find(["apple"], 5, corpus=lambda: changed)
    assert str(raised.value) == f"the corpus is not the one that was encoded: {problem}"


class FirstNumbers:
    """Hashes by the signs of a query's features: what a finder needs of a hasher that has some."""

    n_bits = 8
    weight_beside_words = 0.15

    def __init__(self) -> None:
        self.tfidf = HASHER.tfidf

    def checked_features(self, features: Any) -> Any:
        assert features is not None, "words were hashed"
        return features

    def margins(self, rows: Any) -> Any:
        return np.asarray(rows)[:, :8]


@pytest.mark.parametrize("order", ["distance", "words"])
def test_queries_with_features_are_found_by_them(order: str) -> None:
    """The hits of query i are those of the text whose code its features spell."""
    by_features = Finder(cast(Hasher, FirstNumbers()), CODES, [d.id for d in DOCUMENTS])
    by_words = Finder(HASHER, CODES, [d.id for d in DOCUMENTS])
    codes = HASHER.transform(HASHER.tfidf(QUERIES))
    features = np.unpackbits(codes, axis=1) - 0.5
    options: dict[str, Any] = {"order": order, "corpus": corpus}
    expected = by_words.find(QUERIES, 10, **options)
    answers = by_features.find(QUERIES, 10, features=features, **options)
    assert [answer.hits for answer in answers] == [answer.hits for answer in expected]
    assert [answer.known_words for answer in answers] == [None] * len(QUERIES)
    assert not any("mean nothing" in str(answer) for answer in answers)
    assert answers[0].as_json()["known_words"] is None
