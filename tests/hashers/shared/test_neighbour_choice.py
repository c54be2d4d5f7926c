"""Neighbours by words or by codes too: what is asked, of whom, and what comes of the answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from boltzhash import Neighbours, SemanticHasher, Training, load
from boltzhash.hashers.shared import neighbour_choice
from boltzhash.hashers.shared.neighbour_choice import (
    Locations,
    NeighbourChoice,
    choose_neighbours,
)
from boltzhash.hashers.shared.neighbours import RowNumbers

TOPICS, WORDS_A_TOPIC = 4, 30


@pytest.fixture(scope="module")
def documents() -> tuple[sparse.csr_matrix, np.ndarray]:
    """Of each topic's words a document has six, and six of all words: (1,200, 120), and topics."""
    rng = np.random.default_rng(0)
    topics = rng.integers(TOPICS, size=1200)
    words = np.zeros((1200, TOPICS * WORDS_A_TOPIC))
    for row, topic in enumerate(topics):
        words[row, topic * WORDS_A_TOPIC + rng.permutation(WORDS_A_TOPIC)[:6]] = 1
        words[row, rng.permutation(words.shape[1])[:6]] = 1
    return sparse.csr_matrix(words), topics


def by_topic(matrix: sparse.csr_matrix) -> np.ndarray:
    """Codes that know the topics: one bit for each, on if most words are of it."""
    counts = matrix @ np.kron(np.eye(TOPICS), np.ones((WORDS_A_TOPIC, 1)))
    return np.where(counts == counts.max(axis=1, keepdims=True), 5.0, -5.0).astype(np.float32)


def at_random(matrix: sparse.csr_matrix) -> np.ndarray:
    """Codes that differ from half to half."""
    weights = np.random.default_rng(1).normal(size=(matrix.shape[1], 64))
    return np.asarray(np.sin(1e3 * (matrix @ weights)), dtype=np.float32)


class Trainer:
    """A first training whose codes are known, and which remembers what it was given."""

    def __init__(self, locations: Locations) -> None:
        self.locations, self.taught, self.is_asked = locations, 0, 0

    def __call__(
        self,
        matrix: sparse.csr_matrix,
        near: RowNumbers,
        is_worth_it: Callable[[Locations], bool],
    ) -> Locations | None:
        self.taught, self.is_asked = matrix.shape[0], self.is_asked + 1
        assert near.shape == (matrix.shape[0], 20)
        assert near.max() < matrix.shape[0]
        return self.locations if is_worth_it(self.locations) else None


def chosen(
    matrix: sparse.csr_matrix, first: Any, second_training: bool | None
) -> tuple[RowNumbers, NeighbourChoice]:
    return choose_neighbours(matrix, 20, (2, 4, 8), second_training, first, seed=0)


def of_one_topic(near: RowNumbers, topics: np.ndarray) -> float:
    return float((topics[near] == topics[:, None]).mean())


@pytest.fixture(autouse=True)
def a_thousand_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour_choice, "FEWEST_DOCUMENTS", 1000)


def test_codes_that_agree_better_than_words_have_a_say(
    documents: tuple[sparse.csr_matrix, np.ndarray],
) -> None:
    matrix, topics = documents
    first = Trainer(by_topic)
    near, choice = chosen(matrix, first, None)
    assert (first.is_asked, first.taught) == (1, 1080)  # a tenth is held out
    assert choice.second_training
    assert choice.agreement_by_codes is not None
    assert choice.agreement_by_words is not None
    assert choice.agreement_by_codes > choice.agreement_by_words
    by_words, _ = chosen(matrix, first, False)
    assert near.shape == by_words.shape == (1200, 20)
    assert of_one_topic(near, topics) > of_one_topic(by_words, topics)


def test_codes_that_agree_worse_end_their_training(
    documents: tuple[sparse.csr_matrix, np.ndarray],
) -> None:
    matrix, topics = documents
    near, choice = chosen(matrix, Trainer(at_random), None)
    assert not choice.second_training
    assert of_one_topic(near, topics) > 0.5  # by words; a quarter by chance


def test_nobody_is_asked_where_the_answer_is_given(
    documents: tuple[sparse.csr_matrix, np.ndarray],
) -> None:
    matrix, _ = documents
    taught_twice, never = Trainer(at_random), Trainer(by_topic)
    assert chosen(matrix, taught_twice, True)[1] == NeighbourChoice(20, None, None, True)
    assert taught_twice.taught == 1200
    assert chosen(matrix, never, False)[1] == NeighbourChoice(20)
    assert chosen(matrix[:999], never, None)[1] == NeighbourChoice(20)
    assert never.is_asked == 0


def test_a_fit_says_what_it_chose_and_its_model_keeps_it(
    documents: tuple[sparse.csr_matrix, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(neighbour_choice, "FEWEST_DOCUMENTS", 300)
    hasher = SemanticHasher(
        16, training=Training(epochs=8), neighbours=Neighbours(dimensions=(2, 4))
    ).fit(documents[0][:300])
    choice = hasher.neighbour_choice_
    assert choice is not None
    assert choice.neighbours == 20
    assert choice.agreement_by_codes is not None
    assert "its halves agree to" in str(choice)
    hasher.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert isinstance(loaded, SemanticHasher)
    assert loaded.neighbour_choice_ == choice
    assert loaded.fingerprint() == hasher.fingerprint()


def test_neighbours_can_be_left_out() -> None:
    texts = [f"{a} {b}" for a in "sun moon star sky".split() for b in "sea ship sail tide".split()]
    hasher = SemanticHasher(8, training=Training(epochs=3), neighbours=Neighbours(count=0)).fit(
        texts
    )
    assert hasher.neighbour_choice_ is None
