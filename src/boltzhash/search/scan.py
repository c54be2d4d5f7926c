"""The scan of packed codes for one query: the only place that compares codes for a search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.search import compiled, uncompiled
from boltzhash.threads import available_cpus

Rows = NDArray[np.int64]
Distances = NDArray[np.int32]
Mask = NDArray[np.bool_]


def top_k(codes: Codes, query: Codes, k: int, allowed: Mask | None) -> tuple[Rows, Distances]:
    """The k nearest allowed rows in order of (distance, row), fewer if there are fewer.

    >>> codes = np.array([[0b1111], [0b0011], [0b0111], [0b0001]], dtype=np.uint8)
    >>> rows, distances = top_k(codes, np.array([0b0011], dtype=np.uint8), 3, None)
    >>> rows.tolist(), distances.tolist()
    ([1, 2, 3], [0, 1, 1])
    """
    k = min(k, len(codes) if allowed is None else int(np.count_nonzero(allowed)))
    if k == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
    path = compiled.kernel_name()
    if path == compiled.NONE:
        everywhere = np.ones(len(codes), dtype=np.bool_) if allowed is None else allowed
        rows, distances = uncompiled.allowed_top_k(codes, query[None], k, everywhere)
    else:
        codes, queries = np.ascontiguousarray(codes), np.ascontiguousarray(query[None])
        rows, distances = compiled.top_k(path, codes, queries, k, allowed, available_cpus())
    return rows[0], distances[0]


def within(codes: Codes, query: Codes, radius: int, allowed: Mask | None) -> tuple[Rows, Distances]:
    """All allowed rows at most ``radius`` bits away, in order of (distance, row)."""
    radius = min(radius, 8 * codes.shape[1])
    path = compiled.kernel_name()
    if path == compiled.NONE:
        ((rows, distances),) = uncompiled.within(codes, query[None], radius, allowed)
    else:
        codes, queries = np.ascontiguousarray(codes), np.ascontiguousarray(query[None])
        cores = available_cpus()
        ((rows, distances),) = compiled.within(path, codes, queries, radius, allowed, cores)
    return rows, distances
