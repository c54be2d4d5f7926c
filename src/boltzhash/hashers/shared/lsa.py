"""The leading singular vectors of sparse tf-idf, centred or not, never dense in documents × words."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext

import numpy as np
from numpy.random import RandomState
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

from boltzhash.hashers.shared.inference import Floats

# Singular values come as roots of eigenvalues: below this share of the largest they are rounding errors.
SMALLEST = 1e-6
SPARE_DIRECTIONS = 20  # more than are asked for, which makes the last of these good
PASSES = 3


def leading_directions(
    rows: sparse.csr_matrix, n: int, random: RandomState, *, centred: bool
) -> Floats:
    """Up to n right singular vectors as columns (n_words, d), the largest singular value first.

    With ``centred``, those of rows − their mean: the principal directions. Fewer than n if the
    rows span fewer. The entry of largest absolute value in each is positive.
    """
    mean = np.asarray(rows.mean(axis=0)).ravel() if centred else np.zeros(rows.shape[1])
    if n > min(rows.shape) // 2:
        vectors, values = _from_gram(rows, mean)
    else:
        vectors, values = _from_arnoldi(rows, mean, n, random)
    order = np.argsort(-values, kind="stable")[:n]
    order = order[values[order] > SMALLEST * max(float(values.max()), SMALLEST)]
    vectors = vectors[:, order]
    peaks = np.abs(vectors).argmax(axis=0)
    return np.asarray(vectors * np.sign(vectors[peaks, np.arange(len(order))]))


def sketched_directions(rows: sparse.csr_matrix, n: int, random: RandomState) -> Floats:
    """About :func:`leading_directions`, not centred: many of them, in a fraction of the time.

    Subspace iteration from a random start (Halko, Martinsson and Tropp, 2011, "Finding structure with
    randomness"). The first are exact to several digits, the last are a mixture of those near to them,
    which is enough where directions are added up and none is looked at by itself.
    """
    n_sketched = n + SPARE_DIRECTIONS
    if n_sketched > min(rows.shape) // 2:
        return leading_directions(rows, n, random, centred=False)
    transposed = rows.T.tocsr()
    words = random.normal(size=(rows.shape[1], n_sketched)).astype(rows.dtype)
    with _one_thread():
        for _ in range(PASSES):
            documents, _ = np.linalg.qr(rows @ words)
            words, _ = np.linalg.qr(transposed @ documents)
        _, _, mixture = np.linalg.svd(np.linalg.qr(rows @ words, mode="r"))
        return np.asarray(words @ mixture[:n].T)


def _one_thread() -> AbstractContextManager[object]:
    """For NumPy's products: several wait for each other so often that beside other work they take
    many times as long, and with nothing beside them hardly less. scikit-learn brings what limits them.
    """
    try:
        limits = importlib.import_module("threadpoolctl").threadpool_limits
    except ImportError:
        return nullcontext()
    one: AbstractContextManager[object] = limits(1, user_api="blas")
    return one


def _from_arnoldi(
    rows: sparse.csr_matrix, mean: Floats, n: int, random: RandomState
) -> tuple[Floats, Floats]:
    transposed = rows.T.tocsr()
    operator = LinearOperator(
        rows.shape,
        matvec=lambda v: rows @ v.ravel() - mean @ v.ravel(),
        rmatvec=lambda u: transposed @ u.ravel() - mean * u.sum(),
        dtype=np.float64,
    )
    start = random.normal(size=min(rows.shape))
    _, values, vectors = svds(operator, k=n, v0=start, return_singular_vectors="vh")
    return vectors.T, values


def _from_gram(rows: sparse.csr_matrix, mean: Floats) -> tuple[Floats, Floats]:
    """All of them, through the products of the shorter side's rows or columns."""
    if rows.shape[1] <= rows.shape[0]:
        gram = (rows.T @ rows).toarray() - rows.shape[0] * np.outer(mean, mean)
        squares, vectors = np.linalg.eigh(gram)
        return vectors, np.sqrt(np.maximum(squares, 0))
    towards_mean = rows @ mean
    gram = (rows @ rows.T).toarray() - towards_mean[:, None] - towards_mean + mean @ mean
    squares, left = np.linalg.eigh(gram)
    values = np.sqrt(np.maximum(squares, 0))
    right = rows.T @ left - np.outer(mean, left.sum(axis=0))
    return right / np.maximum(values, np.finfo(float).tiny), values
