"""The scan against NumPy's stable sort of all distances."""

from __future__ import annotations

import numpy as np
import pytest

from boltzhash.search import scan
from boltzhash.search.compiled import kernel_names
from nearest_codes import nearest


@pytest.mark.parametrize("n_bits", [8, 16, 32, 40, 64, 128, 1000])
@pytest.mark.parametrize("share", [None, 0.0, 0.3])
@pytest.mark.parametrize("path", kernel_names())
def test_same_rows_in_the_same_order(
    monkeypatch: pytest.MonkeyPatch, n_bits: int, share: float | None, path: str
) -> None:
    monkeypatch.setenv("BOLTZHASH_KERNEL", path)
    rng = np.random.default_rng(n_bits)
    codes = rng.integers(0, 256, size=(300, n_bits // 8), dtype=np.uint8)
    codes &= rng.integers(0, 256, size=codes.shape, dtype=np.uint8)  # uneven, so that some are near
    codes[50:60] = codes[7]
    allowed = None if share is None else rng.random(300) < share
    query = codes[7]
    expected_rows, expected = nearest(codes, query, allowed)
    for k in (1, 5, 11, 299, 300, 1000):
        rows, found = scan.top_k(codes, query, k, allowed)
        np.testing.assert_array_equal(rows, expected_rows[:k])
        np.testing.assert_array_equal(found, expected[:k])
        assert found.dtype == np.int32
    for radius in (0, 1, n_bits // 4, n_bits):
        rows, found = scan.within(codes, query, radius, allowed)
        np.testing.assert_array_equal(rows, expected_rows[expected <= radius])
        np.testing.assert_array_equal(found, expected[expected <= radius])
