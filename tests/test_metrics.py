"""Expected precision against hand-worked ties and against averaging over shuffles."""

from __future__ import annotations

import numpy as np
import pytest

from boltzhash.codes import hamming
from boltzhash.metrics import expected_precision


def codes(*numbers: int) -> np.ndarray:
    return np.array([[n] for n in numbers], dtype=np.uint8)


def test_ties_by_hand() -> None:
    """Distances 0, 1, 1, 1, 2 with relevant 1, 0, 1, 1, 0: the top 2 hold 1 + 2/3 relevant ones."""
    database = codes(0b0, 0b1, 0b10, 0b100, 0b11)
    labels = np.array([[1, 0], [0, 1], [1, 1], [1, 0], [0, 1]], dtype=bool)
    query_labels = np.array([[True, False]])
    for k, relevant in ((1, 1), (2, 1 + 2 / 3), (3, 1 + 4 / 3), (4, 3), (5, 3)):
        got = expected_precision(codes(0), database, query_labels, labels, k=k)
        assert got[0] == pytest.approx(relevant / k)


def test_is_the_mean_over_random_tie_orders() -> None:
    rng = np.random.default_rng(0)
    database = rng.integers(0, 8, (60, 1)).astype(np.uint8)
    labels = rng.random((60, 4)) < 0.3
    queries, query_labels = database[:5], labels[:5]
    expected = expected_precision(queries, database, query_labels, labels, k=10)
    distances = hamming(queries, database)
    relevant = (query_labels.astype(int) @ labels.T.astype(int)) > 0
    draws = []
    for _ in range(4_000):
        noisy = distances + rng.random(distances.shape)
        top = np.argsort(noisy, axis=1)[:, :10]
        draws.append(np.take_along_axis(relevant, top, axis=1).mean(axis=1))
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    assert (np.abs(np.mean(draws, axis=0) - expected) <= 5 * error + 1e-12).all()


@pytest.mark.parametrize("k", [0, 4])
def test_k_beyond_the_collection_is_named(k: int) -> None:
    labels = np.ones((3, 1), dtype=bool)
    with pytest.raises(ValueError, match=f"k must be between 1 and the 3 documents, got {k}"):
        expected_precision(codes(1), codes(1, 2, 3), labels[:1], labels, k=k)
