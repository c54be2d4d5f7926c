"""The inverted index against plain counting, and against bm25s."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boltzhash.search import segments
from boltzhash.search.compiled import kernel_name
from boltzhash.search.inverted import WordIndex, WordScores
from boltzhash.search.relevance import K1, B
from boltzhash.search.segments import Segment, digests_of, merged, segment_of

WORDS = [f"w{i}" for i in range(40)]


def random_documents(n: int, seed: int = 0) -> dict[int, list[str]]:
    """Words of documents by place; places have gaps."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 41)
    places = np.sort(rng.choice(np.arange(1, 3 * n), n, replace=False))
    return {
        int(place): rng.choice(WORDS, rng.integers(1, 30), p=weights / weights.sum()).tolist()
        for place in places
    }


def segment(words: dict[int, list[str]]) -> Segment:
    """Of documents by place."""
    known = sorted({word for some in words.values() for word in some})
    numbers = [known.index(word) for some in words.values() for word in some]
    rows = np.repeat(np.arange(len(words)), [len(some) for some in words.values()])
    return segment_of(
        np.array(list(words), dtype=np.uint32),
        np.array([len(some) for some in words.values()], dtype=np.uint32),
        digests_of(known),
        np.array(numbers, dtype=np.int64),
        rows,
        np.ones(len(rows), dtype=np.int64),
    )


def index_of(documents: dict[int, list[str]], n_segments: int = 1) -> WordIndex:
    places = list(documents)
    parts = np.array_split(places, n_segments)
    segments = [segment({place: documents[place] for place in part.tolist()}) for part in parts]
    return WordIndex(segments, np.array(places, dtype=np.int64))


def bm25(documents: dict[int, list[str]], query: dict[str, float]) -> dict[int, float]:
    """As it is written in books."""
    mean = sum(map(len, documents.values())) / len(documents)
    scores = dict.fromkeys(documents, 0.0)
    for word, times in query.items():
        having = [place for place, words in documents.items() if word in words]
        idf = math.log(1 + (len(documents) - len(having) + 0.5) / (len(having) + 0.5))
        for place in having:
            tf = documents[place].count(word)
            norm = K1 * (1 - B + B * len(documents[place]) / mean)
            scores[place] += times * idf * tf / (tf + norm)
    return scores


@pytest.mark.parametrize("n_segments", [1, 4])
def test_scores_are_bm25(n_segments: int) -> None:
    documents = random_documents(200)
    found = index_of(documents, n_segments).score({"w3": 1, "w17": 2, "w30": 0.5, "unheard": 1})
    expected = bm25(documents, {"w3": 1, "w17": 2, "w30": 0.5})
    assert {p: found.scores[p] for p in documents} == pytest.approx(expected, rel=1e-5)
    assert found.found.tolist() == [place for place, score in expected.items() if score]


def test_scores_are_those_of_bm25s() -> None:
    bm25s = pytest.importorskip("bm25s")
    documents = random_documents(300, seed=1)
    rival = bm25s.BM25(k1=K1, b=B, method="lucene")
    rival.index(list(documents.values()), show_progress=False)
    for words in (["w1"], ["w2", "w20"], ["w5", "w9", "w33"]):
        scores = index_of(documents).score(dict.fromkeys(words, 1)).scores
        ours = np.array([scores[place] for place in documents])
        np.testing.assert_allclose(ours, rival.get_scores(words), rtol=1e-5)


def test_the_deviation_is_near_that_of_all_scores() -> None:
    documents = random_documents(2000, seed=2)
    found = index_of(documents).score({"w20": 1, "w30": 1})
    spread = np.array([found.scores[place] for place in documents]).std()
    assert 0.4 < spread / found.deviation < 1.1  # what a word gives is below its idf


def test_overwritten_and_deleted_documents_count_as_they_are_now() -> None:
    old, new = random_documents(60, seed=3), random_documents(60, seed=4)
    places = list(old)
    now = {place: old[place] for place in places[:40]}
    changed = dict(zip(places[10:25], list(new.values())[:15], strict=True))
    now |= changed
    segments = [segment(part) for part in (old, changed)]
    there = np.array(list(now), dtype=np.int64)
    index = WordIndex(segments, there)
    query = {"w1": 1.0, "w7": 1.0, "w25": 1.0}
    for one in (index, WordIndex([merged(segments)], there)):
        found = one.score(query)
        assert {p: found.scores[p] for p in now} == pytest.approx(bm25(now, query), rel=1e-5)
        assert set(found.found.tolist()) <= set(now)


