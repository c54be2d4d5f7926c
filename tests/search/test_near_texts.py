"""Places that may be near a text, from its rarest words, against comparing it with every text."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boltzhash.corpus import Document
from boltzhash.search.counted import DocumentCounter
from boltzhash.search.inverted import WordIndex
from boltzhash.search.near_texts import places_that_may_be_near
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.shingles import similarity

# What is cut in its own way by the index of words: names, camel case, points, apostrophes, marks.
VOCABULARY = (
    [f"word{i}" for i in range(60)]
    + "the of a I's don't U.S. C++ e-mail read_csv numpy.linalg TemporaryFile café 机器学习 3.14".split()
    + "running runs __init__ naïve URLs l'eau ΣΊΣΥΦΟΣ Straße x".split()
)


def index_of(texts: list[str], words: Analyzer) -> WordIndex:
    documents = [Document(place, text) for place, text in enumerate(texts)]
    segment = DocumentCounter(words).segment(range(len(texts)), documents)
    return WordIndex([segment], np.arange(len(texts)))


@settings(max_examples=60, deadline=None)
@given(
    language=st.sampled_from(["english", "none"]),
    least=st.sampled_from([0.3, 0.5, 0.8, 1.0]),
    seed=st.integers(0, 10**6),
)
def test_nothing_that_is_near_is_missed(language: str, least: float, seed: int) -> None:
    rng = random.Random(seed)
    originals = [rng.choices(VOCABULARY, k=rng.choice([1, 2, 3, 30, 60])) for _ in range(4)]
    texts = []
    for _ in range(24):
        words = list(rng.choice(originals))
        for _ in range(rng.choice([0, 1, 1, 3])):
            words[rng.randrange(len(words))] = rng.choice(VOCABULARY)
        texts.append(rng.choice([" ", ", ", "\n"]).join(words))
    cut = Analyzer(language)
    places = places_that_may_be_near(index_of(texts[4:], cut), cut, texts[0], least)
    near = {i for i, text in enumerate(texts[4:]) if similarity(texts[0], text) >= least}
    assert places is None or near <= set(places.tolist())


def test_few_are_looked_at() -> None:
    """A thousand documents of one topic, none of them near: words in common do not make a candidate."""
    rng = random.Random(0)
    ranks = [f"word{rank}" for rank in range(3000) for _ in range(1 + 300 // (rank + 1))]
    texts = [" ".join(rng.choices(ranks, k=100)) for _ in range(1000)]
    words = Analyzer()
    index = index_of(texts, words)
    for place in range(0, 1000, 50):
        found = places_that_may_be_near(index, words, texts[place] + " and more", 0.8)
        assert found is not None
        assert found.tolist() == [place]


def test_nothing_is_near_no_words() -> None:
    words = Analyzer()
    found = places_that_may_be_near(index_of(["", "star"], words), words, "!", 0.8)
    assert found is not None
    assert len(found) == 0


@pytest.mark.parametrize("text", ["a b c d", "I. I. I."])
def test_where_words_do_not_tell(text: str) -> None:
    words = Analyzer()
    found = places_that_may_be_near(index_of(["a b c d", "star"], words), words, text, 0.8)
    assert found is None
