"""Word trigrams: the fast numbers against sets of words, and the cases that a definition must decide."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boltzhash.text.shingles import differ_in_a_field, hashed_texts, shingles_of, similarity
from boltzhash.text.tokens import every_token

TEXTS = st.lists(st.sampled_from("a b c dd É é 机器学 x_1 ! 2".split()), max_size=12).map(" ".join)


@given(texts=st.lists(TEXTS, max_size=6))
def test_numbers_stand_for_the_trigrams(texts: list[str]) -> None:
    numbers = [text.shingles for text in hashed_texts(texts)]
    trigrams = [shingles_of(every_token(text)) for text in texts]
    assert [len(some) for some in numbers] == [len(some) for some in trigrams]
    for (one, these), (other, those) in itertools.product(
        zip(numbers, trigrams, strict=True), repeat=2
    ):
        assert len(np.intersect1d(one, other)) == len(these & those)
    assert all((np.diff(some.astype(object)) > 0).all() for some in numbers)


@given(one=TEXTS, other=TEXTS)
def test_similarity_is_jaccards(one: str, other: str) -> None:
    these, those = shingles_of(every_token(one)), shingles_of(every_token(other))
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


def fields_differ(one: str, other: str) -> bool:
    these, those = (text.words for text in hashed_texts([one, other]))
    found = differ_in_a_field(these, those)
    assert found == differ_in_a_field(those, these) == by_counting(one, other)
    return found


def by_counting(one: str, other: str) -> bool:
    """The definition, word for word."""
    these, those = Counter(every_token(one)), Counter(every_token(other))

    def has_a_field(these: Counter[str], those: Counter[str]) -> bool:
        more = {word: n - those[word] for word, n in these.items() if n > those[word]}
        fields = {w for w, n in more.items() if n >= 2 and these[w] >= 2 * those[w]}
        in_fields = sum(more[word] for word in fields)
        return in_fields > 0 and 4 * in_fields >= sum(more.values())

    return has_a_field(these, those) and has_a_field(those, these)


@given(one=TEXTS, other=TEXTS)
def test_a_field_is_found_as_by_counting(one: str, other: str) -> None:
    fields_differ(one, other)


def test_texts_of_a_template_differ_in_a_field_and_copies_do_not() -> None:
    template = (
        "numpy {0} {0} the truth value of x1 {0} x2 see also {1} element wise " + "and so on " * 9
    )
    less, greater = template.format("less", "greater"), template.format("greater", "less")
    assert fields_differ(less, greater)
    assert not fields_differ(less, less.replace("truth", "lie").replace("wise", "foolish"))
    assert not fields_differ(
        less, less + " and much more, much more, is said at the end"
    )  # one way
    assert not fields_differ(less, less)


@pytest.mark.parametrize("percent", [1, 2, 3, 5, 10])
def test_edits_here_and_there_are_no_fields(percent: int) -> None:
    rng = random.Random(percent)
    vocabulary = [f"w{rank}" for rank in range(2000) for _ in range(1 + 200 // (rank + 1))]
    for _ in range(50):
        words = rng.choices(vocabulary, k=400)
        edited = [rng.choice(vocabulary) if 100 * rng.random() < percent else w for w in words]
        assert not fields_differ(" ".join(words), " ".join(edited))
