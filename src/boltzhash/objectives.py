"""The terms of the training objective, each a pure function named after what it is.

All are per document, in nats, and to be maximised unless they are called a divergence.
"""

from __future__ import annotations

import torch
from torch import Tensor

from boltzhash.distributions import Bernoulli, BernoulliMixture, Boltzmann
from boltzhash.networks import SparseRows


def word_log_likelihood(word_logits: Tensor, target: SparseRows) -> Tensor:
    """log p(x | s) = Σ_w t_w log softmax(sᵀE + b)_w (eq. 2), t_w how often or how much w counts.

    On a CPU only the words that occur are gathered; on a GPU the product is dense, because scattered
    sums there depend on the order in which threads finish.
    """
    log_normalizer = word_logits.logsumexp(-1)
    if word_logits.is_cuda:
        dense = target.dense(word_logits.shape[-1])
        return (dense * word_logits).sum(-1) - dense.sum(-1) * log_normalizer
    rows = target.row_numbers()
    zeros = torch.zeros_like(log_normalizer)
    seen = zeros.index_add(0, rows, target.values * word_logits[rows, target.indices])
    weight = zeros.index_add(0, rows, target.values)
    return seen - weight * log_normalizer


def regulariser_as_printed(
    posterior: Boltzmann, mixture: BernoulliMixture, prior: Bernoulli, s: Tensor, s_tilde: Tensor
) -> Tensor:
    """log p(s) + E(s) − log h_k(s̃) − E(s̃): what the bound adds to log p(x | s) (eq. 24).

    s is drawn apart; s̃ comes from one of the components of h_k.
    """
    return (
        prior.log_prob(s)
        - posterior.log_weight(s)
        - mixture.log_prob(s_tilde)
        + posterior.log_weight(s_tilde)
    )


def regulariser_rearranged(mixture: BernoulliMixture, prior: Bernoulli, s_tilde: Tensor) -> Tensor:
    """log p(s̃) − log h_k(s̃): a one-sample −KL(h_k ‖ p).

    s and s̃ have the same law, so E log p(s) = E log p(s̃) and the two energies of the printed form
    cancel in expectation, in value and in (straight-through) gradient; what is left varies less.
    """
    return prior.log_prob(s_tilde) - mixture.log_prob(s_tilde)
