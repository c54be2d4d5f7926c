"""Triplets from a weak labeller, for RBSH's ranking loss: which is nearer, by self-taught hashing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.codes import Codes, hamming
from boltzhash.hashers.self_taught import SelfTaughtHashing

if TYPE_CHECKING:
    from boltzhash.training.batches import Companions

LABELLER_BITS = 64
CANDIDATES = 100
BLOCK = 512


def weak_triplets(matrix: sparse.csr_matrix) -> Companions:
    """For each epoch, two companions of every document: one that the labeller calls nearer, one farther.

    ``matrix`` is tf-idf (n, n_words); a companion is an array of n row numbers.

    The labeller is self-taught hashing, as in RBSH; companions are drawn from the ``CANDIDATES`` nearest
    documents by its codes, so that telling them apart teaches something.
    """
    neighbours, distances = weak_neighbours(matrix)
    return lambda rng: list(draw_pairs(neighbours, distances, rng))


def check_labeller() -> None:
    """Raise if the labeller cannot be fitted here, before the corpus is read."""
    SelfTaughtHashing()._check_params()


def weak_neighbours(matrix: sparse.csr_matrix) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The nearest documents of each by the labeller's codes, and their distances: (n, k) both."""
    n_bits = min(LABELLER_BITS, 8 * max(1, (min(matrix.shape) - 2) // 8))
    codes = SelfTaughtHashing(n_bits).fit(matrix).encode(matrix)
    return nearest(codes, min(CANDIDATES, matrix.shape[0] - 1))


def nearest(codes: Codes, k: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The k nearest other documents of each, and their distances, (n, k); in blocks, never n × n.

    ``codes`` are packed, (n, n_bits / 8).
    """
    rows, distances = [], []
    for start in range(0, len(codes), BLOCK):
        block = hamming(codes[start : start + BLOCK], codes)
        itself = np.arange(len(block))
        block[itself, start + itself] = np.iinfo(np.int32).max
        order = np.argsort(block, axis=1, kind="stable")[:, :k]
        rows.append(order)
        distances.append(np.take_along_axis(block, order, axis=1))
    return np.concatenate(rows), np.concatenate(distances)


def draw_pairs(
    neighbours: NDArray[np.int64], distances: NDArray[np.int32], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two different neighbours (n,) of each document, the nearer one first, out of k (n, k)."""
    n, k = neighbours.shape
    one = rng.integers(k, size=n)
    other = (one + rng.integers(1, max(2, k), size=n)) % k
    documents = np.arange(n)
    swap = distances[documents, one] > distances[documents, other]
    nearer, farther = np.where(swap, other, one), np.where(swap, one, other)
    return neighbours[documents, nearer], neighbours[documents, farther]
