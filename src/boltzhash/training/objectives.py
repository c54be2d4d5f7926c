"""The terms of the training objective, each a pure function named after what it is.

All are per document, in nats, and to be maximised unless they are called a divergence. Codes (s, s̃,
``nearer``, ``farther``) have shape (n, n_bits), word logits and targets (n, n_words), values (n,).
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, normalize

from boltzhash.training.derivatives import (
    DecodedInBlocks,
    DecodedLogLikelihood,
    decodes_in_blocks,
)
from boltzhash.training.distributions import BernoulliMixture, Boltzmann
from boltzhash.training.gradients import straight_through
from boltzhash.training.rows import Rows, SparseRows, row_sums


def word_log_likelihood(word_logits: Tensor, target: Rows) -> Tensor:
    """log p(x | s) = Σ_w t_w log softmax(sᵀE + b)_w (eq. 2), t_w how often or how much w counts.

    For a sparse target only the words that occur are gathered. On a GPU targets are dense: scattered
    sums there depend on the order in which threads finish.
    """
    if isinstance(target, Tensor):
        return (target * word_logits.log_softmax(-1)).sum(-1)
    log_normalizer = word_logits.logsumexp(-1)
    rows = target.row_numbers()
    found = target.values * word_logits[rows, target.indices]
    seen = torch.zeros_like(log_normalizer).index_add(0, rows, found)
    return seen - row_sums(target) * log_normalizer


def decoded_log_likelihood(
    codes: Tensor, weight: Tensor, bias: Tensor, target: Rows, n_groups: int = 1
) -> Tensor:
    """:func:`word_log_likelihood` of what a linear decoder makes of codes, sᵀE + b.

    With several groups, the bits are read in that many groups, each of which describes the document by
    itself, and the value is the mean. For a sparse target, it and its derivative take few passes.

    >>> one_word = SparseRows(torch.tensor([1]), torch.tensor([2.0]), torch.tensor([0, 1]))
    >>> decoded_log_likelihood(torch.ones(1, 1), torch.zeros(1, 4), torch.zeros(4), one_word)  # 2 log ¼
    tensor([-2.7726])
    """
    if isinstance(target, SparseRows):
        in_blocks = decodes_in_blocks(codes, weight, bias, target)
        function = DecodedInBlocks if in_blocks else DecodedLogLikelihood
        value: Tensor = function.apply(codes, weight, bias, target, n_groups)  # type: ignore[no-untyped-call]
        return value
    groups = zip(codes.tensor_split(n_groups, -1), weight.tensor_split(n_groups), strict=True)
    readings = [word_log_likelihood(torch.addmm(bias, s, E), target) for s, E in groups]
    return readings[0] if n_groups == 1 else torch.stack(readings).mean(0)


def bernoulli_label_log_likelihood(label_logits: Tensor, labels: Rows) -> Tensor:
    """log p(y | s) = Σ_l log Bernoulli(y_l; σ(logit_l)), 0 of a document without labels (VDSH-S).

    ``label_logits`` are (n, n_labels); a document has the labels whose share in ``labels`` is above 0.
    Chaidaroon and Fang (2017).

    >>> bernoulli_label_log_likelihood(torch.zeros(2, 3), torch.tensor([[1.0, 0, 0], [0, 0, 0]]))
    tensor([-2.0794,  0.0000])
    """
    shares = labels if isinstance(labels, Tensor) else labels.dense(label_logits.shape[-1])
    has = shares > 0
    each = logsigmoid(torch.where(has, label_logits, -label_logits))
    return torch.where(has.any(-1), each.sum(-1), 0.0)


class Prior(Protocol):
    """p(s), of which the bound needs only this."""

    def log_prob(self, s: Tensor) -> Tensor: ...


def printed_at_s(posterior: Boltzmann, prior: Prior, s: Tensor) -> Tensor:
    """log p(s) + E(s): half of what the printed bound adds to log p(x | s); s is drawn separately."""
    return prior.log_prob(s) - posterior.log_weight(s)


def printed_at_s_tilde(posterior: Boltzmann, mixture: BernoulliMixture, s_tilde: Tensor) -> Tensor:
    """−log h_k(s̃) − E(s̃): the other half; s̃ comes from one of the components of h_k."""
    return posterior.log_weight(s_tilde) - mixture.log_prob(s_tilde)


def ranking_hinge(s: Tensor, nearer: Tensor, farther: Tensor, margin: float = 1.0) -> Tensor:
    """max(0, margin − (‖s − farther‖² − ‖s − nearer‖²)): RBSH's pairwise loss, to be minimised.

    On codes the squares are Hamming distances; the straight-through gradient passes through them.
    """
    apart = (s - farther).square().sum(-1) - (s - nearer).square().sum(-1)
    return (margin - apart).relu()


def neighbour_contrast(one: Tensor, other: Tensor, temperature: float) -> Tensor:
    """How hard it is to tell whose neighbour is whose: symmetric InfoNCE over a batch, in nats.

    ``one`` and ``other`` hold the codes of documents and of a neighbour of each, as ±1 or what stands
    for it (:func:`sign_codes`, :func:`mean_codes`). With c the cosines over the temperature, the average
    of −log softmax(c)_ii over rows and over columns: to be minimised. van den Oord, Li and Vinyals
    (2018), Representation Learning with Contrastive Predictive Coding.

    >>> codes = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    >>> neighbour_contrast(codes, codes, 0.5)  # log(1 + e^-2)
    tensor([0.1269, 0.1269])
    """
    cosines = normalize(one, dim=-1) @ normalize(other, dim=-1).T / temperature
    # A GPU takes a hundred times as long over columns as over rows.
    both = (cosines.log_softmax(-1), cosines.T.contiguous().log_softmax(-1))
    return -(both[0].diagonal() + both[1].diagonal()) / 2


def regulariser_rearranged(mixture: BernoulliMixture, prior: Prior, s_tilde: Tensor) -> Tensor:
    """log p(s̃) − log h_k(s̃): a one-sample −KL(h_k ‖ p).

    s and s̃ have the same law, so E log p(s) = E log p(s̃) and the two energies of the printed form
    cancel in expectation, in value and in (straight-through) gradient; what is left varies less.
    """
    return prior.log_prob(s_tilde) - mixture.log_prob(s_tilde)


def mean_codes(location: Tensor) -> Tensor:
    """2 E s − 1 of bits with these logits.

    >>> mean_codes(torch.tensor([0.0, 100.0]))
    tensor([0., 1.])
    """
    return 2 * location.sigmoid() - 1


def sign_codes(location: Tensor) -> Tensor:
    """The code as ±1; its gradient is that of :func:`mean_codes`.

    A search sees the bits and not how sure they are, so a loss on means, which is content when they are
    a little apart, leaves documents near the threshold on either side of it.

    >>> sign_codes(torch.tensor([-0.1, 100.0]))
    tensor([-1.,  1.])
    """
    probabilities = location.sigmoid()
    return 2 * straight_through(probabilities, torch.full_like(probabilities, 0.5)) - 1


def contrast_of_parts(one: Tensor, other: Tensor, n_parts: int, temperature: float) -> Tensor:
    """The mean :func:`neighbour_contrast` of the minibatch, summed over equal parts of the code.

    A document is told apart from all others in its minibatch.

    Parameters
    ----------
    one, other : Tensors of shape (n, n_bits)
        Codes of documents and of a neighbour of each, from -1 to 1.
    """
    pairs = zip(one.chunk(n_parts, -1), other.chunk(n_parts, -1), strict=True)
    each = [neighbour_contrast(*pair, temperature).mean() for pair in pairs]
    return sum(each[1:], each[0])


def topic_overlap(topics: Tensor) -> Tensor:
    """‖TTᵀ − I‖²: how far topic vectors (n_bits, n_dimensions) are from orthonormal (WISH).

    Ye, Manotumruksa and Yilmaz (2020).

    >>> topic_overlap(torch.tensor([[1.0, 0.0], [0.5, 0.0]]))  # 2 · ½² + ¾²
    tensor(1.0625)
    """
    products = topics @ topics.T
    return (products - torch.eye(len(topics), device=topics.device)).square().sum()
