"""Is one method better than another on these queries, or was it luck?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.arguments import Integer, check

Values = NDArray[np.float64]

CONFIDENCE = 0.95
_BLOCK = 500  # random sign vectors at a time


class Estimate(NamedTuple):
    """A mean over queries, and between which values it lies with 95 % confidence."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"


def estimates(values: Values, *, resamples: int = 10_000, random_state: int = 0) -> list[Estimate]:
    """The mean of each column with its percentile interval; a row is a query.

    >>> print(*estimates(np.array([[0.2, 1.0], [0.5, 1.0], [0.9, 1.0]])))
    0.533 (0.200 to 0.900) 1.000 (1.000 to 1.000)
    """
    drawn = bootstrapped_means(values, resamples=resamples, random_state=random_state)
    tail = (1 - CONFIDENCE) / 2
    rows = [values.mean(axis=0), *np.quantile(drawn, [tail, 1 - tail], axis=0)]
    return [Estimate(*row) for row in np.stack(rows, axis=1).tolist()]


def paired_permutation(
    differences: Values, *, resamples: int = 10_000, random_state: int = 0
) -> Values:
    """Two-sided p-values of the paired permutation test, one for each column of differences.

    A column holds the difference between two methods on each query. If the methods were equally good,
    each difference might as well have had the other sign; p is the share of sign changes, including the
    observed one, whose mean is at least as far from 0. All columns see the same changes.

    >>> better = np.full((20, 1), 0.1)
    >>> paired_permutation(better, resamples=999)
    array([0.001])
    """
    check("resamples", resamples, Integer(1))
    differences = np.asarray(differences, dtype=np.float64)
    if differences.ndim != 2 or not len(differences):
        raise ValueError(
            f"differences must be of shape (n_queries, n_comparisons), got {differences.shape}"
        )
    rng = np.random.default_rng(random_state)
    observed = np.abs(differences.sum(axis=0))
    # Sums that differ only by rounding are equal.
    bar = observed - 1e-12 * np.abs(differences).sum(axis=0)
    as_far = np.ones(differences.shape[1])
    for start in range(0, resamples, _BLOCK):
        rows = min(_BLOCK, resamples - start)
        signs = rng.integers(0, 2, (rows, len(differences)), dtype=np.int8) * 2.0 - 1.0
        as_far += (np.abs(signs @ differences) >= bar).sum(axis=0)
    return as_far / (resamples + 1)


def holm(p_values: Values) -> Values:
    """p-values corrected for their number by Holm's step-down method.

    Calling significant what is then below alpha keeps the probability of any false claim below alpha.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1)
    return corrected


def bootstrapped_means(values: Values, *, resamples: int = 10_000, random_state: int = 0) -> Values:
    """Means of the rows drawn anew with replacement, as many as there are: (resamples, n_columns).

    A row is a query; all columns see the same draws, so that a difference of columns is paired.
    Quantiles of a column are its percentile interval (Efron 1979).

    >>> drawn = bootstrapped_means(np.array([[0.0, 1.0], [1.0, 1.0]]), resamples=4000)
    >>> np.unique(drawn[:, 0]), np.unique(drawn[:, 1])
    (array([0. , 0.5, 1. ]), array([1.]))
    """
    check("resamples", resamples, Integer(1))
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or not len(values):
        raise ValueError(f"values must be of shape (n_queries, n_columns), got {values.shape}")
    rng, n = np.random.default_rng(random_state), len(values)
    means = np.empty((resamples, values.shape[1]))
    for row in range(resamples):
        times = np.bincount(rng.integers(0, n, n), minlength=n)
        means[row] = times @ values
    return means / n
