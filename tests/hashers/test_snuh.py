"""SNUH: its bound by hand, its graph, and what the graph does to codes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit

from boltzhash import SNUH, Graph, Training
from boltzhash.codes import hamming, unpack
from boltzhash.hashers.shared.neighbours import nearest_by_words
from boltzhash.training.batches import Batch, Documents
from boltzhash.training.loop import generator_for

QUICK: dict[str, Any] = {
    "training__epochs": 40,
    "training__batch_size": 30,
    "training__device": "cpu",
}


def gaussian_kl(mean: np.ndarray, covariance: np.ndarray, prior: np.ndarray) -> float:
    """KL(N(mean, covariance) ‖ N(0, prior))."""
    inverse = np.linalg.inv(prior)
    logs = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(covariance)[1]
    return float(0.5 * (np.trace(inverse @ covariance) + mean @ inverse @ mean - len(mean) + logs))


@pytest.mark.parametrize("edge_weight", [1.0, 0.5])
def test_the_divergence_of_a_batch_by_hand(edge_weight: float) -> None:
    """Means over documents and over edges, from the numbers that the linear network gives."""
    n, n_words, tied = 6, 9, 0.8
    rng = np.random.default_rng(0)
    x = rng.random((n, n_words)).astype(np.float32)
    one, other = np.array([0, 0, 1, 4, 3, 5]), np.array([1, 2, 3, 3, 2, 0])
    hasher = SNUH(8, temperature=0.5, graph=Graph(correlation=tied, edge_weight=edge_weight))
    hasher._edges_per_document, hasher._alpha = 0.7, 0.0
    model = hasher._build(n_words, generator_for(0, 0))
    inputs, first, second = (torch.from_numpy(x[rows]) for rows in (np.arange(n), one, other))
    batch = Batch(inputs, inputs, torch.tensor(0.5), generator_for(0, 1), (first, second))
    with torch.no_grad():
        terms = hasher._step(model, batch)

    wide = {name: w.detach().double().numpy() for name, w in model.encoder.arrays().items()}
    heads = {h: x @ wide[f"heads.{h}.weight"] + wide[f"heads.{h}.bias"] for h in hasher._heads()}
    mean = expit(heads["location"] / 0.5)
    deviation = np.log1p(np.exp(heads["deviation"])) + 1e-6
    of_nodes = [
        sum(gaussian_kl(mean[i, [b]], deviation[i, [b], None] ** 2, np.eye(1)) for b in range(8))
        for i in range(n)
    ]
    of_edges = []
    for i, j in zip(one, other, strict=True):
        gamma = np.tanh((heads["correlation"][i] + heads["correlation"][j]) / 2 + np.arctanh(tied))
        total = -of_nodes[i] - of_nodes[j]
        for b in range(8):
            scale = np.array([deviation[i, b], deviation[j, b]])
            related = np.array([[1, gamma[b]], [gamma[b], 1]]) * np.outer(scale, scale)
            total += gaussian_kl(mean[[i, j], b], related, np.array([[1, tied], [tied, 1]]))
        of_edges.append(total)
    expected = np.mean(of_nodes) + edge_weight * 0.7 * np.mean(of_edges)
    assert terms.kl.item() == pytest.approx(expected, rel=1e-4)
    assert (terms.bits.numpy() == (mean > 0.5)).all()


def test_bits_are_means_above_one_half(texts: list[str]) -> None:
    hasher = SNUH(16).set_params(temperature=0.3, **QUICK).fit(texts)
    means = hasher.bit_probabilities(texts)
    assert (unpack(hasher.transform(texts)) == (means > 0.5)).all()
    weights = hasher.weights_
    x = hasher._network_input(hasher.tfidf(texts)).toarray()
    logits = x @ weights["heads.location.weight"] + weights["heads.location.bias"]
    np.testing.assert_allclose(means, expit(logits / 0.3), atol=1e-6)
    assert not any(name.startswith("hidden") for name in weights)


@pytest.mark.parametrize("tree", ["stars", "spanning"])
@pytest.mark.parametrize("similarity", ["latent", "tfidf"])
def test_edges_join_neighbours_and_are_as_many_as_those_of_a_tree(
    similarity: str, tree: str, texts: list[str]
) -> None:
    hasher = SNUH(16).set_params(
        graph__neighbours=4, graph__trees=5, graph__tree=tree, graph__similarity=similarity, **QUICK
    )
    matrix = hasher.fit(texts).tfidf(texts)
    documents = Documents(matrix, matrix)
    near = hasher._nearest(documents, matrix, 4, seed=3)
    if similarity == "tfidf":
        np.testing.assert_array_equal(near, nearest_by_words(matrix, 4))
    joined = hasher._documents(documents, matrix, seed=3)
    assert joined.companions is not None
    known = {frozenset((i, int(j))) for i in range(90) for j in near[i]}
    drawn = [joined.companions(np.random.default_rng(epoch)) for epoch in range(20)]
    edges = {frozenset(edge) for ends in drawn for edge in np.stack(ends, 1).tolist()}
    assert all(len(end) == 90 for ends in drawn for end in ends)
    assert edges <= known
    assert len(edges) > 89  # of several trees: one alone has no more
    parts = 90 - 90 * hasher._edges_per_document  # of a forest, on average
    assert 5 * parts == pytest.approx(round(5 * parts))
    assert 1 <= parts <= 9 if tree == "spanning" else 18 <= parts <= 60  # stars of at most 5


def test_neighbours_get_nearer_codes_than_without_the_graph(texts: list[str]) -> None:
    with_graph, without = (
        SNUH(16)
        .set_params(
            graph__neighbours=k,
            training__learning_rate=0.02,
            objective__kl_weight=(0.1, 0.1),
            **QUICK,
        )
        .fit(texts)
        for k in (8, 0)
    )
    near = nearest_by_words(with_graph.tfidf(texts), 3)

    def distance(hasher: SNUH) -> float:
        codes = hasher.transform(texts)
        return float(np.take_along_axis(hamming(codes, codes), near, 1).mean())

    assert distance(with_graph) + 0.5 < distance(without)


def test_weights_start_within_the_range_that_is_asked_for() -> None:
    models = [SNUH(8, initial_range=r)._build(50, generator_for(0, 0)) for r in (None, 0.001)]
    for layer in ("encoder.first_layer", "decoder"):
        usual, small = (operator.attrgetter(layer)(model).weight.abs().max() for model in models)
        assert usual > 0.1
        assert 0.0009 < small <= 0.001


def test_few_documents_have_no_graph() -> None:
    hasher = SNUH(8, training=Training(epochs=200, device="cpu"))
    hasher.fit(["a star", "a planet and a moon", "bread", "butter and jam"])
    assert hasher._edges_per_document == 0


def test_as_published_is_what_the_authors_code_starts_with() -> None:
    settings = SNUH.as_published(32).get_params()
    expected = {
        "graph__neighbours": 10,
        "graph__trees": 10,
        "graph__tree": "stars",
        "graph__correlation": 0.99,
        "temperature": 0.1,
        "graph__similarity": "tfidf",
        "initial_range": 0.05,
        "objective__kl_weight": (0.1, 0.1),
        "graph__edge_weight": 0.5,
        "network__hidden_units": 0,
        "training__batch_size": 128,
        "training__epochs": 100,
        "objective__target": "words",
        "network__input_length": None,
    }
    assert {name: settings[name] for name in expected} == expected
    assert SNUH.as_published(graph__trees=3).get_params()["graph__trees"] == 3
