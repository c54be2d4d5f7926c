"""Stems instead of spellings in tf-idf and in models."""

from collections import Counter
from pathlib import Path

import numpy as np
import Stemmer

from boltzhash import ITQ, Text, load
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.sampling import Room
from boltzhash.text.tfidf import TfIdf
from boltzhash.text.tokens import tokenize

WORDS = (
    "sort sorts sorting sorted apple apples mining miner cook cooks cooking cooked star stars "
    "starry planet planets orbit orbits orbiting bread breads the of and mine"
).split()


def make_texts(n: int) -> list[str]:
    rng = np.random.default_rng(3)
    return [" ".join(rng.choice(WORDS, size=rng.integers(2, 9))) for _ in range(n)]


TEXTS = make_texts(300)


def plain_stems(text: str) -> Counter[str]:
    stem = Stemmer.Stemmer("english").stemWord
    stop_words = Analyzer().stop_words
    return Counter(stem(token) for token in tokenize(text) if token not in stop_words)


def test_rows_are_those_of_texts_stemmed_beforehand() -> None:
    counted = [plain_stems(text) for text in TEXTS]
    stems = sorted(set().union(*counted))
    frequency = np.array([sum(stem in counts for counts in counted) for stem in stems])
    idf = np.log((1 + len(TEXTS)) / (1 + frequency)) + 1
    rows = np.array([[counts[stem] for stem in stems] for counts in counted]) * idf
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

    tfidf = TfIdf(stem=True, max_df=1.0)
    found = tfidf.fit_transform(TEXTS).toarray()
    stem = Stemmer.Stemmer("english").stemWord
    order = [[stem(word) for word in tfidf.words_].index(one) for one in stems]
    np.testing.assert_allclose(found[:, order], rows, atol=1e-12)
    np.testing.assert_allclose(tfidf.transform(TEXTS).toarray(), found, atol=1e-12)


def test_a_stop_word_does_not_take_its_stem_along() -> None:
    """The stem of "mining" is "mine", which is a stop word."""
    tfidf = TfIdf(stem=True, max_df=1.0)
    tfidf.fit_transform(["the mine of mining", "a mine", "stars"])
    assert tfidf.words_ == ["mining", "stars"]
    assert tfidf.transform(["mine"]).nnz == 0
    assert tfidf.transform(["mining"]).nnz == 1


def test_words_are_called_by_their_shortest_spelling() -> None:
    tfidf = TfIdf(stem=True, max_df=1.0)
    tfidf.fit_transform(["sorting sorts", "orbiting orbits orbit"])
    assert tfidf.words_ == ["orbit", "sorts"]
    assert tfidf.spellings_ == ["sorting", "sorts", "orbiting", "orbits", "orbit"]


def test_a_sample_that_holds_everything_learns_the_same() -> None:
    whole, sampled = TfIdf(stem=True, max_df=1.0), TfIdf(stem=True, max_df=1.0)
    rows = whole.fit_transform(TEXTS)
    assert (sampled.fit_sample(TEXTS, Room(10**9, 1, 1), seed=0) != rows).nnz == 0
    assert sampled.words_ == whole.words_
    np.testing.assert_array_equal(sampled.idf_, whole.idf_)


def test_a_smaller_sample_estimates_how_many_documents_have_a_stem() -> None:
    whole, sampled = TfIdf(stem=True, max_df=1.0), TfIdf(stem=True, max_df=1.0)
    whole.fit_transform(TEXTS)
    rows = sampled.fit_sample(TEXTS, Room(1500, 2, 5), seed=0)
    assert 50 < rows.shape[0] < 250
    assert sampled.words_ == whole.words_
    np.testing.assert_allclose(sampled.idf_, whole.idf_, atol=0.1)


def test_a_model_with_stems_is_the_same_when_loaded(tmp_path: Path) -> None:
    hasher = ITQ(8, text=Text(stem=True, max_df=1.0)).fit(TEXTS)
    hasher.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(TEXTS), hasher.transform(TEXTS))
    assert again.fingerprint() == hasher.fingerprint()
    same, other = hasher.transform(["sorting stars"]), hasher.transform(["sorted star"])
    np.testing.assert_array_equal(same, other)


def test_stems_are_part_of_the_fingerprint() -> None:
    hasher = ITQ(8, text=Text(max_df=1.0)).fit(TEXTS)
    before = hasher.fingerprint()
    hasher.set_params(text__stem=True)
    assert hasher.fingerprint() != before


def test_a_language_whose_stop_words_are_not_known_has_stems() -> None:
    tfidf = TfIdf(language="finnish", stem=True, max_df=1.0)
    tfidf.fit_transform(["talossa", "talossani", "kirja"])
    assert tfidf.words_ == ["kirja", "talossa"]
