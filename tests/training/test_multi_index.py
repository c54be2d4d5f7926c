"""What MISH knows of a multi-index search, against a search that is written out."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest
import torch
from torch import Tensor

from boltzhash.training.multi_index import (
    false_positive_similarity,
    far_dissimilarity,
    search_radii,
    substring_distances,
    troublesome_pairs,
)

N_BITS, N_SUBSTRINGS, K = 16, 3, 4


@pytest.fixture
def codes() -> Tensor:
    """Two hundred codes around a few centres."""
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 2, (8, N_BITS))
    noise = rng.random((200, N_BITS)) < 0.2
    return torch.from_numpy(centres[rng.integers(8, size=200)] ^ noise).float()


def substrings(code: Tensor) -> list[tuple[int, ...]]:
    bits = [int(bit) for bit in code]
    return [tuple(bits[:6]), tuple(bits[6:11]), tuple(bits[11:])]


def candidates(codes: Tensor, query: int, radius: int) -> set[int]:
    """Multi-index hashing as in its paper: tables of substrings, asked for all near the query's."""
    tables: list[dict[tuple[int, ...], set[int]]] = [defaultdict(set) for _ in range(N_SUBSTRINGS)]
    for row, code in enumerate(codes):
        for table, substring in zip(tables, substrings(code), strict=True):
            table[substring].add(row)
    found = set()
    for number in range(radius + 1):
        flips, j = divmod(number, N_SUBSTRINGS)
        asked = substrings(codes[query])[j]
        for places in combinations(range(len(asked)), flips):
            near = tuple(bit ^ (place in places) for place, bit in enumerate(asked))
            found |= tables[j][near]
    return found


def hamming(codes: Tensor) -> Tensor:
    return (codes.unsqueeze(0) != codes.unsqueeze(1)).sum(-1)


def test_radii_find_the_same_candidates_as_tables(codes: Tensor) -> None:
    for query in range(0, 200, 20):
        for radius in range(8):
            anchor = codes[query].expand_as(codes)
            distances = substring_distances(anchor, codes, N_SUBSTRINGS)
            radii = search_radii(torch.tensor(radius), N_SUBSTRINGS)
            within = (distances <= radii).any(-1).nonzero().squeeze(-1).tolist()
            assert set(within) == candidates(codes, query, radius)
            assert {*(hamming(codes)[query] <= radius).nonzero().squeeze(-1).tolist()} <= {*within}


def test_substring_distances_sum_to_hamming(codes: Tensor) -> None:
    distances = substring_distances(codes[:100], codes[100:], N_SUBSTRINGS)
    expected = [
        [sum(a != b for a, b in zip(*pair, strict=True)) for pair in zip(*both, strict=True)]
        for both in (
            (substrings(one), substrings(other))
            for one, other in zip(codes[:100], codes[100:], strict=True)
        )
    ]
    assert distances.tolist() == expected


def test_false_positives_are_candidates_beyond_the_nearest(codes: Tensor) -> None:
    pairs = troublesome_pairs(codes, N_SUBSTRINGS, K, torch.Generator().manual_seed(0))
    distances = hamming(codes)
    n_found = 0
    for row in range(len(codes)):
        others = torch.cat([distances[row, :row], distances[row, row + 1 :]])
        radius = int(others.sort().values[K - 1])
        j, within = int(pairs.substring[row]), int(pairs.within[row])
        anchor = codes[row].expand_as(codes)
        inside = substring_distances(anchor, codes, N_SUBSTRINGS)[:, j]
        if within < 0:
            assert int(pairs.false_positive[row]) == row
            continue
        n_found += 1
        wrong = int(pairs.false_positive[row])
        assert wrong in candidates(codes, row, radius)
        assert distances[row, wrong] > radius
        alike = (inside == within) & (distances[row] > radius)
        assert distances[row, wrong] == distances[row][alike].max()
    assert n_found > 100


def test_far_ones_are_the_farthest_of_the_nearest(codes: Tensor) -> None:
    k = 60
    pairs = troublesome_pairs(codes, N_SUBSTRINGS, k, torch.Generator().manual_seed(0))
    distances = hamming(codes)
    for row, far in enumerate(pairs.far.tolist()):
        radius = int(
            torch.cat([distances[row, :row], distances[row, row + 1 :]]).sort().values[k - 1]
        )
        assert far == row if radius <= 2 * N_SUBSTRINGS - 1 else distances[row, far] == radius
    assert (pairs.far != torch.arange(len(codes))).any()


def test_every_substring_and_radius_of_a_search_is_drawn(codes: Tensor) -> None:
    """A document alone in what is drawn has no pair; over many draws each has some."""
    seen: set[tuple[int, int]] = set()
    for seed in range(30):
        pairs = troublesome_pairs(codes, N_SUBSTRINGS, K, torch.Generator().manual_seed(seed))
        found = pairs.within >= 0
        seen |= {*zip(pairs.substring[found].tolist(), pairs.within[found].tolist(), strict=True)}
    assert {(0, 0), (1, 0), (2, 0), (0, 1)} <= seen


def test_bits_that_agree_are_driven_apart_and_those_that_differ_together() -> None:
    anchor = torch.tensor([[0.0, 0, 1, 1, 0, 1]])
    other = anchor.clone().requires_grad_()
    by = (torch.tensor([1]), torch.tensor([0]), 3)
    false_positive_similarity(anchor, other, *by).sum().backward()  # type: ignore[no-untyped-call]
    assert other.grad is not None
    assert other.grad.tolist() == [[0, 0, 2, 2, 0, 0]]  # down: away from two bits that are on
    far = (1 - anchor).requires_grad_()
    far_dissimilarity(anchor, far, 2).sum().backward()  # type: ignore[no-untyped-call]
    assert far.grad is not None
    assert far.grad.tolist() == [[2, 2, -2, -2, 2, -2]]


def test_losses_count_what_a_search_looks_at(codes: Tensor) -> None:
    """The signs of the loss over all pairs, against the exact numbers of table entries that are met."""
    radius = 5
    radii = search_radii(torch.tensor(radius), N_SUBSTRINGS)
    for query in range(0, 200, 25):
        anchor = codes[query].expand_as(codes)
        met = set()
        for j in range(N_SUBSTRINGS):
            by = (torch.full((200,), j), radii[j].expand(200), N_SUBSTRINGS)
            alike = false_positive_similarity(anchor, codes, *by)
            distances = substring_distances(anchor, codes, N_SUBSTRINGS)[:, j]
            size = len(substrings(codes[0])[j])
            expected = [size - 2 * d if d <= radii[j] else 0 for d in distances.tolist()]
            assert alike.tolist() == expected
            met |= set(torch.nonzero(alike).squeeze(-1).tolist())
        assert met == candidates(codes, query, radius)
    distances = hamming(codes)[0]
    widening = far_dissimilarity(codes[:1].expand_as(codes), codes, N_SUBSTRINGS)
    assert widening.tolist() == [2 * d - N_BITS if d > 5 else 0 for d in distances.tolist()]
