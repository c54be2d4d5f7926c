"""The scan of packed codes for one query: the only place that compares codes for a search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes

Rows = NDArray[np.int64]
Distances = NDArray[np.int32]
Mask = NDArray[np.bool_]

_BLOCK = 1 << 18  # rows whose distances are counted at once, so that temporaries stay in the cache


def top_k(codes: Codes, query: Codes, k: int, allowed: Mask | None) -> tuple[Rows, Distances]:
    """The k nearest allowed rows in order of (distance, row), fewer where there are fewer.

    >>> codes = np.array([[0b1111], [0b0011], [0b0111], [0b0001]], dtype=np.uint8)
    >>> rows, distances = top_k(codes, np.array([0b0011], dtype=np.uint8), 3, None)
    >>> rows.tolist(), distances.tolist()
    ([1, 2, 3], [0, 1, 1])
    """
    distances = _distances(codes, query)
    counts = np.bincount(distances if allowed is None else distances[allowed])
    enough = np.flatnonzero(np.cumsum(counts) >= k)
    last = int(enough[0]) if len(enough) else len(counts)
    return _nearest(distances, distances <= last, allowed, k)


def within(codes: Codes, query: Codes, radius: int, allowed: Mask | None) -> tuple[Rows, Distances]:
    """All allowed rows at most ``radius`` bits away, in order of (distance, row)."""
    distances = _distances(codes, query)
    return _nearest(distances, distances <= radius, allowed, None)


def _nearest(
    distances: NDArray[np.uint16], near: Mask, allowed: Mask | None, k: int | None
) -> tuple[Rows, Distances]:
    rows = np.flatnonzero(near if allowed is None else near & allowed)
    rows = rows[np.argsort(distances[rows], kind="stable")][:k]
    return rows, distances[rows].astype(np.int32)


def _distances(codes: Codes, query: Codes) -> NDArray[np.uint16]:
    words, sought = _as_words(codes), _as_words(query[None])
    distances = np.empty(len(codes), dtype=np.uint16)
    for start in range(0, len(codes), _BLOCK):
        different = np.bitwise_count(words[start : start + _BLOCK] ^ sought)
        if different.shape[1] == 1:
            distances[start : start + _BLOCK] = different[:, 0]
        else:
            different.sum(axis=1, dtype=np.uint16, out=distances[start : start + _BLOCK])
    return distances


def _as_words(codes: Codes) -> NDArray[np.unsignedinteger]:
    """The codes as the widest words that fit: popcounts of 8 bytes at once."""
    for width in (8, 4, 2):
        if codes.shape[1] % width == 0:
            return np.ascontiguousarray(codes).view(f"u{width}")
    return codes
