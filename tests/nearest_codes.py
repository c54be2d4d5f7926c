"""The nearest codes in five lines of NumPy, which every search is compared with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes


def nearest(
    codes: Codes, query: Codes, allowed: NDArray[np.bool_] | None = None, radius: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Allowed rows up to a radius and their distances, equal distances in the order of rows."""
    distances = np.unpackbits(codes ^ query, axis=1).sum(axis=1, dtype=np.int32)
    wanted = np.ones(len(codes), dtype=bool) if allowed is None else allowed
    rows = np.flatnonzero(wanted if radius is None else wanted & (distances <= radius))
    rows = rows[np.argsort(distances[rows], kind="stable")]
    return rows, distances[rows]
