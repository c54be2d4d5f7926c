"""All codes within a radius: by a scan, or by tables where these are cheaper.

The tables are those of multi-index hashing (Norouzi, Punjani and Fleet, "Fast Search in Hamming Space
with Multi-Index Hashing", CVPR 2012), one by the first halves of codes and one by the second;
``kernel/multi_index.c`` has the argument. They are made when so many queries have been asked that
scanning for these has cost as much as the tables do: whoever asks little pays nothing for them, and
nobody pays much more than twice what would have been cheapest. With tables, what is to be looked at is
counted for every query, which is scanned for where that is cheaper: for a large radius, or in a crowd of
codes.
"""

from __future__ import annotations

import os
import threading
from math import comb

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.search import compiled, uncompiled
from boltzhash.search.hits import Distances, Rows

# Measured by benchmarks/search.py with 10 M codes of 64 bits and AVX-512; elsewhere a scan is dearer.
SCANS_A_BUILD = 256  # that cost as much as making the tables
LOOKUP_COST = 64  # codes that are scanned in the time of a look at one anywhere in memory

_MOST_ROWS = 2**32 - 1
_MEMORY_SHARE = 8  # tables take at most this part of the machine's memory

_building = threading.Lock()


class RadiusSearch:
    """Finds all codes within a radius; ``codes`` are contiguous and must not change.

    Any number of threads may ask at a time.

    >>> search = RadiusSearch(np.array([[0b1111], [0b0011], [0b0111]], dtype=np.uint8))
    >>> ((rows, distances),) = search.within(np.array([[0b0011]], dtype=np.uint8), 1, None, 1)
    >>> rows.tolist(), distances.tolist()
    ([1, 2], [0, 1])
    """

    def __init__(self, codes: Codes) -> None:
        self._codes = codes
        self._path = compiled.kernel_name()
        self._key_bits = _key_bits(len(codes), codes.shape[1])
        self._may_build = self._path != compiled.NONE and _fit(len(codes), self._key_bits)
        self._asked = 0  # queries that tables might have answered
        self._tables: compiled.Tables | None = None

    def within(
        self, queries: Codes, radius: int, allowed: NDArray[np.bool_] | None, threads: int
    ) -> list[tuple[Rows, Distances]]:
        """Rows and distances of all codes that differ in at most ``radius`` bits, one pair per query."""
        if self._path == compiled.NONE:
            return uncompiled.within(self._codes, queries, radius, allowed)
        if self._may_build and n_keys(self._key_bits, radius) * LOOKUP_COST <= len(self._codes):
            self._asked += len(queries)
            if self._asked >= SCANS_A_BUILD:
                self._build(threads)
        return compiled.within(
            self._path, self._codes, queries, radius, allowed, threads, self._tables
        )

    def _build(self, threads: int) -> None:
        """Make the tables, unless another thread makes some: then this query is scanned for."""
        if not _building.acquire(blocking=False):
            return
        try:
            if self._may_build:
                self._may_build = False
                self._tables = compiled.tables_of(self._codes, self._key_bits, LOOKUP_COST, threads)
        except MemoryError:
            pass  # a scan needs none
        finally:
            _building.release()


def n_keys(key_bits: int, radius: int) -> int:
    """How many keys are looked up for a query: in one table those ⌊r/2⌋ away, in the other ⌊(r − 1)/2⌋.

    >>> [n_keys(21, radius) for radius in range(5)]
    [1, 2, 23, 44, 254]
    """
    return sum(
        comb(key_bits, weight)
        for most in (radius // 2, (radius - 1) // 2)
        for weight in range(min(most, key_bits) + 1)
    )


def _key_bits(n: int, n_bytes: int) -> int:
    """So many that about four codes have a key in common, if codes are spread evenly."""
    return max(min(n.bit_length() - 3, 8 * (n_bytes // 2)), 0)


def _fit(n: int, key_bits: int) -> bool:
    """Whether there can be tables, and memory to spare for them."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    n_bytes = 16 * n + 8 * 2**key_bits
    return key_bits > 0 and n <= _MOST_ROWS and n_bytes <= memory // _MEMORY_SHARE
