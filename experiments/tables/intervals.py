"""How far apart means over seeds are, with a 95 % confidence interval.

Welch's interval: two settings are taken as two independent samples with variances of their own. Seeds
are not paired. Two models of one seed begin with the same hidden layers and see documents in the same
order, but draw different codes; what pairing them would change is counted (``posterior.pairing``). With
three to five seeds the quantile of Student's t matters, so it is used: 2.8 for four degrees of freedom,
where the normal distribution has 1.96.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from scipy.stats import t as student

from experiments.tables.cells import short, signed

CONFIDENCE = 0.95

Sample = Sequence[float]


class Interval(NamedTuple):
    """An estimate and how far the ends of its interval are from it."""

    estimate: float
    half_width: float

    @property
    def excludes_zero(self) -> bool:
        return abs(self.estimate) > self.half_width

    def __str__(self) -> str:
        """Three digits, bold where 0 lies outside.

        >>> print(Interval(0.0123, 0.02), Interval(-0.0123, 0.004))
        +.012 ± .020 **−.012 ± .004**
        """
        text = f"{signed(self.estimate)} ± {short(self.half_width)}"
        return f"**{text}**" if self.excludes_zero else text


def difference(ones: Sample, others: Sample) -> Interval | None:
    """Mean of ones minus mean of others; None with fewer than two of either.

    >>> print(difference([0.5, 0.6], [0.5, 0.5]))  # one degree of freedom: t = 12.7
    +.050 ± .635
    """
    return weighted_sum([(1.0, ones), (-1.0, others)])


def weighted_sum(samples: Sequence[tuple[float, Sample]]) -> Interval | None:
    """Σ weight · mean over independent samples, degrees of freedom by Welch and Satterthwaite.

    The mean over three corpora of a difference is one, with weights 1/3 and −1/3.
    """
    if any(len(values) < 2 for _, values in samples):
        return None
    estimate = sum(weight * statistics.fmean(values) for weight, values in samples)
    # The variance of each weighted mean, and the degrees of freedom it was estimated with.
    parts = [
        (weight**2 * statistics.variance(values) / len(values), len(values) - 1)
        for weight, values in samples
    ]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return Interval(estimate, 0.0)
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    quantile = float(student.ppf((1 + CONFIDENCE) / 2, freedom))
    return Interval(estimate, quantile * math.sqrt(variance))
