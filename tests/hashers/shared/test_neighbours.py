"""Neighbours against a plain reference, exact and from cells."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse

from boltzhash.errors import MissingExtraError
from boltzhash.hashers.shared import neighbours
from boltzhash.hashers.shared.neighbours import (
    latent_semantics,
    nearest_by_cosine,
    nearest_documents,
)


def unit(n: int, d: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(("n", "k"), [(2, 1), (2, 20), (7, 6), (7, 20), (300, 20)])
@pytest.mark.parametrize("cells", [1, 1000, 10**6])
def test_exact_neighbours_are_those_of_a_full_sort(
    n: int, k: int, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "CELLS", cells)  # blocks of one row, of some, of all
    vectors = unit(n, 8, seed=0)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    expected = np.argsort(-cosines, axis=1)[:, : min(k, n - 1)]
    np.testing.assert_array_equal(nearest_by_cosine(vectors, k), expected)


def test_cells_find_most_neighbours_and_never_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    centres = unit(40, 16, seed=1)
    vectors = np.repeat(centres, 50, axis=0) + 0.3 * unit(2000, 16, seed=2)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    exact = nearest_by_cosine(vectors, 10)
    monkeypatch.setattr(neighbours, "EXACT_UP_TO", 100)
    found = nearest_by_cosine(vectors, 10)
    assert found.shape == exact.shape
    assert (found != np.arange(2000)[:, None]).all()
    shared = [len(set(a) & set(b)) / 10 for a, b in zip(found, exact, strict=True)]
    assert np.mean(shared) > 0.9


def test_latent_semantics_sees_a_topic_without_a_common_word() -> None:
    """a b, b c, c d: the first and the last share no word, but one with the document between them."""
    topic = ["a b", "b c", "c d", "a b", "c d", "b c"]
    other = ["x y", "y z", "z x", "x y", "z y", "x z"]
    words = sorted({word for text in topic + other for word in text.split()})
    counts = np.array([[float(w in text.split()) for w in words] for text in topic + other])
    near = nearest_documents(sparse.csr_matrix(counts), 5, np.random.RandomState(0))
    assert all(set(row) < set(range(6)) for row in near[:6])
    assert all(set(row) < set(range(6, 12)) for row in near[6:])


def test_latent_vectors_have_length_one_also_of_few_documents() -> None:
    rows = sparse.csr_matrix([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    vectors = latent_semantics(rows, np.random.RandomState(0))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_many_documents_without_faiss_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "EXACT_UP_TO", 5)
    monkeypatch.setitem(sys.modules, "faiss", None)
    needed = r"neighbours of more than 5 documents needs faiss.* 'boltzhash\[train\]'"
    with pytest.raises(MissingExtraError, match=needed):
        nearest_by_cosine(np.eye(6, dtype=np.float32), 2)
