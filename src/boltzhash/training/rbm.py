"""Restricted Boltzmann machines with binary or word-count visible units, each formula a function.

Both kinds have the energy E(v, h) = −vᵀW h − bᵀv − cᵀh and so the same free energy and the same
p(h | v); they differ in what v may be. Binary: v in {0, 1}ⁿ. Words: v counts the words of a document
of N words, so p(v | h) is multinomial. That is the "constrained Poisson" model of
Salakhutdinov and Hinton given its total: independent Poisson counts with the sum N are multinomial.

v and its reconstructions have shape (n, n_visible), h (n, n_hidden), totals and likelihoods (n,).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from boltzhash.training.networks import Linear, SparseLinear
from boltzhash.training.rows import Rows
from boltzhash.training.words_gradient import weighted_sums

_LEFT_TO_ONE_THREAD = 32_768  # elements: at::internal::GRAIN_SIZE


class RBM(NamedTuple):
    """The parameters of one machine, or a gradient with respect to them."""

    weight: Tensor  # W (n_visible, n_hidden)
    visible_bias: Tensor  # b (n_visible,)
    hidden_bias: Tensor  # c (n_hidden,)


Visible = Rows


def start_rbm(visible_bias: Tensor, n_hidden: int, generator: torch.Generator) -> RBM:
    """Weights from N(0, .01²), no hidden biases: where contrastive divergence starts."""
    weight = torch.empty(len(visible_bias), n_hidden).normal_(0, 0.01, generator=generator)
    device = visible_bias.device
    return RBM(weight.to(device), visible_bias, torch.zeros(n_hidden, device=device))


def free_energy(v: Visible, rbm: RBM) -> Tensor:
    """F(v) = −log Σ_h e^{−E(v, h)} = −bᵀv − Σ_j log(1 + e^{c_j + (vW)_j}), one per row.

    p(v) is proportional to e^{−F(v)}, for words among all sequences of N words; counts stand for
    N! / Π v_i! sequences.
    """
    return -_product(v, rbm.visible_bias.unsqueeze(-1)).squeeze(-1) - softplus(
        hidden_logits(v, rbm)
    ).sum(-1)


def hidden_logits(v: Visible, rbm: RBM) -> Tensor:
    """c + vW, the logits of p(h_j = 1 | v)."""
    return _product(v, rbm.weight) + rbm.hidden_bias


def hidden_probabilities(v: Visible, rbm: RBM) -> Tensor:
    """p(h_j = 1 | v), independent of each other."""
    return hidden_logits(v, rbm).sigmoid()


def visible_logits(h: Tensor, rbm: RBM) -> Tensor:
    """b + Wh: the logits of p(v_i = 1 | h), or of the words of p(v | h)."""
    return torch.addmm(rbm.visible_bias, h, rbm.weight.T)


def binary_mean(logits: Tensor) -> Tensor:
    """E(v | h) of binary units."""
    return logits.sigmoid()


def word_mean(logits: Tensor, totals: Tensor) -> Tensor:
    """E(v | h) = N softmax(b + Wh): the mean of the multinomial and of the constrained Poisson alike."""
    return totals.unsqueeze(-1) * logits.softmax(-1)


def sample_bits(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    u = torch.empty_like(probabilities).uniform_(generator=generator)
    return (u < probabilities).to(probabilities)


def statistics(v: Visible, rbm: RBM) -> RBM:
    """⟨v p(h | v)ᵀ⟩, ⟨v⟩ and ⟨p(h | v)⟩ over the rows: −∂F/∂θ on average, one phase of learning."""
    hidden = hidden_probabilities(v, rbm)
    shares = hidden / hidden.shape[0]
    if isinstance(v, Tensor):
        return RBM(v.T @ shares, v.mean(0), hidden.mean(0))
    products = v.values.unsqueeze(-1) * shares[v.row_numbers()]
    visible = torch.zeros_like(rbm.visible_bias).index_add_(0, v.indices, v.values)
    return RBM(
        torch.zeros_like(rbm.weight).index_add_(0, v.indices, products),
        visible / hidden.shape[0],
        hidden.mean(0),
    )


class Contrast(NamedTuple):
    """What contrastive divergence gives: a direction that goes up, and the last reconstruction."""

    gradient: RBM
    visible_logits: Tensor


def contrastive_divergence(
    v: Visible,
    rbm: RBM,
    mean: Callable[[Tensor], Tensor],
    generator: torch.Generator,
    steps: int = 1,
) -> Contrast:
    """CD-k: the statistics of the data less those after k steps of Gibbs sampling from it.

    The exact gradient of log p(v) has the model's own statistics in place of the latter. The hidden
    units that drive a reconstruction are sampled; the reconstruction is the ``mean`` of v given
    them, since tf-idf is not a whole number of words and a mean varies less than a sample.
    """
    positive = statistics(v, rbm)
    for _ in range(steps):
        logits = visible_logits(sample_bits(hidden_probabilities(v, rbm), generator), rbm)
        v = mean(logits)
    negative = statistics(v, rbm)
    gradient = RBM(*(p.sub_(n) for p, n in zip(positive, negative, strict=True)))
    return Contrast(gradient, logits)


def binary_log_likelihood(logits: Tensor, v: Tensor) -> Tensor:
    """log p(v | h) of binary units, or the cross entropy with v if that is a probability."""
    return -binary_cross_entropy_with_logits(logits, v, reduction="none").sum(-1)


class Unrolled(nn.Module):
    """A stack of machines as a deep autoencoder: W₁ W₂ … code … W₂ᵀ W₁ᵀ, no longer tied."""

    def __init__(self, stack: list[RBM]) -> None:
        super().__init__()
        self.encoder = nn.ModuleList(
            _layer(Linear if number else SparseLinear, rbm.weight, rbm.hidden_bias)
            for number, rbm in enumerate(stack)
        )
        self.decoder = nn.ModuleList(
            _layer(Linear, rbm.weight.T.contiguous(), rbm.visible_bias) for rbm in reversed(stack)
        )

    def code_logits(self, counts: Rows) -> Tensor:
        """The input of the code units."""
        return _sigmoid_between(self.encoder, counts)

    def word_logits(self, code: Tensor) -> Tensor:
        return _sigmoid_between(self.decoder, code)


def _sigmoid_between(layers: nn.ModuleList, x: Visible) -> Tensor:
    logits: Tensor = layers[0](x)
    for layer in layers[1:]:
        logits = layer(_sigmoid(logits))
    return logits


def _sigmoid(logits: Tensor) -> Tensor:
    """Of a few rows at a time, which torch leaves to one thread: see :mod:`.step_threads`.

    Two threads that share all of them compute those at the end of a half with another rounding.
    """
    if logits.device.type != "cpu":
        return logits.sigmoid()
    at_a_time = max(1, _LEFT_TO_ONE_THREAD // logits.shape[-1])
    return torch.cat([rows.sigmoid() for rows in torch.split(logits, at_a_time)])


def _layer(kind: type[Linear], weight: Tensor, bias: Tensor) -> Linear:
    layer = kind(weight.shape[0], weight.shape[1], torch.Generator())
    layer.weight, layer.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())
    return layer


def _product(v: Visible, weight: Tensor) -> Tensor:
    """vW. Sparse rows read only the weights of the words that occur."""
    if isinstance(v, Tensor):
        return v @ weight
    return weighted_sums(weight, *v)
