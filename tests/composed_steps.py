"""SemanticHasher's step composed of distributions, beside the steps that are taken at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

from boltzhash import SemanticHasher
from boltzhash.training.compiled_bound import Settings
from boltzhash.training.distributions import BernoulliMixture, FairBits, low_rank_boltzmann
from boltzhash.training.distributions.boltzmann import LowRankCovariance
from boltzhash.training.gradients import straight_through
from boltzhash.training.networks import Heads
from boltzhash.training.objectives import regulariser_rearranged

NOISE = 0.3


def settings(**changes: Any) -> Settings:
    usual: dict[str, Any] = {
        "rank": 3,
        "n_components": 4,
        "n_networks": 1,
        "straight_through": 1.0,
        "contrast_weight": 1.5,
        "temperature": 0.2,
        "compares_bits": True,
    }
    return Settings(**{**usual, **changes})


def composed_codes(
    outputs: Tensor, given: Settings, drawn: Tensor, u: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Noisy codes, divergences and locations, from the numbers that are drawn for the documents.

    ``outputs`` may have rows for neighbours below those of the documents.
    """
    n, rank, k = len(drawn), given.rank, given.n_components
    bits = outputs.shape[1] // (2 + rank)
    e1, e2, for_noise = drawn.split([(1 + k) * bits, (1 + k) * rank, bits], 1)
    sizes = {"location": bits, "deviation": bits, "couplings": bits * rank}
    there = {name: size for name, size in sizes.items() if size}
    named = Heads(1, there, given.n_networks, torch.Generator()).named(outputs)
    posterior = low_rank_boltzmann(**{name: values[:n] for name, values in named.items()})
    covariance = posterior.covariance
    assert isinstance(covariance, LowRankCovariance)
    around = covariance.deviation.unsqueeze(1) * e1.view(n, 1 + k, bits)
    around = around + e2.view(n, 1 + k, rank) @ covariance.factor.mT
    r = posterior.location + around.movedim(1, 0)
    s = straight_through(r[0].sigmoid(), u[:, :bits], given.straight_through)
    s_tilde = straight_through(r[1].sigmoid(), u[:, bits:], given.straight_through)
    divergences = -regulariser_rearranged(BernoulliMixture(r[1:]), FairBits(), s_tilde)
    return s + NOISE * for_noise, divergences, named["location"]


def tfidf_of_topics() -> sparse.csr_matrix:
    """600 documents of 12 topics, 300 words."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(300, 0.05), size=12)
    counts = np.stack([rng.multinomial(40, topics[i % 12]) for i in range(600)])
    return sparse.csr_matrix(counts / np.linalg.norm(counts, axis=1, keepdims=True))


def last_terms(hasher: SemanticHasher) -> tuple[float, float]:
    """Reconstruction and KL, means of the last five epochs."""
    records = hasher.history_[-5:]
    return float(np.mean([r.reconstruction for r in records])), float(
        np.mean([r.kl for r in records])
    )


def check_steps_at_once_learn_alike(monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> None:
    """Chance differs, so the terms of the last epochs are near, not equal."""
    tfidf = tfidf_of_topics()
    steps = {"training__epochs": 20, "training__batch_size": 100, **arguments}
    at_once = SemanticHasher(32).set_params(**steps).fit(tfidf)
    monkeypatch.setattr(SemanticHasher, "_at_once", lambda *_: None)
    composed = SemanticHasher(32).set_params(**steps).fit(tfidf)
    assert at_once.fingerprint() != composed.fingerprint()
    assert last_terms(at_once) == pytest.approx(last_terms(composed), rel=0.03)
