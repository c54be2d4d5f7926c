"""Random spanning trees: no cycles, everything connected, edges of the graph only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from boltzhash.hashers.shared.trees import spanning_trees, star_forests

Draw = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


def parts(edges: np.ndarray, n: int) -> tuple[int, np.ndarray]:
    graph = sparse.coo_matrix((np.ones(len(edges)), edges.T), shape=(n, n))
    return connected_components(graph, directed=False)


@pytest.mark.parametrize("k", [1, 3])
def test_each_tree_connects_what_the_graph_connects_without_a_cycle(k: int) -> None:
    n = 60
    rng = np.random.default_rng(k)
    near = np.stack([rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)])
    graph = np.column_stack([np.repeat(np.arange(n), k), near.ravel()])
    n_parts, part = parts(graph, n)
    trees = np.split(spanning_trees(near, 4, rng), 4)
    known = {frozenset(edge) for edge in graph.tolist()}
    for tree in trees:
        assert {frozenset(edge) for edge in tree.tolist()} <= known
        assert len(tree) == n - n_parts  # fewer would not connect, more would make a cycle
        found, connected = parts(tree, n)
        assert found == n_parts
        assert len(np.unique(np.column_stack([part, connected]), axis=0)) == n_parts


def test_all_trees_of_a_cycle_are_drawn_equally_often() -> None:
    """A cycle of four has four spanning trees, each of which leaves one edge out."""
    cycle = np.array([[1], [2], [3], [0]])
    trees = spanning_trees(cycle, 4000, np.random.default_rng(0)).reshape(-1, 3, 2)
    _, counts = np.unique(trees.reshape(4000, -1), axis=0, return_counts=True)
    assert len(counts) == 4
    assert abs(counts - 1000).max() < 5 * np.sqrt(1000 * 3 / 4)


def test_stars_cover_every_document_once() -> None:
    n, k = 60, 4
    rng = np.random.default_rng(0)
    near = np.stack([rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)])
    ends = set()
    for seed in range(30):
        forest = star_forests(near, 1, np.random.default_rng(seed))
        centres, leaves = forest.T
        assert len(set(leaves)) == len(leaves)  # a leaf is in one star
        assert not set(centres) & set(leaves)  # and no centre
        assert all(leaf in near[centre] for centre, leaf in forest)
        free = set(range(n))
        expected = []
        for centre in np.random.default_rng(seed).permutation(n).tolist():
            if centre in free:
                star = sorted((free - {centre}) & set(near[centre].tolist()))
                expected += [[centre, leaf] for leaf in star]
                free -= {centre, *star}
        assert forest.tolist() == expected
        ends |= {frozenset(edge) for edge in forest.tolist()}
    joined = {frozenset((i, int(j))) for i in range(n) for j in near[i]}
    assert len(ends) > 0.9 * len(joined)  # no edge is left out for good


@pytest.mark.parametrize("draw", [spanning_trees, star_forests])
def test_a_document_that_is_its_own_neighbour_has_no_edge(draw: Draw) -> None:
    assert draw(np.array([[0], [1]]), 3, np.random.default_rng(0)).shape == (0, 2)


@pytest.mark.parametrize("draw", [spanning_trees, star_forests])
def test_same_generator_same_trees(draw: Draw) -> None:
    near = np.random.default_rng(0).integers(30, size=(30, 4))
    one, again, other = (draw(near, 2, np.random.default_rng(s)) for s in (5, 5, 6))
    np.testing.assert_array_equal(one, again)
    assert one.tolist() != other.tolist()
