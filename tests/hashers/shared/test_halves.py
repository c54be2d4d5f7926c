"""The halves of documents, and what both are near to, against a plain count."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from boltzhash.hashers.shared import halves as measured
from boltzhash.hashers.shared.halves import agreement_of_halves, cut_documents, halves, n_nearest


def documents(n: int, seed: int) -> sparse.csr_matrix:
    return sparse.random(n, 40, density=0.2, random_state=np.random.RandomState(seed), format="csr")


def test_halves_share_no_word_and_together_are_the_document() -> None:
    matrix = documents(50, seed=0)
    one, other = halves(matrix, np.random.default_rng(1))
    assert one.multiply(other).nnz == 0
    np.testing.assert_array_equal((one + other).toarray(), matrix.toarray())
    difference = np.diff(other.indptr) - np.diff(one.indptr)
    assert set(difference) <= {0, 1}


def test_documents_of_one_word_are_not_cut() -> None:
    words = np.eye(30)
    words[0, 2] = 1
    matrix = sparse.csr_matrix(words)
    halved = cut_documents(matrix, np.random.default_rng(0))
    assert halved.others.tolist() == list(range(1, 30))
    assert (halved.one.nnz, halved.other.nnz) == (1, 1)


@pytest.mark.parametrize("cells", [1, 10**6])
@pytest.mark.parametrize("k", [1, 5, 19])
def test_agreement_is_the_expectation_over_orders_of_ties(
    k: int, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ties of short codes are shuffled many times, and what both halves find is counted."""
    monkeypatch.setattr(measured, "CELLS", cells)
    rng = np.random.default_rng(2)
    codes, one, other = (
        np.where(rng.random((n, 4)) < 0.5, -1, 1).astype(np.float32) for n in (20, 3, 3)
    )
    own = np.array([4, 0, 7])
    counted = np.zeros(3)
    times = 3000
    for _ in range(times):
        for i, half in enumerate(zip(one, other, strict=True)):
            near = []
            for vector in half:
                order = np.lexsort((rng.random(20), -(codes @ vector)))
                near.append([row for row in order if row != own[i]][:k])
            counted[i] += len(set(near[0]) & set(near[1])) / k
    found = agreement_of_halves(one, other, codes, k, own)
    np.testing.assert_allclose(found, counted / times, atol=0.03)


def test_neighbourhoods_that_mean_something_agree_better_than_those_that_do_not() -> None:
    rng = np.random.default_rng(3)
    topic = rng.integers(5, size=300)
    words = np.zeros((300, 50))
    for row, t in enumerate(topic):
        words[row, 10 * t + rng.permutation(10)[:6]] = 1
    matrix = sparse.csr_matrix(words)
    halved = cut_documents(matrix, rng)
    by_topic = np.kron(np.eye(5), np.ones((10, 1))).astype(np.float32)
    at_random = rng.normal(size=(50, 5)).astype(np.float32)
    means = []
    for v in (by_topic, at_random):
        half = halved.one @ v, halved.other @ v
        means.append(agreement_of_halves(*half, matrix[halved.others] @ v, k=50).mean())
    assert means[0] > 2 * means[1]


def test_a_thirtieth_of_few_documents_is_near() -> None:
    assert [n_nearest(n) for n in (10, 300, 9000, 10**6)] == [1, 10, 300, 300]
