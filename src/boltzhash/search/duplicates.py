"""Groups of near-duplicates among many codes, exactly, without comparing all pairs.

Two codes of m chunks that differ in at most r bits differ in at most ⌊r/m⌋ bits of at least one chunk
(pigeonhole; Norouzi, Punjani and Fleet, "Fast Search in Hamming Space with Multi-Index Hashing", CVPR
2012). So only codes that are that close in some chunk are compared in full.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from boltzhash.codes import Codes, unpack

Rows = NDArray[np.int64]

_MAX_CHUNK_BITS = 32
_PAIRS_AT_ONCE = 1 << 21


def duplicate_groups(codes: Codes, radius: int) -> list[Rows]:
    """Rows linked by steps of at most ``radius`` bits: groups of two or more, first rows first.

    >>> codes = np.array([[0b0000], [0b1111], [0b0001], [0b0011]], dtype=np.uint8)
    >>> [group.tolist() for group in duplicate_groups(codes, 1)]
    [[0, 2, 3]]
    """
    if len(codes) == 0:
        return []
    different, of_code = np.unique(codes, axis=0, return_inverse=True)
    labels = _linked(different, radius) if radius else np.arange(len(different))
    label = labels[of_code.ravel()]
    order = np.argsort(label, kind="stable")
    ends = np.flatnonzero(np.diff(label[order])) + 1
    groups = [group for group in np.split(order, ends) if len(group) > 1]
    return sorted(groups, key=lambda group: int(group[0]))


def _linked(codes: Codes, radius: int) -> NDArray[np.int64]:
    """One label per code, the same for codes that are linked."""
    labels = np.arange(len(codes))
    for ones, others in _candidates(codes, radius):
        open_pairs = labels[ones] != labels[others]
        ones, others = ones[open_pairs], others[open_pairs]
        near = np.bitwise_count(codes[ones] ^ codes[others]).sum(axis=1, dtype=np.int32) <= radius
        if near.any():
            labels = _joined(labels, labels[ones[near]], labels[others[near]])
    return labels


def _joined(labels: NDArray[np.int64], ones: Rows, others: Rows) -> NDArray[np.int64]:
    n = len(labels)
    graph = sparse.coo_matrix((np.ones(len(ones), dtype=np.bool_), (ones, others)), shape=(n, n))
    _, new = connected_components(graph, directed=False)
    return np.asarray(new[labels], dtype=np.int64)


class _Plan(NamedTuple):
    """Into how many chunks to cut, and how many bits of a chunk may differ."""

    n_chunks: int
    flips: int


def _candidates(codes: Codes, radius: int) -> Iterator[tuple[Rows, Rows]]:
    """Blocks of pairs that hold every pair within the radius; others too, and some twice."""
    plan = _cheapest_plan(len(codes), 8 * codes.shape[1], radius)
    if plan is None:
        yield from _all_pairs(len(codes))
        return
    bits = unpack(codes)
    for columns in np.array_split(np.arange(bits.shape[1]), plan.n_chunks):
        yield from _alike(_as_numbers(bits[:, columns]), len(columns), plan.flips)


def _cheapest_plan(n: int, n_bits: int, radius: int) -> _Plan | None:
    """The cut with the fewest look-ups and expected comparisons; None if all pairs are cheaper."""
    best, lowest = None, n * (n - 1) / 2
    for n_chunks in range(-(-n_bits // _MAX_CHUNK_BITS), min(radius + 1, n_bits) + 1):
        width, flips = n_bits // n_chunks, radius // n_chunks
        neighbours = sum(comb(width, i) for i in range(min(flips, width) + 1))
        # a look-up is a binary search; codes are not uniform, so count buckets as fuller than average
        cost = n_chunks * neighbours * n * (4 + 4 * n / 2**width)
        if cost < lowest:
            best, lowest = _Plan(n_chunks, flips), cost
    return best


def _alike(chunk: NDArray[np.uint64], width: int, flips: int) -> Iterator[tuple[Rows, Rows]]:
    """Pairs whose chunks differ in at most ``flips`` bits."""
    order = np.argsort(chunk, kind="stable")
    ordered = chunk[order]
    for n_flips in range(min(flips, width) + 1):
        for positions in itertools.combinations(range(width), n_flips):
            sought = chunk ^ np.uint64(sum(1 << position for position in positions))
            start = np.searchsorted(ordered, sought, side="left")
            end = np.searchsorted(ordered, sought, side="right")
            yield from _spread(order, start, end)


def _spread(order: Rows, start: Rows, end: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Row i with each of order[start[i]:end[i]] that comes after it, a bounded block at a time."""
    lengths = end - start
    totals = np.cumsum(lengths)
    first = 0
    while first < len(lengths):
        done = int(totals[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(totals, done + _PAIRS_AT_ONCE, side="right")))
        some = lengths[first:last]
        ones = np.repeat(np.arange(first, last), some)
        offsets = np.arange(len(ones)) - np.repeat(np.cumsum(some) - some, some)
        others = order[np.repeat(start[first:last], some) + offsets]
        later = others > ones
        yield ones[later], others[later]
        first = last


def _all_pairs(n: int) -> Iterator[tuple[Rows, Rows]]:
    rows_at_once = max(1, _PAIRS_AT_ONCE // n)
    for first in range(0, n, rows_at_once):
        ones = np.arange(first, min(first + rows_at_once, n))
        grid = np.meshgrid(ones, np.arange(n), indexing="ij")
        later = grid[1] > grid[0]
        yield grid[0][later], grid[1][later]


def _as_numbers(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    weights = np.uint64(1) << np.arange(bits.shape[1], dtype=np.uint64)
    return np.asarray(bits.astype(np.uint64) @ weights)
