"""What the benchmark of MISH counts."""

from __future__ import annotations

import numpy as np

from benchmarks.multi_index import list_shares, multi_index_shares
from boltzhash.search import ApproximateIndex


def test_candidates_of_a_multi_index_search() -> None:
    """Counted by bytes; here by bits, with the radii written out."""
    rng = np.random.default_rng(1)
    bits = rng.random((150, 32)) < 0.3
    packed = np.packbits(bits, axis=1)
    shares = multi_index_shares(packed[:10], packed, k=5)
    distances = (bits[:10, None] != bits[None]).sum(-1)
    for query, share in enumerate(shares):
        radius = int(np.sort(distances[query])[4])
        first, second = (bits[query] != bits).reshape(150, 2, 16).sum(-1).T
        looked_at = (first <= radius // 2) | (second <= (radius - 1) // 2)
        assert share == looked_at.mean()
        assert (looked_at | (distances[query] > radius)).all()  # none of the nearest is missed


def test_all_lists_hold_all_codes() -> None:
    codes = np.random.default_rng(0).integers(0, 256, (3000, 8), dtype=np.uint8)
    index = ApproximateIndex(codes, k=10)
    shares = [list_shares(index, codes[:20], probes) for probes in (1, 4, 10_000)]
    assert (shares[0] < shares[1]).all()
    assert (shares[1] < 1).all()
    assert (shares[2] == 1).all()
