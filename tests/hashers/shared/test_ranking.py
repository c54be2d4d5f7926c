"""Weak triplets and the ranking loss, by hand and against a plain reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from boltzhash.codes import hamming
from boltzhash.hashers.shared import ranking
from boltzhash.hashers.shared.ranking import draw_pairs, nearest, weak_triplets
from boltzhash.training.objectives import ranking_hinge


def test_nearest_in_blocks_is_the_stable_order_without_oneself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ranking, "BLOCK", 7)
    codes = np.random.default_rng(0).integers(0, 4, (30, 2)).astype(np.uint8)
    rows, distances = nearest(codes, 5)
    for document, (got, far) in enumerate(zip(rows, distances, strict=True)):
        all_distances = hamming(codes[document : document + 1], codes)[0]
        order = [i for i in np.argsort(all_distances, kind="stable") if i != document][:5]
        assert got.tolist() == order
        assert far.tolist() == all_distances[order].tolist()


def test_pairs_are_two_different_neighbours_the_nearer_first() -> None:
    neighbours = np.arange(40).reshape(8, 5)
    distances = np.random.default_rng(1).integers(0, 3, (8, 5)).astype(np.int32)
    for seed in range(50):
        nearer, farther = draw_pairs(neighbours, distances, np.random.default_rng(seed))
        for document in range(8):
            one, other = nearer[document] - 5 * document, farther[document] - 5 * document
            assert one != other
            assert distances[document, one] <= distances[document, other]


def test_hinge_by_hand() -> None:
    s = torch.tensor([[1.0, 0.0, 1.0]])
    near, far = torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0.0, 1.0, 0.0]])
    assert ranking_hinge(s, near, far).item() == 0.0  # 3 − 1 is more than the margin
    assert ranking_hinge(s, far, near).item() == 3.0  # 1 − (1 − 3)
    assert ranking_hinge(s, near, near).item() == 1.0


def test_companions_are_similar_documents(texts: list[str]) -> None:
    from boltzhash.text.tfidf import TfIdf

    matrix = TfIdf().fit_transform(texts)
    nearer, farther = weak_triplets(matrix)(np.random.default_rng(0))
    documents = np.arange(len(texts))
    for companion in (nearer, farther):
        assert set(companion) <= set(documents)
        assert (companion != documents).all()
    assert (nearer != farther).all()
    same_topic = np.kron(np.eye(3), np.ones((30, 30)))
    similar = np.asarray((matrix @ matrix[nearer].T).diagonal()).ravel()
    others = (matrix @ matrix.T).toarray()[same_topic == 0]
    assert similar.mean() > 3 * others.mean()
