"""The permutation test against all sign changes, its false alarms, and Holm by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from boltzhash.metrics import holm, paired_permutation


def test_against_all_sign_changes() -> None:
    """With 8 queries there are 256 changes; sampled p-values lie around the exact ones."""
    differences = np.random.default_rng(0).normal(0.3, 1, (8, 5)).round(1)
    signs = np.array(list(itertools.product([-1, 1], repeat=8)))
    sums = np.abs(signs @ differences)
    exact = (sums >= np.abs(differences.sum(axis=0)) - 1e-9).mean(axis=0)
    resamples = 20_000
    found = paired_permutation(differences, resamples=resamples)
    error = np.sqrt(exact * (1 - exact) / resamples)
    assert (np.abs(found - exact) <= 5 * error + 1 / resamples).all()


def test_no_difference_is_never_significant() -> None:
    assert paired_permutation(np.zeros((30, 1)), resamples=99) == [1.0]


def test_false_alarms_are_as_rare_as_promised() -> None:
    """1,000 comparisons without a difference: 5 % below .05, ± 5 standard deviations."""
    differences = np.random.default_rng(1).normal(0, 1, (40, 1000))
    below = (paired_permutation(differences, resamples=999) < 0.05).mean()
    assert abs(below - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 1000)


def test_the_seed_decides() -> None:
    differences = np.random.default_rng(2).normal(0.2, 1, (30, 3))
    one, same = (paired_permutation(differences, resamples=200) for _ in range(2))
    other = paired_permutation(differences, resamples=200, random_state=1)
    assert (one == same).all()
    assert (one != other).any()


def test_holm_by_hand() -> None:
    """.01·4, .02·3 → .06, .03·2 = .06, .8: each at least the one before, in the order given."""
    assert holm(np.array([0.03, 0.8, 0.01, 0.02])) == pytest.approx([0.06, 0.8, 0.04, 0.06])
    assert holm(np.array([0.6, 0.7])) == pytest.approx([1, 1])
    assert holm(np.empty(0)).shape == (0,)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"must be of shape \(n_queries, n_comparisons\), got \(3"):
        paired_permutation(np.zeros(3))
    with pytest.raises(ValueError, match="resamples must be a positive integer, got 0"):
        paired_permutation(np.zeros((3, 1)), resamples=0)
