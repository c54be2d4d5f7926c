"""Word trigrams: the fast numbers against sets of words, and the cases that a definition must decide."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boltzhash.text.shingles import hashed_shingles, shingles_of, similarity, words_in

TEXTS = st.lists(st.sampled_from("a b c dd É é 机器学 x_1 ! 2".split()), max_size=12).map(" ".join)


@given(texts=st.lists(TEXTS, max_size=6))
def test_numbers_stand_for_the_trigrams(texts: list[str]) -> None:
    numbers = hashed_shingles(texts)
    trigrams = [shingles_of(words_in(text)) for text in texts]
    assert [len(some) for some in numbers] == [len(some) for some in trigrams]
    for (one, these), (other, those) in itertools.product(
        zip(numbers, trigrams, strict=True), repeat=2
    ):
        assert len(np.intersect1d(one, other)) == len(these & those)
    assert all((np.diff(some.astype(object)) > 0).all() for some in numbers)


@given(one=TEXTS, other=TEXTS)
def test_similarity_is_jaccards(one: str, other: str) -> None:
    these, those = shingles_of(words_in(one)), shingles_of(words_in(other))
    expected = len(these & those) / len(these | those) if these | those else 0.0
    assert similarity(one, other) == similarity(other, one) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("", "", 0.0),  # nothing to compare
        ("?!", "?!", 0.0),
        ("Yes", "yes!", 1.0),  # fewer than three words: the same words, or nothing
        ("yes sir", "yes", 0.0),
        ("yes sir", "sir yes", 0.0),
        ("yes", "yes yes yes", 0.0),
        ("a b c", "a b c", 1.0),
        ("a b c d", "a b c e", 1 / 3),
        ("released as version 1", "released as version 2", 1 / 3),  # one digit is a word
        ("the CAFÉ is open", "the cafe\u0301 is open", 1.0),
        ("read_csv(path)", "read csv path", 1.0),
        ("机器学习方法", "机器学习方式", 0.5),  # trigrams of pairs are four characters
    ],
)
def test_hand_worked(one: str, other: str, expected: float) -> None:
    assert similarity(one, other) == pytest.approx(expected)
