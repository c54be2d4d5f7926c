"""What the Boltzmann posterior itself says of bits, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from boltzhash.hashers.shared.inference import Posterior
from experiments.runs import code_disagreement, evaluation


def boltzmann() -> tuple[Posterior, np.ndarray, np.ndarray]:
    """Three documents with four coupled bits; all codes, and the probability of each."""
    rng = np.random.default_rng(0)
    p = Posterior(
        rng.normal(size=(3, 4)), rng.random((3, 4)), rng.normal(scale=0.7, size=(3, 4, 2))
    )
    codes = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    exponents = 0.5 * np.einsum("ci,nij,cj->nc", codes, p.covariance(), codes)
    weights = np.exp(exponents + p.location @ codes.T)
    return p, codes, weights / weights.sum(axis=1, keepdims=True)


def test_marginals_by_gibbs_sampling_are_those_of_enumeration() -> None:
    p, codes, probabilities = boltzmann()
    many = Posterior(*(np.repeat(part, 400, axis=0) for part in p))
    sampled = code_disagreement.gibbs_marginals(many, np.random.default_rng(1))
    assert sampled.reshape(3, 400, 4).mean(axis=1) == pytest.approx(
        probabilities @ codes, abs=0.005
    )


def test_conditional_logits_are_the_log_odds_of_a_bit() -> None:
    p, codes, probabilities = boltzmann()
    place = {tuple(code): c for c, code in enumerate(codes)}
    for code in codes:
        logits = evaluation.conditional_logits(p, np.tile(code, (3, 1)))
        for i in range(4):
            on, off = code.copy(), code.copy()
            on[i], off[i] = 1, 0
            odds = probabilities[:, place[tuple(on)]] / probabilities[:, place[tuple(off)]]
            assert logits[:, i] == pytest.approx(np.log(odds))
