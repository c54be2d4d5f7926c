"""Labels as matrices, how well words tell them, what is guessed, and who is drawn: against oracles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from boltzhash.hashers.shared.labels import (
    guessed_shares,
    held_out_agreement,
    learned_scores,
    read_labels,
    with_same_label,
)


def shares_of(y: list[Any]) -> sparse.csr_matrix:
    labels = read_labels(y, len(y))
    assert labels is not None
    return labels.shares


def documents(n: int, seed: int = 0) -> tuple[sparse.csr_matrix, list[str]]:
    """Documents of two kinds of words, half of each, and which kind they are of."""
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(np.arange(n) % 2)
    words = rng.random((n, 20)) * (rng.random((n, 20)) < 0.5)
    words[:, :5] *= 3 * (kinds == 0)[:, None]
    words[:, 5:10] *= 3 * (kinds == 1)[:, None]
    words[:, 10] += 0.1
    return sparse.csr_matrix(words), [f"kind {kind}" for kind in kinds]


def test_some_documents_take_their_labels_along() -> None:
    labels = read_labels(["a", "b", None, ["c", "a"]], 4)
    assert labels is not None
    assert labels.known.tolist() == [True, True, False, True]
    some = labels.of(np.array([True, False, True, True]))
    assert some is not None
    assert some.names == ["a", "c"]
    assert some.shares.toarray().tolist() == [[1, 0], [0, 0], [0.5, 0.5]]
    assert labels.of(np.array([False, False, True, False])) is None


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_scores_are_those_of_ridge_regression(kind: str) -> None:
    """In closed form: W = (XᵀX + I)⁻¹ Xᵀ (Y − ȳ), X with rows of length 1."""
    rows, kinds = documents(60)
    shares = shares_of([kind if i % 7 else [kind, "seventh"] for i, kind in enumerate(kinds)])
    dense = rows.toarray()
    X = dense / np.linalg.norm(dense, axis=1, keepdims=True)
    Y = shares.toarray() - shares.toarray().mean(axis=0)
    expected = np.linalg.solve(X.T @ X + np.eye(20), X.T @ Y)
    found = learned_scores(rows if kind == "sparse" else dense, shares)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_nothing_to_learn_is_learned_as_nothing() -> None:
    rows, _ = documents(10)
    assert (learned_scores(rows, shares_of(["same"] * 10)) == 0).all()


def test_agreement_is_kappa() -> None:
    """All are told: 1. Of a tenth the other label is given: .8 of the two even labels is left."""
    rows, kinds = documents(400)
    random = np.random.RandomState
    assert held_out_agreement(rows, shares_of(kinds), random(0)) == pytest.approx(1, abs=0.02)
    other = {"kind 0": "kind 1", "kind 1": "kind 0"}
    wrong = [other[kind] if i % 10 == 0 else kind for i, kind in enumerate(kinds)]
    assert held_out_agreement(rows, shares_of(wrong), random(0)) == pytest.approx(0.8, abs=0.05)
    half: list[Any] = [kind if i % 2 else None for i, kind in enumerate(kinds)]
    assert held_out_agreement(rows, shares_of(half), random(0)) == pytest.approx(1, abs=0.04)


def test_agreement_with_labels_by_chance_is_none_but_for_one_in_a_hundred() -> None:
    rows, kinds = documents(200)
    values = [
        held_out_agreement(
            rows,
            shares_of(np.random.default_rng(seed).permutation(kinds).tolist()),
            np.random.RandomState(seed),
        )
        for seed in range(100)
    ]
    assert sum(value > 0 for value in values) <= 1


def test_a_label_that_all_have_tells_nothing() -> None:
    """Answering it is right every time, and would be by chance."""
    rows, _ = documents(60)
    y = [["all", "rare"] if i % 20 == 0 else ["all"] for i in range(60)]
    assert held_out_agreement(rows, shares_of(y), np.random.RandomState(0)) < 0.5


def test_guesses_are_for_those_without_labels() -> None:
    rows, kinds = documents(300)
    y: list[Any] = [kind if i < 100 else None for i, kind in enumerate(kinds)]
    shares = shares_of(y)
    guesses = guessed_shares(rows, shares, np.random.RandomState(0)).toarray()
    assert (guesses[:100] == 0).all()
    np.testing.assert_allclose(guesses[100:].sum(axis=1), 1, rtol=1e-6)
    names = read_labels(y, 300).names  # type: ignore[union-attr]
    truth = np.array([names.index(kind) for kind in kinds[100:]])
    assert (guesses[100:].argmax(axis=1) == truth).mean() > 0.95
    unsure = shares_of([*np.random.default_rng(0).permutation(kinds[:100]), *[None] * 200])
    less = guessed_shares(rows, unsure, np.random.RandomState(0)).toarray()[100:]
    assert less.max(axis=1).mean() < guesses[100:].max(axis=1).mean() - 0.2


def test_nothing_is_guessed_from_labels_that_occur_once() -> None:
    rows, _ = documents(6)
    shares = shares_of(["a", "b", None, "c", None, None])
    assert guessed_shares(rows, shares, np.random.RandomState(0)).nnz == 0


def test_neighbours_of_the_same_label() -> None:
    """Half of the neighbours, the farthest, and by the shares; all others stay."""
    n, k = 60, 8
    y = [None if i % 3 == 0 else ["a", "b"] if i % 3 == 1 else "b" for i in range(n)]
    shares = shares_of(y)
    near = np.tile(np.arange(k), (n, 1)) + 100
    counts = np.zeros((n, n))
    for seed in range(200):
        chosen = with_same_label(near, shares, 0.5, np.random.default_rng(seed))
        assert (chosen[:, :4] == near[:, :4]).all()
        assert (chosen[::3] == near[::3]).all()
        drawn = chosen[:, 4:]
        rows, places = np.nonzero(drawn < 100)
        np.add.at(counts, (rows, drawn[rows, places]), 1)
    assert (near == np.tile(np.arange(k), (n, 1)) + 100).all()
    assert (counts.diagonal() == 0).all()
    column = shares.toarray() / shares.toarray().sum(axis=0)
    expected = shares.toarray() @ column.T
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(counts / 800, expected, atol=0.03)
