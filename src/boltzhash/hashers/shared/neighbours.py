"""The nearest documents of each document, found before there are codes: by features, or by LSA.

Latent semantic analysis: the leading singular directions of tf-idf bring together documents that share a
topic but few words. How many directions are best depends on the corpus, from two dozen to hundreds, so
several numbers of them have a say at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.errors import needs_extra
from boltzhash.hashers.shared.lsa import sketched_directions
from boltzhash.text.tfidf import unit_rows

SCALES = (8, 16, 32, 64, 128, 256)
SHORTEST = 1e-6  # below it a document is taken to have no part in some directions
CELLS = 4_000_000  # cosines held at a time
EXACT_UP_TO = 25_000  # documents: comparing all pairs takes seconds, and grows with the square
PROBES = 96  # cells of the approximate index looked into: 99 of 100 neighbours are found

RowNumbers = NDArray[np.int64]
Vectors = NDArray[np.float32]


def nearest_vectors(rows: Vectors, k: int) -> RowNumbers:
    """The same by the cosine of dense rows (n, n_columns)."""
    return nearest_by_cosine(_unit(rows), k)


class LatentSemantics:
    """Documents as vectors whose cosine is high where they are near at several scales.

    Parameters
    ----------
    matrix : sparse matrix of shape (n, n_words)
        tf-idf of the documents that the directions are learned from.
    scales : numbers of leading directions
        Of those that the documents do not span, the first is cut down and the others are left out.
    """

    def __init__(
        self, matrix: sparse.csr_matrix, scales: tuple[int, ...], random: RandomState
    ) -> None:
        rows = unit_rows(matrix).astype(np.float32)
        self._directions = sketched_directions(rows, min(max(scales), *rows.shape), random)
        n = self._directions.shape[1]
        self._scales = [k for k in sorted(scales) if k <= n] or [n]

    def __call__(self, matrix: sparse.csr_matrix) -> Vectors:
        """Vectors of length 1 of documents, from their tf-idf (n, n_words)."""
        rows = unit_rows(matrix).astype(np.float32)
        return _unit(at_several_scales(np.asarray(rows @ self._directions), self._scales))


def at_several_scales(vectors: NDArray[np.floating], scales: Sequence[int]) -> Vectors:
    """Vectors whose product is about the sum of the cosines of their first k numbers, k a scale.

    The sum is Σ_i x_i y_i Σ_{k ≥ i} 1 / (‖x_1..k‖ ‖y_1..k‖). Here the inner sum is replaced by what is
    never below it, √(Σ 1 / ‖x_1..k‖²) √(Σ 1 / ‖y_1..k‖²), and equal where the lengths of x grow as those
    of y do: so a vector stays as long as its largest scale instead of as all of them together. The
    share of neighbours with the same label is the same to three digits (``experiments/LOG.md``).

    >>> at_several_scales(np.array([[3.0, 4.0]]), [1, 2])  # 3 √(1/9 + 1/25), 4 √(1/25)
    array([[1.16619038, 0.8       ]])
    """
    weights = np.zeros_like(vectors)
    for k in scales:
        squares = np.square(vectors[:, :k]).sum(axis=1, keepdims=True)
        weights[:, :k] += 1 / np.maximum(squares, SHORTEST**2)
    return np.asarray(vectors * np.sqrt(weights))


def _unit(vectors: NDArray[np.floating]) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)


def nearest_by_cosine(vectors: Vectors, k: int) -> RowNumbers:
    """Row numbers of the k vectors (all others, if there are fewer) with the highest cosine.

    Memory grows with the number of vectors, not with its square. Beyond ``EXACT_UP_TO`` vectors, an
    index that looks only into the nearest cells keeps time from growing with the square as well.

    >>> nearest_by_cosine(np.array([[1, 0], [0.8, 0.6], [0, 1]], dtype=np.float32), 1)
    array([[1],
           [0],
           [1]])
    """
    k = min(k, len(vectors) - 1)
    if len(vectors) > EXACT_UP_TO:
        return _from_cells(vectors, k)
    try:
        import faiss
    except ImportError:
        return _nearest_in_blocks(lambda block: vectors[block] @ vectors.T, len(vectors), k)
    _, found = faiss.knn(vectors, vectors, k + 1, metric=faiss.METRIC_INNER_PRODUCT)
    return _without_itself(found, k)


def nearest_by_words(matrix: sparse.csr_matrix, k: int) -> RowNumbers:
    """The same by the cosine of tf-idf (n, n_words), exactly, however many documents there are.

    >>> nearest_by_words(sparse.csr_matrix([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]), 1)
    array([[1],
           [0],
           [1]])
    """
    rows = unit_rows(matrix).astype(np.float32)
    by_word = rows.T.tocsr()
    n = rows.shape[0]
    return _nearest_in_blocks(lambda block: (rows[block] @ by_word).toarray(), n, min(k, n - 1))


def _nearest_in_blocks(cosines_of: Callable[[slice], Vectors], n: int, k: int) -> RowNumbers:
    """The k highest of n numbers for each of n rows, itself left out; never n × n at once."""
    size = max(1, CELLS // n)
    blocks = []
    for start in range(0, n, size):
        cosines = cosines_of(slice(start, min(start + size, n)))
        itself = np.arange(len(cosines))
        cosines[itself, start + itself] = -np.inf
        nearest = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(cosines, nearest, 1), axis=1, kind="stable")
        blocks.append(np.take_along_axis(nearest, order, 1))
    return np.concatenate(blocks).astype(np.int64)


def _from_cells(vectors: Vectors, k: int) -> RowNumbers:
    try:
        import faiss
    except ImportError:
        what = f"finding the neighbours of more than {EXACT_UP_TO} documents"
        raise needs_extra(what, "faiss", "train") from None
    index: Any
    n_cells = int(4 * np.sqrt(len(vectors)))
    index = faiss.index_factory(vectors.shape[1], f"IVF{n_cells},Flat", faiss.METRIC_INNER_PRODUCT)
    sample = np.random.default_rng(0).permutation(len(vectors))[: 64 * n_cells]
    index.train(vectors[np.sort(sample)])
    index.add(vectors)
    index.nprobe = PROBES
    _, found = index.search(vectors, k + 1)
    return _without_itself(found.astype(np.int64), k)


def _without_itself(found: RowNumbers, k: int) -> RowNumbers:
    """The first k of each row that are not the row's own number; too few are repeated.

    >>> _without_itself(np.array([[0, 1, 2], [2, 1, 0], [1, -1, -1]]), 2)
    array([[1, 2],
           [2, 0],
           [1, 1]])
    """
    itself = np.arange(len(found))[:, None]
    order = np.argsort((found == itself) | (found < 0), axis=1, kind="stable")[:, :k]
    chosen = np.take_along_axis(found, order, 1)
    usable = (chosen != itself) & (chosen >= 0)
    return np.where(usable, chosen, np.where(usable[:, :1], chosen[:, :1], itself))
