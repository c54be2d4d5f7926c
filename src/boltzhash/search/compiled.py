"""The compiled kernel: which of its paths runs, and its calls with NumPy arrays.

``BOLTZHASH_KERNEL`` chooses a path (avx512, avx512bw, avx2, neon or plain), or ``none`` for a search
without the kernel; if unset, the fastest that the machine can run is taken. All give the same answers.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes

NONE = "none"
QUERIES_A_CALL = 1024  # Ctrl-C takes effect between calls


def _load() -> Any:
    try:
        return importlib.import_module("boltzhash.search._kernel")
    except ImportError:  # built without a compiler
        return None


_kernel = _load()


def kernel_names() -> list[str]:
    """What ``BOLTZHASH_KERNEL`` can be on this machine, the fastest first; ``none`` is last.

    >>> kernel_names()[-1]
    'none'
    """
    return [*(_kernel.paths() if _kernel is not None else []), NONE]


@functools.cache
def kernel_name() -> str:
    """The path that searches take: ``BOLTZHASH_KERNEL``, or the fastest there is."""
    names = kernel_names()
    asked = os.environ.get("BOLTZHASH_KERNEL") or names[0]
    if asked not in names:
        raise ValueError(f"BOLTZHASH_KERNEL must be one of {', '.join(names)} here, got {asked!r}")
    return asked


def top_k(
    path: str,
    codes: Codes,
    queries: Codes,
    k: int,
    allowed: NDArray[np.bool_] | None,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Rows and distances of the k nearest; at least k codes must exist and be allowed."""
    rows = np.empty((len(queries), k), dtype=np.int64)
    distances = np.empty((len(queries), k), dtype=np.int32)
    n_bytes = codes.shape[1]
    for first in range(0, len(queries), QUERIES_A_CALL):
        part = slice(first, first + QUERIES_A_CALL)
        _kernel.top_k(
            codes, queries[part], n_bytes, k, allowed, threads, path, rows[part], distances[part]
        )
    return rows, distances


class Tables(NamedTuple):
    """Rows in the order of the first bits of either half of their codes, for :func:`within`."""

    contents: bytes
    key_bits: int
    lookup_cost: int  # codes that are scanned in the time of a look at one anywhere in memory


def tables_of(codes: Codes, key_bits: int, lookup_cost: int, threads: int) -> Tables:
    """Tables of codes that will not change; half a code must have the bits of a key."""
    contents = _kernel.tables(codes, codes.shape[1], key_bits, threads)
    return Tables(contents, key_bits, lookup_cost)


def within(
    path: str,
    codes: Codes,
    queries: Codes,
    radius: int,
    allowed: NDArray[np.bool_] | None,
    threads: int,
    tables: Tables | None = None,
) -> list[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """Rows and distances of all codes that differ in at most ``radius`` bits, one pair per query.

    With tables of these codes, only queries for which a scan is cheaper are scanned for.
    """
    given = (codes.shape[1], radius, allowed, threads, path, *(tables or ()))
    return [
        (np.frombuffer(rows, dtype=np.int64), np.frombuffer(distances, dtype=np.int32))
        for first in range(0, len(queries), QUERIES_A_CALL)
        for rows, distances in _kernel.within(
            codes, queries[first : first + QUERIES_A_CALL], *given
        )
    ]


def read(codes: Codes, threads: int) -> int:
    """Read codes once and do nothing with them: the time no exact search can beat."""
    return int(_kernel.read(codes, threads))
