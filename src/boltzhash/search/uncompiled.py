"""Searching without the compiled kernel: NumPy, and faiss for the nearest if it is installed.

All give the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes, hamming

ROWS_AT_A_TIME = 65_536


def flat_index(codes: Codes) -> Any:
    """faiss's exact index, which keeps a copy of the codes; None if faiss is not installed."""
    try:
        import faiss
    except ImportError:
        return None
    index = faiss.IndexBinaryFlat(8 * codes.shape[1])
    index.add(codes)
    return index


def top_k(index: Any, queries: Codes, k: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Rows and distances of the k nearest among the codes of a faiss index."""
    # faiss keeps the smaller row number among equal distances; a test compares it with NumPy's
    # stable sort, so an update that changes this is noticed.
    distances, rows = index.search(queries, k)
    return rows, distances


def allowed_top_k(
    codes: Codes, queries: Codes, k: int, allowed: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Rows and distances of the k nearest of the allowed rows; None allows all."""
    best = [_hits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)) for _ in queries]
    for rows, block in _blocks(codes, allowed):
        for number, distances in enumerate(hamming(queries, block)):
            found = np.concatenate([best[number], _hits(rows, distances)])
            best[number] = found[np.argsort(found["distance"], kind="stable")[:k]]
    together = np.stack(best)
    return together["row"].copy(), together["distance"].copy()


def within(
    codes: Codes, queries: Codes, radius: int, allowed: NDArray[np.bool_] | None
) -> list[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """Rows and distances of all codes that differ in at most ``radius`` bits, one pair per query."""
    found: list[list[NDArray[Any]]] = [
        [_hits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32))] for _ in queries
    ]
    for rows, block in _blocks(codes, allowed):
        for number, distances in enumerate(hamming(queries, block)):
            near = distances <= radius
            found[number].append(_hits(rows[near], distances[near]))
    answers = []
    for parts in found:
        hits = np.concatenate(parts)
        hits = hits[np.argsort(hits["distance"], kind="stable")]
        answers.append((hits["row"].copy(), hits["distance"].copy()))
    return answers


def _blocks(
    codes: Codes, allowed: NDArray[np.bool_] | None
) -> Iterator[tuple[NDArray[np.int64], Codes]]:
    """The allowed rows and their codes, a block at a time: memory does not grow with the codes."""
    for first in range(0, len(codes), ROWS_AT_A_TIME):
        block = codes[first : first + ROWS_AT_A_TIME]
        rows = np.arange(first, first + len(block), dtype=np.int64)
        if allowed is not None:
            chosen = allowed[first : first + ROWS_AT_A_TIME]
            rows, block = rows[chosen], block[chosen]
        yield rows, block


def _hits(rows: NDArray[np.int64], distances: NDArray[np.int32]) -> NDArray[Any]:
    hits = np.empty(len(rows), dtype=[("row", np.int64), ("distance", np.int32)])
    hits["row"], hits["distance"] = rows, distances
    return hits
