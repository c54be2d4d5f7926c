"""Random trees of the graph that joins documents to their neighbours, for SNUH."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree

RowNumbers = NDArray[np.int64]


def spanning_trees(neighbours: RowNumbers, n_trees: int, rng: np.random.Generator) -> RowNumbers:
    """The edges (i, j) of several trees one after another: (n_edges, 2).

    ``neighbours`` (n, k) are row numbers; a document and a neighbour of it are joined. Each tree is the
    lightest under weights drawn at random, so it has no cycle and connects all that the graph connects:
    n − 1 edges, or fewer if the graph falls into parts.

    >>> line = np.array([[1], [0], [1]])
    >>> spanning_trees(line, 2, np.random.default_rng(0))
    array([[0, 1],
           [1, 2],
           [0, 1],
           [1, 2]])
    """
    n, k = neighbours.shape
    pairs = np.column_stack([np.repeat(np.arange(n), k), neighbours.ravel()])
    pairs.sort(axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return np.concatenate([_one_tree(pairs, n, rng) for _ in range(n_trees)])


def star_forests(neighbours: RowNumbers, n_forests: int, rng: np.random.Generator) -> RowNumbers:
    """The edges (i, j) of several forests of stars, one after another: (n_edges, 2).

    Documents come in random order; one that is in no star yet becomes the centre of one, of all of its
    neighbours that are in none. So every document is in one star, and a star may be a document alone.

    >>> line = np.array([[1], [0], [1]])
    >>> star_forests(line, 1, np.random.default_rng(1))  # the last document is left alone
    array([[0, 1]])
    """
    return np.concatenate([_one_forest(neighbours, rng) for _ in range(n_forests)])


def _one_forest(neighbours: RowNumbers, rng: np.random.Generator) -> RowNumbers:
    n = len(neighbours)
    taken = np.zeros(n, dtype=bool)
    centres, leaves = [], []
    for centre in rng.permutation(n):
        if taken[centre]:
            continue
        taken[centre] = True
        free = neighbours[centre]
        free = np.unique(free[~taken[free]])
        taken[free] = True
        centres.append(np.full(len(free), centre))
        leaves.append(free)
    return np.column_stack([np.concatenate(centres), np.concatenate(leaves)])


def _one_tree(pairs: RowNumbers, n: int, rng: np.random.Generator) -> RowNumbers:
    weights = 1 + rng.random(len(pairs))  # SciPy takes an edge of weight 0 for none
    graph = sparse.csr_matrix((weights, pairs.T), shape=(n, n))
    tree = minimum_spanning_tree(graph).tocoo()
    edges = np.column_stack([tree.row, tree.col]).astype(np.int64)
    return edges[np.lexsort(edges.T[::-1])]
