"""How much a figure depends on which queries were asked: its mean over queries drawn again and again.

All runs on a corpus draw the same queries (with replacement, from a generator with a fixed seed), so the
difference of two runs, or of two means of runs, resample by resample, is a paired bootstrap: nothing
but these numbers is needed for it, and nobody has to keep the precision of every query.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from functools import cache

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 200
UNIT = 1e-5  # of what is written: the mean of a resample less the mean of all queries, 16 bits each

Floats = NDArray[np.float64]


def resampled(values: Floats) -> str:
    """Of the values of all queries: what the mean of each resample has above that of all, as text."""
    deviations = _times_drawn(len(values)) @ values / len(values) - values.mean()
    return b64encode((deviations / UNIT).round().astype("<i2").tobytes()).decode()


def deviations(text: str) -> Floats:
    """What :func:`resampled` wrote.

    >>> found = deviations(resampled(np.array([0.0, 1.0, 1.0, 0.5])))
    >>> len(found), bool(abs(found.mean()) < 0.05), bool(0.15 < found.std() < 0.25)
    (200, True, True)
    """
    return np.frombuffer(b64decode(text), dtype="<i2") * UNIT


@cache
def _times_drawn(n_queries: int) -> NDArray[np.int64]:
    """How often each resample has each query: (RESAMPLES, n_queries)."""
    random = np.random.default_rng(0)
    drawn = random.integers(n_queries, size=(RESAMPLES, n_queries))
    return np.stack([np.bincount(rows, minlength=n_queries) for rows in drawn])
