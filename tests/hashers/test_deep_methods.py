"""The deep methods composed from shared parts, and SemanticHasher with the parts of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer

from boltzhash import (
    BMSH,
    GMSH,
    NASH,
    RBSH,
    SNUH,
    VDSH,
    Doc2hash,
    PairRec,
    SemanticHasher,
    load,
)
from boltzhash.codes import unpack
from boltzhash.hashers.shared import settings
from boltzhash.hashers.shared.deep import DeepHasher
from boltzhash.training.gradients import ESTIMATORS
from quick_hashers import separation

QUICK: dict[str, Any] = {
    "training__epochs": 40,
    "training__batch_size": 30,
    "network__hidden_units": 32,
    "training__device": "cpu",
}
LEARNING: dict[str, Any] = {**QUICK, "training__learning_rate": 0.02}


COMPOSED = {
    "mixture prior": {"objective__prior_groups": 5},
    "ranking": {"objective__ranking": 1.0},
    "mixture prior, ranking, gumbel": {
        "objective__prior_groups": 3,
        "objective__ranking": 0.5,
        "objective__gradient": "gumbel-softmax",
    },
    **{name: {"objective__gradient": name} for name in ESTIMATORS},
}


@pytest.mark.parametrize("parts", COMPOSED.values(), ids=COMPOSED.keys())
@pytest.mark.parametrize("bound", ["rearranged", "printed"])
def test_boltzmann_posteriors_take_the_parts_of_others(
    texts: list[str], parts: Any, bound: str
) -> None:
    hasher = SemanticHasher(16).set_params(objective__bound=bound, **parts, **LEARNING).fit(texts)
    assert hasher.history_[-1].reconstruction > hasher.history_[0].reconstruction
    assert separation(hasher.transform(texts)) > 1.5


@pytest.mark.parametrize("gradient", ESTIMATORS)
def test_nash_takes_every_gradient(texts: list[str], gradient: str) -> None:
    assert (
        separation(NASH(16).set_params(gradient=gradient, **LEARNING).fit(texts).transform(texts))
        > 2
    )


def test_names_of_gradients_are_those_that_can_be_made() -> None:
    assert tuple(ESTIMATORS) == settings.ESTIMATORS


def test_arguments_that_are_passed_on_are_shown() -> None:
    for kind in (SemanticHasher, NASH, BMSH, VDSH, GMSH, Doc2hash, RBSH, PairRec, SNUH):
        assert DeepHasher.defaults().keys() <= kind.defaults().keys()
        assert kind().get_params()["training__learning_rate"] == 5e-3
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        NASH(colour="red")


def test_published_differences_are_the_defaults() -> None:
    assert Doc2hash().gradient == "gumbel-softmax"
    assert Doc2hash().get_params()["objective__decoder_noise"] == (0.0, 0.0)
    assert RBSH().get_params()["objective__decoder_noise"] == (1.0, 0.0)
    for kind in (VDSH, GMSH):
        assert kind().get_params()["objective__kl_weight"] == (1.0, 1.0)


@pytest.mark.parametrize("kind", [VDSH, GMSH])
def test_gaussian_codes_are_cut_at_the_training_medians(kind: Any, texts: list[str]) -> None:
    hasher = kind(16).set_params(**QUICK).fit(texts)
    bits = unpack(hasher.transform(texts))
    assert (bits.sum(axis=0) == len(texts) // 2).all()


def test_nash_bit_probabilities_are_the_posterior(texts: list[str]) -> None:
    hasher = NASH(16).set_params(**QUICK).fit(texts)
    probabilities = hasher.bit_probabilities(texts)
    assert (unpack(hasher.transform(texts)) == (probabilities > 0.5)).all()
    weights = hasher.weights_
    x = hasher._network_input(hasher.tfidf(texts)).toarray()
    h = np.maximum(x @ weights["hidden1.weight"] + weights["hidden1.bias"], 0)
    h = np.maximum(h @ weights["hidden2.weight"] + weights["hidden2.bias"], 0)
    logits = h @ weights["heads.location.weight"] + weights["heads.location.bias"]
    np.testing.assert_allclose(probabilities, expit(logits), atol=1e-6)


def test_a_mixture_prior_is_learned_and_saved(texts: list[str]) -> None:
    hasher = BMSH(16).set_params(n_groups=3, **LEARNING).fit(texts)
    start = BMSH(16, n_groups=3)._parts(torch.Generator().manual_seed(0))["prior"]
    learned = hasher.weights_["parts.prior.logits"]
    assert learned.shape == (3, 16)
    assert np.abs(learned).max() > 0
    assert hasher.weights_["parts.prior.weights"].shape == tuple(start.weights.shape)
    assert np.abs(hasher.weights_["parts.prior.weights"]).max() > 0.01  # they started at 0


def test_rbsh_learns_how_important_words_are(texts: list[str], tmp_path: Path) -> None:
    """The importance multiplies a word on the way in and out, is trained, and is kept in the weights."""
    hasher = RBSH(16).set_params(word_importance=True, chosen_noise=False, **LEARNING)
    assert hasher._heads() == {"location": 16}
    hasher.feature_scaling_ = None
    model = hasher._build(5, torch.Generator().manual_seed(0))
    importance = model.decoder.parametrizations.weight[0].importance.of_words
    assert model.encoder.hidden1.parametrizations.weight[0].importance.of_words is importance
    assert 0.1 <= importance.min() < importance.max() <= 1
    rows = torch.rand(3, 21, generator=torch.Generator().manual_seed(1))
    x, s = rows[:, :5], rows[:, 5:]
    plain = model.encoder.hidden1.parametrizations.weight.original
    read = (x * importance) @ plain + model.encoder.hidden1.bias
    torch.testing.assert_close(model.encoder.hidden1(x), read)
    plain = model.decoder.parametrizations.weight.original
    torch.testing.assert_close(model.decoder(s), s @ (plain * importance) + model.decoder.bias)
    (model.encoder.hidden1(x).sum() + model.decoder(s).square().sum()).backward()
    assert importance.grad is not None
    assert (importance.grad != 0).all()
    hasher.n_features_in_ = 5
    hasher._take_weights(model)
    np.testing.assert_array_equal(
        hasher.weights_["decoder.weight"], (plain * importance).detach().numpy()
    )
    trained = RBSH(16).set_params(word_importance=True, chosen_noise=False, **LEARNING).fit(texts)
    assert separation(trained.transform(texts)) > 2
    trained.save(tmp_path / "model")
    np.testing.assert_array_equal(
        load(tmp_path / "model").transform(texts), trained.transform(texts)
    )


def test_rbsh_as_published_preprocesses_texts_as_its_code_does(texts: list[str]) -> None:
    """The vocabulary is that of scikit-learn's vectorizer with the arguments of the published code."""
    documents = [*texts, "rare words here", "rare a b c"]
    hasher = RBSH.as_published(
        16, training__epochs=1, network__hidden_units=8, training__device="cpu"
    ).fit(documents)
    theirs = TfidfVectorizer(min_df=3, max_df=0.9).fit(documents)
    assert hasher.tfidf_ is not None
    assert hasher.tfidf_.words_ == sorted(theirs.vocabulary_)
    np.testing.assert_allclose(
        hasher.tfidf(documents).toarray(), theirs.transform(documents).toarray(), atol=1e-12
    )


@pytest.mark.parametrize(
    ("hasher", "settings"),
    [
        (SemanticHasher(16), {"training__epochs": 20}),
        (
            SemanticHasher(16),
            {"training__epochs": 20, "network__networks": 2, "neighbours__count": 5},
        ),
        (VDSH(16), {"training__epochs": 60, "training__learning_rate": 0.02}),
    ],
    ids=["one network", "two networks", "VDSH"],
)
def test_without_hidden_layers_the_posterior_is_linear(
    hasher: Any, settings: dict[str, Any], texts: list[str]
) -> None:
    hasher.set_params(network__hidden_units=0, training__device="cpu", **settings).fit(texts)
    weights = hasher.weights_
    assert not any(name.startswith("hidden") for name in weights)
    x = hasher._network_input(hasher.tfidf(texts)).toarray()
    location = x @ weights["heads.location.weight"] + weights["heads.location.bias"]
    location -= weights.get("medians", 0.0)
    np.testing.assert_allclose(hasher._margins(hasher.tfidf(texts)), location, atol=1e-6)
    assert separation(hasher.transform(texts)) > 1.5
