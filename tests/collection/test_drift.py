"""Drift: what documents show that are like those of the fit, and what others show."""

from __future__ import annotations

import random

import numpy as np
import pytest

from boltzhash import ITQ, LSH, Hasher, Network, SemanticHasher, Training
from boltzhash.codes import bit_balance, unpack
from boltzhash.collection.drift import ENOUGH, measured_drift
from boltzhash.corpus import Document
from boltzhash.encoding.coding import Coded, Input, coded_documents
from small_corpus import TOPICS


def texts(n: int, *topics: str, seed: int) -> list[str]:
    """Ten words each, of the topics in turn, and one that nobody else has."""
    rng = random.Random(seed)
    words = [TOPICS.get(topic, topic).split() for topic in topics]
    return [f"{' '.join(rng.choices(words[i % len(words)], k=9))} own{seed}x{i}" for i in range(n)]


def coded(hasher: Hasher, some: list[str]) -> list[Coded]:
    return coded_documents(hasher, [Input(Document(i, t)) for i, t in enumerate(some)])


OLD = texts(300, *TOPICS, seed=0)


@pytest.fixture(scope="module")
def hasher() -> Hasher:
    return ITQ(16).fit(OLD)


def test_documents_like_those_of_the_fit_show_none(hasher: Hasher) -> None:
    drift = measured_drift(hasher, coded(hasher, texts(300, *TOPICS, seed=1)))
    assert drift is not None
    assert drift.unknown_words is not None
    assert drift.unknown_words == pytest.approx(drift.unknown_words_expected, abs=0.01)
    assert drift.unknown_words > 0.05  # every document has its own word
    assert drift.bit_shift < 2 * drift.bit_shift_by_chance
    assert drift.is_worth_fitting is False


def test_new_words_make_a_new_fit_worth_it(hasher: Hasher) -> None:
    newer = texts(300, *TOPICS, "violin cello viola harp", seed=1)
    drift = measured_drift(hasher, coded(hasher, newer))
    assert drift is not None
    assert drift.is_worth_fitting is True
    again = ITQ(16).fit(OLD + newer)
    after = measured_drift(again, coded(again, newer))
    assert after is not None
    assert after.is_worth_fitting is False


def test_fewer_of_the_known_topics_move_bits_and_are_no_reason_to_fit(hasher: Hasher) -> None:
    drift = measured_drift(hasher, coded(hasher, texts(300, "sea", seed=1)))
    assert drift is not None
    assert drift.bit_shift > 5 * drift.bit_shift_by_chance
    assert drift.is_worth_fitting is False


def test_figures_of_bits_against_plain_numpy(hasher: Hasher) -> None:
    newer = coded(hasher, texts(50, "sky", seed=2))
    drift = measured_drift(hasher, newer)
    assert drift is not None
    bits = unpack(np.stack([np.frombuffer(c.code, np.uint8) for c in newer]))
    before = unpack(hasher.encode(OLD))
    assert drift.bit_balance == pytest.approx(bit_balance(bits))
    assert drift.bit_balance_expected == pytest.approx(bit_balance(before))
    assert drift.bit_shift == pytest.approx(np.abs(bits.mean(0) - before.mean(0)).mean())


def test_the_shift_by_chance_is_what_samples_of_one_kind_show() -> None:
    hasher = LSH(64).fit(OLD)
    shifts = []
    for seed in range(1, 21):
        drift = measured_drift(hasher, coded(hasher, texts(100, *TOPICS, seed=seed)))
        assert drift is not None
        shifts.append(drift.bit_shift / drift.bit_shift_by_chance)
    assert 0.7 < np.mean(shifts) < 1.5  # topics in turn vary less than chance, new words more


def test_few_documents_and_codes_from_vectors_say_nothing(hasher: Hasher) -> None:
    newer = texts(ENOUGH, "violin cello", seed=1)
    few, enough = (measured_drift(hasher, coded(hasher, newer[:n])) for n in (ENOUGH - 1, ENOUGH))
    assert few is not None
    assert enough is not None
    assert (few.is_worth_fitting, enough.is_worth_fitting) == (None, True)
    vectors = np.random.default_rng(0).normal(size=(300, 4))
    of_vectors = SemanticHasher(
        16, training=Training(epochs=1), network=Network(hidden_units=20)
    ).fit(OLD, features=vectors)
    given = [Input(Document(i, t), v) for i, (t, v) in enumerate(zip(newer, vectors, strict=False))]
    drift = measured_drift(of_vectors, coded_documents(of_vectors, given))
    assert drift is not None
    assert drift.is_worth_fitting is None
