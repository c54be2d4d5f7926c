"""What the papers of WISH, AMMI and MISH promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit

from boltzhash import AMMI, MISH, WISH
from boltzhash.codes import distinct, unpack
from boltzhash.training.networks import TopicDecoder, WordDecoder
from boltzhash.training.objectives import decoded_log_likelihood, topic_overlap
from quick_hashers import separation

QUICK: dict[str, Any] = {
    "training__epochs": 40,
    "training__batch_size": 30,
    "training__device": "cpu",
}
SMALL: dict[str, Any] = {**QUICK, "network__hidden_units": 32, "training__learning_rate": 0.02}
METHODS = {"WISH": (WISH, SMALL), "AMMI": (AMMI, QUICK), "MISH": (MISH, SMALL)}
methods = pytest.mark.parametrize(("kind", "settings"), METHODS.values(), ids=METHODS.keys())


@methods
def test_topics_are_told_apart(kind: Any, settings: dict[str, Any], texts: list[str]) -> None:
    assert separation(kind(16).set_params(**settings).fit_transform(texts)) > 2


@methods
def test_as_published_can_be_fitted(kind: Any, settings: dict[str, Any], texts: list[str]) -> None:
    assert kind.as_published(16, training__epochs=3, training__device="cpu").fit(texts).transform(
        texts
    ).shape == (
        90,
        2,
    )


def test_words_are_read_from_the_sum_of_topic_vectors() -> None:
    generator = torch.Generator().manual_seed(0)
    decoder = TopicDecoder(4, 3, 5, generator)
    code = torch.tensor([[1.0, 0.0, 1.0, 0.0]])
    target = torch.tensor([[0.0, 2.0, 0.0, 0.0, 1.0]])
    vector = decoder.topics[0] + decoder.topics[2]
    logits = vector @ decoder.words.weight + decoder.words.bias
    expected = (target * logits.log_softmax(-1)).sum(-1)
    found = decoded_log_likelihood(code, decoder.weight, decoder.bias, target)
    torch.testing.assert_close(found, expected)


def test_topic_overlap_is_0_for_orthonormal_vectors_alone() -> None:
    topics = torch.linalg.qr(torch.randn(6, 4, generator=torch.Generator().manual_seed(0))).Q.T
    assert topic_overlap(topics).item() == pytest.approx(0, abs=1e-10)
    assert topic_overlap(2 * topics).item() == pytest.approx(4 * 3**2, rel=1e-5)
    each = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.autograd.gradcheck(topic_overlap, each.requires_grad_())


def test_topic_vectors_become_orthonormal(texts: list[str]) -> None:
    """And the decoder that is kept for explanations is the product."""
    kept: list[TopicDecoder] = []

    class Watched(WISH):
        def _word_decoder(self, *arguments: Any) -> TopicDecoder:
            kept.append(super()._word_decoder(*arguments))
            return kept[-1]

    hasher = Watched(16, topic_weight=10.0).set_params(**SMALL).fit(texts)
    (decoder,) = kept
    assert topic_overlap(decoder.topics).item() < 1
    free = Watched(16, topic_weight=0.0).set_params(**SMALL).fit(texts)
    assert topic_overlap(kept[1].topics).item() > 2
    assert free.explain(3)[0].up
    product = (decoder.topics @ decoder.words.weight).detach().numpy()
    np.testing.assert_allclose(hasher.weights_["decoder.weight"], product, rtol=1e-5)
    assert not isinstance(decoder, WordDecoder)


def test_ammi_bit_probabilities_are_the_posterior(texts: list[str]) -> None:
    hasher = AMMI(16).set_params(**QUICK).fit(texts)
    rows = hasher.tfidf(texts).toarray()
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    logits = rows @ hasher.weights_["weight"] + hasher.weights_["bias"]
    probabilities = hasher.bit_probabilities(texts)
    np.testing.assert_allclose(probabilities, expit(logits), atol=1e-6)
    assert (unpack(hasher.transform(texts)) == (probabilities > 0.5)).all()


def test_an_adversary_keeps_bits_from_repeating_others(texts: list[str]) -> None:
    """One who sees bits alone (order 0) is content with balanced bits, however alike they are."""
    codes = {r: AMMI(16).set_params(order=r, **QUICK).fit(texts).transform(texts) for r in (0, 3)}
    assert distinct(codes[3]) > distinct(codes[0])


def test_a_code_becomes_certain_and_codes_vary(texts: list[str]) -> None:
    hasher = (
        AMMI(16)
        .set_params(training__learning_rate=0.05, **{**QUICK, "training__epochs": 100})
        .fit(texts)
    )
    probabilities = hasher.bit_probabilities(texts)
    assert np.minimum(probabilities, 1 - probabilities).mean() < 0.1
    assert hasher.history_[-1].reconstruction > hasher.history_[0].reconstruction


def test_entropy_keeps_codes_from_being_all_alike(texts: list[str]) -> None:
    """H(Z | X) alone is least when all documents have one code: what λ H(Z) is for."""
    without, with_it = (
        AMMI(16).set_params(entropy_weight=weight, **QUICK).fit(texts).history_[-1]
        for weight in (0.0, 2.0)
    )
    assert without.distinct_codes < with_it.distinct_codes
    assert without.bit_balance < with_it.bit_balance
