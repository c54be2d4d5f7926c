"""The terms of the training objective, each a pure function named after what it is.

All are per document, in nats, and to be maximised unless they are called a divergence.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from boltzhash.distributions import BernoulliMixture, Boltzmann
from boltzhash.networks import Rows, row_sums


def word_log_likelihood(word_logits: Tensor, target: Rows) -> Tensor:
    """log p(x | s) = Σ_w t_w log softmax(sᵀE + b)_w (eq. 2), t_w how often or how much w counts.

    Of a sparse target only the words that occur are gathered. On a GPU targets are dense: scattered
    sums there depend on the order in which threads finish.
    """
    if isinstance(target, Tensor):
        return (target * word_logits.log_softmax(-1)).sum(-1)
    log_normalizer = word_logits.logsumexp(-1)
    rows = target.row_numbers()
    found = target.values * word_logits[rows, target.indices]
    seen = torch.zeros_like(log_normalizer).index_add(0, rows, found)
    return seen - row_sums(target) * log_normalizer


class Prior(Protocol):
    """p(s), of which the bound needs only this."""

    def log_prob(self, s: Tensor) -> Tensor: ...


def printed_at_s(posterior: Boltzmann, prior: Prior, s: Tensor) -> Tensor:
    """log p(s) + E(s): half of what the printed bound adds to log p(x | s); s is drawn apart."""
    return prior.log_prob(s) - posterior.log_weight(s)


def printed_at_s_tilde(posterior: Boltzmann, mixture: BernoulliMixture, s_tilde: Tensor) -> Tensor:
    """−log h_k(s̃) − E(s̃): the other half; s̃ comes from one of the components of h_k."""
    return posterior.log_weight(s_tilde) - mixture.log_prob(s_tilde)


def regulariser_as_printed(
    posterior: Boltzmann, mixture: BernoulliMixture, prior: Prior, s: Tensor, s_tilde: Tensor
) -> Tensor:
    """log p(s) + E(s) − log h_k(s̃) − E(s̃): what the bound adds to log p(x | s) (eq. 24)."""
    return printed_at_s(posterior, prior, s) + printed_at_s_tilde(posterior, mixture, s_tilde)


def ranking_hinge(s: Tensor, nearer: Tensor, farther: Tensor, margin: float = 1.0) -> Tensor:
    """max(0, margin − (‖s − farther‖² − ‖s − nearer‖²)): RBSH's pairwise loss, to be minimised.

    On codes the squares are Hamming distances; the straight-through gradient passes through them.
    """
    apart = (s - farther).square().sum(-1) - (s - nearer).square().sum(-1)
    return (margin - apart).relu()


def regulariser_rearranged(mixture: BernoulliMixture, prior: Prior, s_tilde: Tensor) -> Tensor:
    """log p(s̃) − log h_k(s̃): a one-sample −KL(h_k ‖ p).

    s and s̃ have the same law, so E log p(s) = E log p(s̃) and the two energies of the printed form
    cancel in expectation, in value and in (straight-through) gradient; what is left varies less.
    """
    return prior.log_prob(s_tilde) - mixture.log_prob(s_tilde)
