"""tf-idf against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from boltzhash.text.analyzer import Analyzer
from boltzhash.text.stopwords import LISTS
from boltzhash.text.tfidf import TfIdf, unit_rows
from boltzhash.text.tokens import every_token, tokenize


def test_own_pattern() -> None:
    texts = ["a#red a#blue", "a#green", "x"]
    tfidf = TfIdf(token_pattern=r"#(\w+)", language=None)
    tfidf.fit_transform(texts)
    assert tfidf.words_ == ["blue", "green", "red"]


def test_more_than_one_group_is_refused() -> None:
    with pytest.raises(ValueError, match="at most one group"):
        TfIdf(token_pattern=r"(a)(b)")


def test_weights_are_those_of_scikit_learn(texts: list[str]) -> None:
    ours = TfIdf(language=None, max_df=1.0)
    matrix = ours.fit_transform(texts)
    theirs = TfidfVectorizer(tokenizer=tokenize, token_pattern=None, lowercase=False)
    expected = theirs.fit_transform(texts)
    assert ours.words_ == theirs.get_feature_names_out().tolist()
    assert abs(matrix - expected).max() < 1e-12
    query = ["star star bread unknown", "unknown only"]
    assert abs(ours.transform(query) - theirs.transform(query)).max() < 1e-12


def test_vocabulary_keeps_the_words_of_most_documents() -> None:
    texts = ["red blue", "red green", "red blue pink", "grey", "grey", "black"]
    tfidf = TfIdf(max_words=2, language=None, max_df=1.0)
    tfidf.fit_transform(texts)
    assert tfidf.words_ == ["blue", "red"]  # blue before grey: as frequent, earlier in the alphabet


def test_words_in_most_documents_are_left_out() -> None:
    tfidf = TfIdf(language=None, max_df=0.5)
    tfidf.fit_transform(["foo red", "foo blue", "foo red", "bar"])
    assert tfidf.words_ == ["bar", "blue", "red"]


def test_stop_words_of_the_language_and_of_ones_own() -> None:
    texts = ["the house and tree", "das haus und baum", "tree", "baum"]
    english, german, own = TfIdf(), TfIdf(language="german"), TfIdf(stop_words=["tree", "DAS"])
    for tfidf in (english, german, own):
        tfidf.fit_transform(texts)
    assert "the" not in english.words_
    assert "und" in english.words_
    assert "und" not in german.words_
    assert {"tree", "das"}.isdisjoint(own.words_)
    assert "the" in own.words_  # a list of one's own replaces the language's


@pytest.mark.parametrize("language", LISTS)
def test_stop_word_lists_hold_tokens(language: str) -> None:
    words = Analyzer(language).stop_words
    assert len(words) > 80
    assert all(every_token(word) == [word] for word in words)


def test_order_and_batch_do_not_matter(texts: list[str]) -> None:
    tfidf = TfIdf()
    matrix = tfidf.fit_transform(texts)
    again = sparse.vstack([tfidf.transform([text]) for text in texts])
    assert (matrix != again).nnz == 0


def test_from_vocabulary_is_the_same_transform(texts: list[str]) -> None:
    tfidf = TfIdf()
    matrix = tfidf.fit_transform(texts)
    restored = TfIdf.from_vocabulary(tfidf.words_, None, tfidf.idf_, None)
    assert (restored.transform(texts) != matrix).nnz == 0


def test_unit_rows_have_length_one_or_zero() -> None:
    rng = np.random.default_rng(0)
    matrix = sparse.random(20, 30, 0.03, format="csr", random_state=rng)
    lengths = np.sqrt(unit_rows(matrix).power(2).sum(axis=1)).A1
    empty = np.diff(matrix.indptr) == 0
    np.testing.assert_allclose(lengths[~empty], 1)
    assert empty.any()
    assert (lengths[empty] == 0).all()


def test_words_in_too_few_documents_are_out() -> None:
    texts = ["red apple", "red train", "red green apple", "blue"]
    tfidf = TfIdf(language=None, min_df=2, max_df=1.0)
    assert tfidf.fit_transform(texts).shape == (4, 2)
    assert tfidf.words_ == ["apple", "red"]
    with pytest.raises(ValueError, match=r"in fewer than min_df=9"):
        TfIdf(language=None, min_df=9).fit_transform(texts)
    with pytest.raises(ValueError, match=r"min_df must be a positive integer, got 0"):
        TfIdf(min_df=0)