def test_deleted_documents_are_left_out_of_a_merged_segment() -> None:
    old, new = random_documents(60, seed=3), random_documents(60, seed=4)
    places = list(old)
    changed = dict(zip(places[10:25], list(new.values())[:15], strict=True))
    deleted = np.array(
        [*places[::4], 10_000]
    )  # also overwritten ones, and one that was never there
    kept = {place: words for place, words in (old | changed).items() if place not in deleted}
    made, expected = merged([segment(old), segment(changed)], deleted), segment(kept)
    assert sorted(made.places.tolist()) == list(kept)
    assert made.words.tolist() == expected.words.tolist()  # no word of theirs alone
    assert made.ends.tolist() == expected.ends.tolist()
    assert not np.isin(made.places_of_words, deleted).any()
    there = np.array(list(kept), dtype=np.int64)
    scores = [
        WordIndex([one], there).score({"w1": 1.0, "w25": 1.0}).scores for one in (made, expected)
    ]
    assert np.array_equal(*scores)


def test_a_word_that_occurs_very_often_counts_as_255_times() -> None:
    (often,) = index_of({1: ["w1"] * 1000, 2: ["w2"]}).segments
    starts, ends = often.ranges(digests_of(["w1"]))
    assert often.places_of_words[starts[0] : ends[0]].tolist() == [1]
    assert often.counts[starts[0] : ends[0]].tolist() == [255]


def test_nothing_is_found_in_nothing() -> None:
    index = WordIndex([], np.empty(0, dtype=np.int64))
    found = index.score({"w1": 1})
    assert (found.found.tolist(), found.deviation) == ([], 0.0)
    assert index.having("w1").tolist() == []


def test_words_have_digests_of_their_own() -> None:
    digests = set(digests_of([*WORDS, "=w1", "W1", ""]).tolist())
    assert len(digests) == len(WORDS) + 3


QUERY = {"w1": 1.0, "w7": 2.0, "w25": 0.5, "w33": 1.0, "unheard": 1.0}


def index_with_changes() -> WordIndex:
    """Some documents overwritten, some deleted, in several segments."""
    old, new = random_documents(500, seed=5), random_documents(500, seed=6)
    places = sorted(old)
    parts = [places[:200], places[200:]]
    before = [segment({place: old[place] for place in part}) for part in parts]
    changed = dict(zip(places[100:300:3], new.values(), strict=False))
    there = [place for place in places if place % 7]
    return WordIndex([*before, segment(changed)], np.array(there, dtype=np.int64))


def test_scores_are_the_same_compiled_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit."""
    index = index_with_changes()
    in_c = index.score(QUERY)
    monkeypatch.setenv("BOLTZHASH_KERNEL", "none")
    kernel_name.cache_clear()
    plain = index.score(QUERY)
    assert np.array_equal(in_c.scores, plain.scores)
    assert in_c.deviation == plain.deviation


@pytest.mark.parametrize("kernel", ["", "none"])
@pytest.mark.parametrize("n", [1, 7, 64, 499, 5000])
def test_the_best_are_those_of_a_sort(n: int, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With many ties: of equals the first."""
    monkeypatch.setenv("BOLTZHASH_KERNEL", kernel)
    rng = np.random.default_rng(n)
    scores = rng.integers(0, 12, 1003).astype(np.float32)
    for allowed in (None, rng.random(1003) < 0.3, np.zeros(1003, dtype=np.bool_)):
        counts = scores > 0 if allowed is None else (scores > 0) & allowed
        order = np.lexsort((np.arange(1003), -scores))
        expected = np.sort(order[counts[order]][:n])
        assert np.array_equal(WordScores(scores, 1.0).best(n, allowed), expected)


def test_arrays_that_do_not_fit_are_refused_and_not_read() -> None:
    postings = pytest.importorskip("boltzhash.search._postings")
    places, counts = np.array([1, 9], dtype=np.uint32), np.ones(2, dtype=np.uint8)
    weights, norms = np.ones(1, dtype=np.float32), np.ones(5, dtype=np.float32)
    zero, two, three = (np.array([number]) for number in (0, 2, 3))
    for start, end in ((zero, two), (zero, three), (-two, two), (two, zero)):  # 9 is no place
        with pytest.raises(ValueError, match="do not fit together"):
            postings.add_scores(places, counts, start, end, weights, norms, None, 0, norms.copy())
        with pytest.raises(ValueError, match="do not fit together"):
            postings.count_owned(places, start, end, np.zeros(5, dtype=np.int16), 0)
    with pytest.raises(ValueError, match="do not fit together"):
        postings.invert(three, zero, zero, 3, 1)


def test_segments_become_one_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_with_changes()
    there = np.flatnonzero(index.score(dict.fromkeys(WORDS, 1.0)).scores)
    whole = WordIndex([merged(index.segments)], there).score(QUERY)
    monkeypatch.setattr(segments, "_AT_ONCE", 50)
    in_portions = WordIndex([merged(index.segments)], there).score(QUERY)
    assert np.array_equal(whole.scores, in_portions.scores)
    assert np.array_equal(
        whole.scores[there], WordIndex(index.segments, there).score(QUERY).scores[there]
    )
