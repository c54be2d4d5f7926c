"""Leading singular vectors of sparse rows against a dense decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import RandomState
from scipy import sparse

from boltzhash.hashers.shared.lsa import leading_directions


def random_rows(n: int, words: int) -> sparse.csr_matrix:
    rows = np.random.default_rng(1).uniform(size=(n, words))
    rows[rows < 0.6] = 0
    return sparse.csr_matrix(rows)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("shape", [(40, 25), (25, 40)])
@pytest.mark.parametrize("n", [3, 20])  # the iterative way and the one through all products
def test_against_a_dense_decomposition(shape: tuple[int, int], n: int, centred: bool) -> None:
    rows = random_rows(*shape)
    dense = rows.toarray() - (rows.toarray().mean(axis=0) if centred else 0)
    expected = np.linalg.svd(dense)[2][:n].T
    found = leading_directions(rows, n, RandomState(0), centred=centred)
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-9)
    assert (found.max(axis=0) == np.abs(found).max(axis=0)).all()


@pytest.mark.parametrize("shape", [(40, 25), (25, 40)])
@pytest.mark.parametrize("n", [10, 24])
def test_no_more_directions_than_the_rows_span(shape: tuple[int, int], n: int) -> None:
    rows = random_rows(shape[0], 4) @ random_rows(4, shape[1])
    assert leading_directions(rows, n, RandomState(0), centred=False).shape == (shape[1], 4)


def test_equal_rows_have_no_principal_direction() -> None:
    rows = sparse.csr_matrix(np.ones((5, 3)))
    assert leading_directions(rows, 2, RandomState(0), centred=True).shape == (3, 0)
