"""PairRec: its loss by enumeration, its pairs, and what they do to codes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from boltzhash import Network, Objective, PairRec
from boltzhash.codes import hamming
from boltzhash.hashers.shared.ranking import weak_neighbours
from boltzhash.training.batches import Batch, Documents
from boltzhash.training.loop import generator_for
from boltzhash.training.networks import WordImportance

QUICK: dict[str, Any] = {
    "training__epochs": 40,
    "training__batch_size": 30,
    "network__hidden_units": 32,
    "training__device": "cpu",
}


@pytest.mark.parametrize("pair_weight", [1.0, 0.4])
def test_the_loss_is_the_sum_of_both_bounds(pair_weight: float) -> None:
    """Over all 2^8 codes of both documents, against the mean over many draws of one pair."""
    n_words, n_draws, beta = 7, 20_000, 0.3
    hasher = PairRec(
        8,
        pair_weight=pair_weight,
        objective=Objective(kl_weight=(beta, beta), decoder_noise=(0.0, 0.0)),
        network=Network(hidden_units=5, dropout=0.0),
    )
    hasher._alpha, hasher.feature_scaling_ = 0.0, None
    model = hasher._build(n_words, generator_for(0, 0))
    rng = np.random.default_rng(0)
    own, neighbour, target = (torch.from_numpy(rng.random(n_words)).float() for _ in range(3))
    repeated = (row.expand(n_draws, -1).contiguous() for row in (own, target, neighbour))
    inputs, targets, beside = repeated
    batch = Batch(inputs, targets, torch.tensor(0.5), generator_for(0, 1), (beside,))
    with torch.no_grad():
        terms = hasher._step(model, batch)
        codes = torch.tensor(list(itertools.product((0.0, 1.0), repeat=8)))
        word_logits = codes @ model.decoder.weight + model.decoder.bias
        cost = -(target * word_logits.log_softmax(-1)).sum(-1)  # of each code
        bounds = []
        for row in (own, neighbour):
            logits = model.encoder(row.unsqueeze(0), generator_for(0, 2))["location"]
            p = logits.sigmoid()
            q = torch.where(codes == 1, p, 1 - p).prod(-1)
            bounds.append((q * (cost + beta * (q * 2**8).log())).sum().item())
    assert terms.loss.item() == pytest.approx(bounds[0] + pair_weight * bounds[1], abs=5e-3)


def test_pairs_are_drawn_from_the_nearest_by_the_labeller(texts: list[str]) -> None:
    hasher = PairRec(16).set_params(neighbours=5, **QUICK)
    matrix = hasher.fit(texts).tfidf(texts)
    paired = hasher._documents(Documents(matrix, matrix), matrix, seed=0)
    assert paired.companions is not None
    drawn = np.stack([paired.companions(np.random.default_rng(e))[0] for e in range(100)], 1)
    found, _ = weak_neighbours(matrix)
    for i in range(90):
        assert set(drawn[i]) == set(found[i, :5])
        assert i not in drawn[i]


def test_pairs_bring_codes_of_neighbours_together(texts: list[str]) -> None:
    settings = {**QUICK, "training__learning_rate": 0.02}
    near = weak_neighbours(PairRec(16).set_params(**QUICK).fit(texts).tfidf(texts))[0][:, :5]

    def distance(neighbours: int, seed: int) -> float:
        hasher = PairRec(16).set_params(neighbours=neighbours, random_state=seed, **settings)
        codes = hasher.fit(texts).transform(texts)
        return float(np.take_along_axis(hamming(codes, codes), near, 1).mean())

    paired, alone = (sum(distance(k, seed) for seed in range(3)) for k in (9, 0))
    assert 2 * paired < alone


@pytest.mark.parametrize("hidden_units", [0, 6])
def test_word_importance_is_part_of_the_weights(texts: list[str], hidden_units: int) -> None:
    settings = {**QUICK, "network__hidden_units": hidden_units, "training__epochs": 2}
    plain, weighed = (
        PairRec(8).set_params(word_importance=yes, **settings).fit(texts) for yes in (False, True)
    )
    assert plain.weights_.keys() == weighed.weights_.keys()
    hasher = PairRec(8).set_params(word_importance=True, **settings)
    hasher.feature_scaling_ = None
    model = hasher._build(7, generator_for(0, 0))
    importance = [part for part in model.modules() if isinstance(part, WordImportance)]
    assert len(importance) == 1
    with torch.no_grad():
        importance[0].of_words.fill_(0.0)
    assert not model.decoder.weight.any()
    assert not model.encoder.first_layer.weight.any()


def test_as_published_is_what_the_authors_code_starts_with() -> None:
    settings = PairRec.as_published(32).get_params()
    expected = {
        "neighbours": 25,
        "pair_weight": 1.0,
        "word_importance": True,
        "network__hidden_units": 1000,
        "objective__kl_weight": (0.0, 0.0),
        "training__batch_size": 40,
        "training__learning_rate": 1e-3,
        "network__dropout": 0.2,
        "objective__target": "words",
    }
    assert {name: settings[name] for name in expected} == expected
    assert PairRec.as_published(training__epochs=3).get_params()["training__epochs"] == 3
