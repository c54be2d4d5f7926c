"""Neighbours against a plain reference, exact and from cells."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse

from boltzhash.errors import MissingExtraError
from boltzhash.hashers.shared import neighbours
from boltzhash.hashers.shared.lsa import leading_directions, sketched_directions
from boltzhash.hashers.shared.neighbours import (
    LatentSemantics,
    at_several_scales,
    nearest_by_cosine,
    nearest_by_words,
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


@pytest.mark.parametrize(("n", "k"), [(2, 1), (7, 20), (300, 20)])
@pytest.mark.parametrize("cells", [1, 1000, 10**6])
def test_neighbours_by_words_are_those_of_a_full_sort(
    n: int, k: int, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "CELLS", cells)
    rng = np.random.default_rng(0)
    words = rng.random((n, 50)) * (rng.random((n, 50)) < 0.7)
    unit_length = words / np.linalg.norm(words, axis=1, keepdims=True)
    cosines = unit_length @ unit_length.T
    np.fill_diagonal(cosines, -np.inf)
    expected = np.argsort(-cosines, axis=1)[:, : min(k, n - 1)]
    np.testing.assert_array_equal(nearest_by_words(sparse.csr_matrix(words), k), expected)


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
    matrix = sparse.csr_matrix(counts)
    latent = LatentSemantics(matrix, (2, 4), np.random.RandomState(0))
    near = nearest_by_cosine(latent(matrix), 5)
    assert all(set(row) < set(range(6)) for row in near[:6])
    assert all(set(row) < set(range(6, 12)) for row in near[6:])


def test_latent_vectors_have_length_one_also_of_few_documents() -> None:
    rows = sparse.csr_matrix([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    vectors = LatentSemantics(rows, (8, 64), np.random.RandomState(0))(rows)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_many_documents_without_faiss_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "EXACT_UP_TO", 5)
    monkeypatch.setitem(sys.modules, "faiss", None)
    needed = r"neighbours of more than 5 documents needs faiss.* 'boltzhash\[train\]'"
    with pytest.raises(MissingExtraError, match=needed):
        nearest_by_cosine(np.eye(6, dtype=np.float32), 2)


def test_near_at_several_scales_is_near_by_the_sum_of_their_cosines() -> None:
    """The folded vectors order documents as the mean of the cosines does, but for a few pairs."""
    vectors = unit(300, 64, seed=3) * np.linspace(2, 0.2, 64, dtype=np.float32)
    scales = [4, 16, 64]

    def summed(x: np.ndarray) -> np.ndarray:
        parts = [x[:, :k] / np.linalg.norm(x[:, :k], axis=1, keepdims=True) for k in scales]
        return sum(part @ part.T for part in parts)

    folded = at_several_scales(vectors, scales)
    np.testing.assert_allclose(np.square(folded).sum(axis=1), len(scales), rtol=1e-5)
    correlation = np.corrcoef((folded @ folded.T).ravel(), summed(vectors).ravel())[0, 1]
    one_scale = np.corrcoef((vectors @ vectors.T).ravel(), summed(vectors).ravel())[0, 1]
    assert correlation > 0.99 > one_scale


def test_sketched_directions_span_what_the_exact_ones_do() -> None:
    random = np.random.default_rng(4)
    topics = random.random((5, 80)) ** 6
    rows = sparse.csr_matrix(random.poisson(random.dirichlet(np.full(5, 0.1), 400) @ topics * 8.0))
    exact = leading_directions(rows, 5, np.random.RandomState(0), centred=False)
    sketched = sketched_directions(rows.astype(np.float32), 5, np.random.RandomState(0))
    cosines = np.linalg.svd(exact.T @ sketched, compute_uv=False)
    assert cosines.min() > 0.99
    np.testing.assert_allclose(sketched.T @ sketched, np.eye(5), atol=1e-5)
