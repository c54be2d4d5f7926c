"""Groups of near-duplicates against all pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from boltzhash.codes import Codes, hamming
from boltzhash.search import duplicates
from boltzhash.search.duplicates import duplicate_groups


def by_all_pairs(codes: Codes, radius: int) -> list[list[int]]:
    if len(codes) == 0:
        return []
    _, labels = connected_components(hamming(codes, codes) <= radius)
    groups: dict[int, list[int]] = {}
    for row, label in enumerate(labels.tolist()):
        groups.setdefault(label, []).append(row)
    return [group for group in groups.values() if len(group) > 1]


def near_codes(n: int, n_bits: int, seed: int) -> Codes:
    """Codes around a few centres, at all distances from them up to 8 bits."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, 2, size=(max(1, n // 8), n_bits), dtype=np.uint8)
    bits = centres[rng.integers(0, len(centres), size=n)]
    for row in bits:
        row[rng.integers(0, n_bits, size=rng.integers(0, 9))] ^= 1
    return np.packbits(bits, axis=1)


@settings(max_examples=60)
@given(
    n=st.integers(0, 120),
    n_bits=st.sampled_from([8, 16, 24, 64, 136]),
    radius=st.integers(0, 12),
    seed=st.integers(0, 10**6),
)
def test_same_groups_as_all_pairs(n: int, n_bits: int, radius: int, seed: int) -> None:
    codes = near_codes(n, n_bits, seed)
    found = [group.tolist() for group in duplicate_groups(codes, radius)]
    assert found == by_all_pairs(codes, radius)


def few_neighbours(n_bits: int, radius: int, n_chunks: int) -> bool:
    """Whether a cut asks for few enough look-ups for a test."""
    width, flips = -(-n_bits // n_chunks), radius // n_chunks
    return width <= 64 and (flips <= 1 or (width <= 16 and flips <= 3))


CUTS = [
    cut
    for cut in itertools.product([16, 64, 128], [1, 2, 3, 5, 8, 12], [1, 2, 3, 4, 7, 13])
    if few_neighbours(*cut)
]


@pytest.mark.parametrize(("n_bits", "radius", "n_chunks"), CUTS)
def test_every_cut_finds_every_near_pair(
    monkeypatch: pytest.MonkeyPatch, n_bits: int, radius: int, n_chunks: int
) -> None:
    """Whatever the plan, no pair within the radius is missed; blocks of pairs are cut small."""
    monkeypatch.setattr(duplicates, "_PAIRS_AT_ONCE", 50)
    plan = duplicates._Plan(n_chunks, radius // n_chunks)
    monkeypatch.setattr(duplicates, "_cheapest_plan", lambda *_: plan)
    codes = np.unique(near_codes(150, n_bits, seed=radius), axis=0)
    pairs = set()
    for ones, others in duplicates._candidates(codes, radius):
        pairs |= set(zip(ones.tolist(), others.tolist(), strict=True))
    near = np.argwhere(np.triu(hamming(codes, codes) <= radius, k=1))
    assert len(near) > 0
    assert {tuple(pair) for pair in near.tolist()} <= pairs


def test_many_codes_are_not_compared_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, size=(20_000, 8), dtype=np.uint8)
    codes[10_000:10_010] = codes[:10]
    codes[15_000] = codes[3] ^ np.array([1, 0, 0, 0, 0, 0, 0, 129], dtype=np.uint8)
    compared = 0
    candidates = duplicates._candidates

    def counted(*arguments: object) -> object:
        nonlocal compared
        for ones, others in candidates(*arguments):  # type: ignore[arg-type]
            compared += len(ones)
            yield ones, others

    monkeypatch.setattr(duplicates, "_candidates", counted)
    groups = [group.tolist() for group in duplicate_groups(codes, 3)]
    expected = [[i, 10_000 + i] for i in range(10)]
    expected[3].append(15_000)
    assert groups == expected
    assert compared < 20_000 * 19_999 / 2 / 1000
