"""Bits as topics: words of their sides, groups, and the documents that are surest."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from boltzhash.codes import pack
from boltzhash.server.bits import Sample, correlations, surest_documents
from boltzhash.server.distinctive import Occurrences
from boltzhash.server.topics import SideWords, grouped, side_words
from boltzhash.text.words import Words


def test_words_of_a_side_are_distinctive_not_frequent() -> None:
    """Everyone says "the"; "data" tells every bit apart, "csv" only the first."""
    rng = np.random.default_rng(0)
    bits = rng.random((400, 8)) < 0.5
    data = bits.mean(axis=1) > 0.5  # goes with all bits a little
    columns = [np.ones(400, bool), data, bits[:, 0] & (rng.random(400) < 0.8)]
    names = ["the", "data", "csv"]
    has = sparse.csr_matrix(np.stack(columns, axis=1).astype(np.float64))
    words = side_words(Occurrences(has, names), bits, Words())
    assert words.on[0] == ["csv", "data"]
    assert all(side[:1] == ["data"] for side in words.on[1:])
    assert not any("the" in side for side in words.on + words.off)


def test_bits_that_go_together_are_grouped_and_turned_the_same_way() -> None:
    rng = np.random.default_rng(0)
    common = rng.random((2, 2000)) < 0.5
    turned = [False, True, False, False, True, False]
    bits = np.stack(
        [
            (common[i % 2] ^ (rng.random(2000) < 0.15)) ^ turned[i]
            for i in range(6)  # even ones follow one fact, odd ones another
        ],
        axis=1,
    )
    words = SideWords([[f"on{i}"] for i in range(6)], [[f"off{i}"] for i in range(6)])
    groups = grouped(correlations(bits), words)
    assert sorted(sorted(group.bits) for group in groups) == [[0, 2, 4], [1, 3, 5]]
    for group in groups:
        facing = {turned[bit] ^ (bit in group.reversed) for bit in group.bits}
        assert len(facing) == 1
        expected = {f"off{bit}" if bit in group.reversed else f"on{bit}" for bit in group.bits}
        assert set(group.words) == expected
        assert set(group.against) == {
            f"on{w[3:]}" if w[1] == "f" else f"off{w[2:]}" for w in expected
        }


def sampled(bits: np.ndarray[Any, Any]) -> Sample:
    n = len(bits)
    return Sample(np.arange(n) + 10, pack(bits), ["text"] * n)


def test_the_surest_have_the_largest_margins_whatever_their_order() -> None:
    margins = np.array([[0.5, -1.0], [300.0, -2.0], [200.0, 4.0], [-3.0, -0.1]])
    margins = np.hstack([margins, np.ones((4, 6))])
    hasher: Any = SimpleNamespace(
        n_bits=8, n_feature_columns=None, margins=lambda texts: margins[: len(texts)]
    )
    surest = surest_documents(hasher, sampled(margins > 0), np.eye(8))
    assert [side.places.tolist() for side in surest[0]] == [[11, 12, 10], [13]]
    assert [side.places.tolist() for side in surest[1]] == [[12], [11, 10, 13]]
    assert [side.places.tolist() for side in surest[7]] == [[10, 11, 12, 13], []]


def test_of_codes_from_features_the_other_bits_say_how_sure_one_is() -> None:
    bits = np.array([[1, 0, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1], [0, 1, 1, 1]], dtype=bool)
    bits = np.hstack([bits, np.zeros((4, 4), bool)])
    correlated = np.eye(8)
    correlated[0, 1:3] = correlated[1:3, 0] = 0.5  # bits 1 and 2 go with bit 0
    hasher: Any = SimpleNamespace(n_bits=8, n_feature_columns=6)
    on, off = surest_documents(hasher, sampled(bits), correlated)[0]
    assert on.places.tolist() == [11, 10]
    assert off.places.tolist() == [12, 13]
