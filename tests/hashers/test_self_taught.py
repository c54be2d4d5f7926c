"""What self-taught hashing alone does: graph, eigenmap, medians, classifiers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import RandomState
from scipy import linalg, sparse

from boltzhash import SelfTaughtHashing
from boltzhash.codes import unpack
from boltzhash.errors import TrainingError
from boltzhash.hashers import self_taught
from boltzhash.hashers.self_taught import above_median, laplacian_eigenmap, neighbour_graph
from boltzhash.text.tfidf import unit_rows


@pytest.fixture
def rows() -> sparse.csr_matrix:
    dense = np.random.default_rng(0).uniform(size=(60, 12))
    dense[dense < 0.5] = 0
    return unit_rows(sparse.csr_matrix(dense))


@pytest.mark.parametrize("cells", [1, 60 * 7, 2**22])
def test_graph_joins_the_nearest(
    rows: sparse.csr_matrix, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the size of the blocks."""
    monkeypatch.setattr(self_taught, "CELLS", cells)
    cosines = (rows @ rows.T).toarray()
    np.fill_diagonal(cosines, 0)
    nearest = np.zeros((60, 60), dtype=bool)
    for i in range(60):
        nearest[i, np.argsort(-cosines[i], kind="stable")[:5]] = True
    expected = np.where(nearest | nearest.T, cosines, 0)
    np.testing.assert_allclose(neighbour_graph(rows, 5).toarray(), expected, atol=1e-15)


def test_documents_with_no_common_word_are_not_joined() -> None:
    rows = sparse.csr_matrix(np.eye(4)[[0, 0, 1, 2]])
    graph = neighbour_graph(rows, 25).toarray()
    assert graph.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("n", [5, 40, 80])  # iterative, dense, more than there are
def test_eigenmap_against_the_dense_generalised_problem(rows: sparse.csr_matrix, n: int) -> None:
    graph = neighbour_graph(rows, 6)
    W = graph.toarray()
    D = np.diag(W.sum(axis=1))
    eigenvalues, vectors = linalg.eigh(D - W, D)
    assert eigenvalues[1] > 1e-6  # in one piece: only v = 1 is trivial
    found = laplacian_eigenmap(graph, n, RandomState(0))
    assert found.shape == (60, min(n, 59))
    expected = vectors[:, 1 : n + 1]
    signs = np.sign((found * (D @ expected)).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-8)


def test_the_trivial_eigenvector_is_out_also_in_a_graph_of_parts() -> None:
    """Three parts make λ = 0 threefold: two coordinates that tell the parts apart remain."""
    part = np.ones((20, 20)) - np.eye(20)
    graph = sparse.csr_matrix(linalg.block_diag(part, part, part))
    found = laplacian_eigenmap(graph, 2, RandomState(0))
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-9)
    groups = found.reshape(3, 20, 2)
    np.testing.assert_allclose(groups, np.broadcast_to(groups[:, :1], groups.shape), atol=1e-9)
    assert np.linalg.matrix_rank(groups[:, 0]) == 2


def test_taught_bits_are_balanced_and_the_medians_of_the_eigenmap(rows: sparse.csr_matrix) -> None:
    hasher = SelfTaughtHashing(16, n_neighbors=6).fit(rows)
    assert (hasher.training_bits_.sum(axis=0) == 30).all()
    embedding = laplacian_eigenmap(neighbour_graph(rows, 6), 16, RandomState(0))
    assert (hasher.training_bits_ == (embedding > np.median(embedding, axis=0))).all()


def test_ties_on_the_median_stay_together() -> None:
    column = np.repeat([0.0, 1.0, 2.0], [2, 5, 3])[:, None]
    assert above_median(column).sum() == 3
    assert above_median(-column).sum() == 7
    noise = np.random.default_rng(0).normal(size=(10, 1)) * 1e-14
    assert (above_median(column + noise) == above_median(column)).all()


def test_new_documents_get_the_bits_of_their_like(texts: list[str]) -> None:
    """Fitted on two thirds of each topic: the others agree with the bits taught to their topic."""
    topics = np.repeat([0, 1, 2], 30)
    seen = np.tile(np.arange(30) < 20, 3)
    hasher = SelfTaughtHashing(8, n_neighbors=19).fit(
        [t for t, s in zip(texts, seen, strict=True) if s]
    )
    codes = unpack(hasher.transform([t for t, s in zip(texts, seen, strict=True) if not s]))
    taught = np.stack(
        [hasher.training_bits_[topics[seen] == topic].mean(axis=0) for topic in range(3)]
    )
    settled = (np.abs(taught - 0.5) == 0.5).all(
        axis=0
    )  # bits that tell topics apart, not within one
    assert settled.sum() >= 2
    assert (codes[:, settled] == taught[topics[~seen]][:, settled].astype(bool)).mean() > 0.95


def test_classifiers_learn_what_they_are_taught(rows: sparse.csr_matrix) -> None:
    hasher = SelfTaughtHashing(16, n_neighbors=6, C=1000.0).fit(rows)
    agree = (unpack(hasher.transform(rows)) == hasher.training_bits_).mean(axis=0)
    assert agree[0] > 0.9
    assert agree.mean() > 0.75


def test_documents_without_neighbours_are_left_out() -> None:
    matrix = np.array([[1.0, 1, 0, 0], [1, 9, 0, 0], [9, 1, 0, 0], [0, 0, 1, 0]])
    assert len(SelfTaughtHashing(8, C=100.0).fit(matrix).training_bits_) == 3
    with pytest.raises(ValueError, match="no two of the 4 documents share a word"):
        SelfTaughtHashing(8).fit(np.eye(4))


def test_classifiers_that_cannot_tell_documents_apart_say_so() -> None:
    matrix = np.array([[1.0, 1], [1, 1.01], [1.01, 1]])
    with pytest.raises(TrainingError, match=r"try a larger C \(was 1\)"):
        SelfTaughtHashing(8).fit(matrix)
