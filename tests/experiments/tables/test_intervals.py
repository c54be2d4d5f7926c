"""Differences of means over seeds against SciPy's Welch test and closed forms."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from experiments.tables import intervals


@pytest.mark.parametrize(("n_ones", "n_others"), [(5, 5), (3, 10), (2, 4)])
def test_a_difference_is_welch_s(n_ones: int, n_others: int) -> None:
    rng = np.random.default_rng(n_ones)
    ones, others = rng.normal(0.6, 0.01, n_ones), rng.normal(0.59, 0.03, n_others)
    found = intervals.difference(ones.tolist(), others.tolist())
    expected = stats.ttest_ind(ones, others, equal_var=False).confidence_interval(0.95)
    ends = (found.estimate - found.half_width, found.estimate + found.half_width)
    assert ends == pytest.approx(tuple(expected), abs=1e-12)


def test_one_sample_is_student_s() -> None:
    values = [0.5, 0.52, 0.49, 0.51]
    found = intervals.weighted_sum([(1.0, values)])
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert found.estimate + found.half_width == pytest.approx(expected.high, abs=1e-12)


def test_samples_of_equal_spread_add_their_degrees_of_freedom() -> None:
    """Six samples of five with one variance: 24 degrees, standard error √(6/9 · s²/5)."""
    values = [0.1, 0.2, 0.3, 0.4, 0.5]
    samples = [(sign / 3, values) for sign in (1, -1, 1, -1, 1, -1)]
    found = intervals.weighted_sum(samples)
    error = math.sqrt(6 / 9 * statistics.variance(values) / 5)
    assert found.estimate == pytest.approx(0, abs=1e-15)
    assert found.half_width == pytest.approx(stats.t.ppf(0.975, 24) * error)


def test_what_cannot_be_estimated_is_none_and_what_does_not_vary_is_certain() -> None:
    assert intervals.difference([0.5], [0.4, 0.5]) is None
    assert intervals.difference([], []) is None
    certain = intervals.difference([0.5, 0.5], [0.4, 0.4])
    assert certain.half_width == 0
    assert certain.excludes_zero
    assert not intervals.difference([0.5, 0.5], [0.5, 0.5]).excludes_zero
