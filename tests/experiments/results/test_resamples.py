"""Means of queries drawn again: what is written of them is enough for a paired bootstrap."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.results import resamples


def test_the_spread_is_that_of_a_mean_of_so_many_queries() -> None:
    values = np.random.default_rng(1).random(2000)
    found = resamples.deviations(resamples.resampled(values))
    assert len(found) == resamples.RESAMPLES
    assert found.std() == pytest.approx(values.std() / np.sqrt(2000), rel=0.15)


def test_differences_are_those_of_the_same_queries() -> None:
    """So the difference of a run and itself plus something for every query does not vary at all."""
    values = np.random.default_rng(2).random(500) / 2
    one, other = (resamples.deviations(resamples.resampled(v)) for v in (values, values + 0.25))
    assert one.std() > 0.005
    assert np.abs(one - other).max() <= resamples.UNIT


def test_means_of_runs_resample_as_the_mean_of_their_queries() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.random(300), rng.random(300)
    apart = [resamples.deviations(resamples.resampled(v)) for v in (first, second)]
    together = resamples.deviations(resamples.resampled((first + second) / 2))
    assert np.mean(apart, axis=0) == pytest.approx(together, abs=2 * resamples.UNIT)
