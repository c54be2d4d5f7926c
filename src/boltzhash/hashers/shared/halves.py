"""How good neighbourhoods are, measured without labels: by the two halves of documents.

The words of a document are dealt out to two halves that have none in common. Where neighbourhoods mean
something, both halves are near to the same documents.
"""

from __future__ import annotations

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


def cut_documents(
    matrix: sparse.csr_matrix, random: np.random.Generator
) -> tuple[RowNumbers, sparse.csr_matrix, sparse.csr_matrix]:
    """Some documents of two words or more, chosen at random: their row numbers and their halves."""
    whole = np.flatnonzero(np.diff(matrix.indptr) >= 2)
    chosen = np.sort(random.permutation(whole)[:DOCUMENTS])
    return chosen, *halves(matrix[chosen], random)


def n_nearest(n_documents: int) -> int:
    """How many documents are near to a half, of so many: 300, or a thirtieth of a smaller corpus."""
    return max(1, min(NEAREST, n_documents // 30))


def agreement_of_halves(
    one: Vectors, other: Vectors, documents: Vectors, own: RowNumbers, k: int
) -> Floats:
    """Of the k documents nearest to one half, the share that is nearest to the other as well: (n,).

    Parameters
    ----------
    one, other : arrays of shape (n, d)
        The halves as vectors; products say how near something is. Of codes, bits as −1 and 1.
    documents : array of shape (n_documents, d)
        All documents, whole.
    own : array of shape (n,)
        Which of these the halves come from: a document is not counted as near to itself.

    Documents as near as the k-th count in part: it is the expectation over random orders of ties.

    >>> line = np.array([[1, -1], [1, 1], [-1, 1]], dtype=np.float32)
    >>> agreement_of_halves(line[:1], line[1:2], line, np.array([0]), 1)  # (-1, 1) is far from both
    array([1.])
    """
    size = max(1, CELLS // len(documents))
    found = []
    for start in range(0, len(own), size):
        rows = slice(start, start + size)
        both = [_is_near(half[rows] @ documents.T, own[rows], k) for half in (one, other)]
        found.append((both[0] * both[1]).sum(axis=1) / k)
    return np.concatenate(found).astype(np.float64)


def _is_near(similarities: Vectors, own: RowNumbers, k: int) -> Vectors:
    """The probability that each document is among the k nearest, with ties in random order."""
    similarities[np.arange(len(own)), own] = -np.inf
    last = -np.partition(-similarities, k - 1, axis=1)[:, k - 1 : k]
    nearer, tied = similarities > last, similarities == last
    share = (k - nearer.sum(axis=1, keepdims=True)) / tied.sum(axis=1, keepdims=True)
    return np.asarray(nearer + tied * share, dtype=np.float32)
