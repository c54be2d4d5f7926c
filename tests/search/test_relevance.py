"""The score of words and codes, part by part, against plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boltzhash.search.relevance import (
    K1,
    B,
    agreement,
    inverse_document_frequency,
    length_norms,
    saturated,
    words_deviation,
)


def test_idf_falls_with_the_share_and_is_never_negative() -> None:
    values = inverse_document_frequency(100, np.arange(1, 101)).tolist()
    assert values == sorted(values, reverse=True)
    assert values[-1] > 0
    assert values[9] == pytest.approx(math.log(1 + (100 - 10 + 0.5) / (10 + 0.5)))


def test_a_document_of_mean_length_has_the_norm_k1() -> None:
    norms = length_norms(np.array([5, 10, 15], dtype=np.float32))
    assert norms.tolist() == pytest.approx([K1 * (1 - B / 2), K1, K1 * (1 + B / 2)])
    assert len(length_norms(np.empty(0, dtype=np.float32))) == 0


def test_counts_saturate() -> None:
    counts = np.array([1, 2, 255], dtype=np.uint8)
    given = saturated(counts, np.full(3, K1, dtype=np.float32))
    assert given.tolist() == pytest.approx([n / (n + K1) for n in (1, 2, 255)])


def test_the_deviation_is_that_of_independent_words() -> None:
    """Drawn: words that occur by themselves, each with a weight."""
    rng = np.random.default_rng(0)
    weights, shares = np.array([1.0, 3.0, 6.0]), np.array([0.5, 0.1, 0.02])
    drawn = (rng.random((400_000, 3)) < shares) @ weights
    assert words_deviation(weights, shares) == pytest.approx(drawn.std(), rel=0.02)
    assert words_deviation(np.empty(0), np.empty(0)) == 0


def test_agreement_counts_bits_by_their_weights() -> None:
    rng = np.random.default_rng(0)
    bits, weights = rng.random((20, 16)) < 0.5, rng.standard_normal(16)
    expected = [
        sum(w if bit else -w for w, bit in zip(weights, row, strict=True)) / np.linalg.norm(weights)
        for row in bits
    ]
    np.testing.assert_allclose(agreement(weights, np.packbits(bits, axis=1)), expected)


def test_a_model_that_is_sure_of_nothing_agrees_with_nothing() -> None:
    assert agreement(np.zeros(8), np.array([[255]], dtype=np.uint8)).tolist() == [0.0]


def test_over_random_codes_agreement_has_spread_one() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 256, (50_000, 8), dtype=np.uint8)
    assert agreement(rng.standard_normal(64), codes).std() == pytest.approx(1, rel=0.02)
