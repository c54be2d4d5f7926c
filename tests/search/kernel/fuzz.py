"""Random searches through Python, compared with NumPy, on a kernel built with sanitizers.

python fuzz.py KERNEL_SO SECONDS [SEED]
"""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.search import compiled


def reference(
    codes: Any, query: Any, allowed: Any, radius: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Allowed rows and their distances up to the radius, equal distances in the order of rows."""
    distances = np.bitwise_count(codes ^ query).sum(axis=1, dtype=np.int32)
    rows = np.flatnonzero((distances <= radius) & (allowed if allowed is not None else True))
    rows = rows[np.argsort(distances[rows], kind="stable")]
    return rows, distances[rows]


def one_case(rng: np.random.Generator, path: str) -> int:
    """Compare a top-k and a radius search, with tables or without; returns how many that are."""
    n_bytes = int(rng.choice([1, 2, 3, 4, 5, 8, 16, 20, 32, 33, 64, rng.integers(1, 513)]))
    n = int(rng.choice([0, 1, 31, 33, rng.integers(1, 400), rng.integers(1, 20_000)]))
    few = rng.integers(0, 256, (int(rng.choice([2, 30, 30_000])), n_bytes), dtype=np.uint8)
    codes = few[rng.integers(0, len(few), n)]
    queries = few[rng.integers(0, len(few), int(rng.integers(0, 20)))]
    allowed = None if rng.random() < 0.5 else rng.random(n) < rng.choice([0.001, 0.1, 0.9])
    threads, radius = int(rng.integers(1, 5)), int(rng.integers(0, 8 * n_bytes + 1))
    k = min(int(rng.choice([1, 10, 100, n + 1])), n if allowed is None else int(allowed.sum()))
    tables = None
    if n_bytes > 1 and rng.random() < 0.5:
        radius, key_bits = int(rng.integers(0, 7)), min(int(rng.integers(1, 12)), n_bytes // 2 * 8)
        tables = compiled.tables_of(codes, key_bits, int(rng.choice([0, 1, 50])), threads)
    near = compiled.within(path, codes, queries, radius, allowed, threads, tables)
    for query, (rows, distances) in zip(queries, near, strict=True):
        expected = reference(codes, query, allowed, radius)
        np.testing.assert_array_equal(rows, expected[0])
        np.testing.assert_array_equal(distances, expected[1])
    if k > 0:
        best = compiled.top_k(path, codes, queries, k, allowed, threads)
        for query, rows, distances in zip(queries, *best, strict=True):
            expected = reference(codes, query, allowed, 8 * n_bytes)
            np.testing.assert_array_equal(rows, expected[0][:k])
            np.testing.assert_array_equal(distances, expected[1][:k])
    return 2 if k > 0 else 1


def main(kernel: str, seconds: str, seed: str = "0") -> None:
    spec = importlib.util.spec_from_file_location("_kernel", kernel)
    assert spec is not None
    assert spec.loader is not None
    compiled._kernel = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compiled._kernel)
    end, cases, rounds = time.monotonic() + float(seconds), 0, 0
    while time.monotonic() < end:
        for path in compiled.kernel_names()[:-1]:
            cases += one_case(np.random.default_rng([int(seed), rounds]), path)
        rounds += 1
    names = " ".join(compiled.kernel_names()[:-1])
    print(f"{cases} searches of {rounds} collections compared with NumPy on {names}")


if __name__ == "__main__":
    main(*sys.argv[1:])
