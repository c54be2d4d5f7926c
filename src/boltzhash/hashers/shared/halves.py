"""How good neighbourhoods are, measured without labels: by the two halves of documents.

The words of a document are dealt out to two halves that have none in common. Where neighbourhoods mean
something, both halves are near to the same documents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

RowNumbers = NDArray[np.int64]
Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]

DOCUMENTS = 1000  # that are cut in halves
NEAREST = 300  # of each half, or a thirtieth of a smaller corpus
CELLS = 4_000_000  # similarities held at a time


def halves(
    matrix: sparse.csr_matrix, random: np.random.Generator
) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """The words of each document, dealt out to two at random: (n, n_words) each.

    Of an odd number of words the second half has one more.

    >>> one, other = halves(sparse.csr_matrix([[5.0, 6.0, 7.0]]), np.random.default_rng(0))
    >>> one.toarray(), other.toarray()
    (array([[0., 0., 7.]]), array([[5., 6., 0.]]))
    """
    lengths = np.diff(matrix.indptr)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    shuffled = np.lexsort((random.random(matrix.nnz), rows))
    place = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], lengths)
    is_first = np.empty(matrix.nnz, dtype=bool)
    is_first[shuffled] = place < np.repeat(lengths // 2, lengths)
    return _only(matrix, rows, is_first), _only(matrix, rows, ~is_first)


def _only(
    matrix: sparse.csr_matrix, rows: NDArray[np.int64], is_kept: NDArray[np.bool_]
) -> sparse.csr_matrix:
    kept = np.bincount(rows[is_kept], minlength=matrix.shape[0])
    indptr = np.concatenate([[0], np.cumsum(kept)])
    return sparse.csr_matrix(
        (matrix.data[is_kept], matrix.indices[is_kept], indptr), shape=matrix.shape
    )


class Halved(NamedTuple):
    """Some documents in halves, and the row numbers of all the others."""

    one: sparse.csr_matrix
    other: sparse.csr_matrix
    others: RowNumbers

    def agreement(
        self, vectors_of: Callable[[sparse.csr_matrix], Vectors], others: Vectors
    ) -> float:
        """The mean agreement of the halves on what is near among the others."""
        k = n_nearest(len(others))
        halved = vectors_of(self.one), vectors_of(self.other)
        return float(agreement_of_halves(*halved, others, k).mean())


def cut_documents(matrix: sparse.csr_matrix, random: np.random.Generator) -> Halved:
    """A tenth of the documents, at most 1,000, of two words or more, chosen at random."""
    long_enough = np.flatnonzero(np.diff(matrix.indptr) >= 2)
    n = min(DOCUMENTS, matrix.shape[0] // 10)
    chosen = np.sort(random.permutation(long_enough)[:n])
    others = np.setdiff1d(np.arange(matrix.shape[0]), chosen)
    return Halved(*halves(matrix[chosen], random), others)


def n_nearest(n_documents: int) -> int:
    """How many documents are near to a half, of so many: 300, or a thirtieth of a smaller corpus."""
    return max(1, min(NEAREST, n_documents // 30))


def agreement_of_halves(
    one: Vectors, other: Vectors, documents: Vectors, k: int, own: RowNumbers | None = None
) -> Floats:
    """Of the k documents nearest to one half, the share that is nearest to the other as well: (n,).

    Parameters
    ----------
    one, other : arrays of shape (n, d)
        The halves as vectors; products say how near something is. Of codes, bits as −1 and 1.
    documents : array of shape (n_documents, d)
        What may be near.
    own : array of shape (n,), optional
        Which of these the halves come from, if they do: that is not counted as near.

    Documents as near as the k-th count in part: it is the expectation over random orders of ties.

    >>> line = np.array([[1, -1], [1, 1], [-1, 1]], dtype=np.float32)
    >>> agreement_of_halves(line[:1], line[1:2], line, 1, own=np.array([0]))  # to both, (1, 1)
    array([1.])
    """
    size = max(1, CELLS // len(documents))
    found = []
    for start in range(0, len(one), size):
        rows = slice(start, start + size)
        itself = None if own is None else own[rows]
        both = [_is_near(half[rows] @ documents.T, itself, k) for half in (one, other)]
        found.append((both[0] * both[1]).sum(axis=1) / k)
    return np.concatenate(found).astype(np.float64)


def _is_near(similarities: Vectors, own: RowNumbers | None, k: int) -> Vectors:
    """The probability that each document is among the k nearest, with ties in random order."""
    if own is not None:
        similarities[np.arange(len(own)), own] = -np.inf
    last = -np.partition(-similarities, k - 1, axis=1)[:, k - 1 : k]
    nearer, tied = similarities > last, similarities == last
    share = (k - nearer.sum(axis=1, keepdims=True)) / tied.sum(axis=1, keepdims=True)
    return np.asarray(nearer + tied * share, dtype=np.float32)
