"""Learned mixture priors over codes or latents: documents come in groups (Dong et al., 2019).

p(c) = π_c and p(s | c) independent, Bernoulli (BMSH) or Gaussian (GMSH). For a posterior that factorises
as q(s | x) q(c | x) the divergence has a closed form; for one that can only be sampled, ``log_prob``
is the marginal log Σ_c π_c p(s | c).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from boltzhash.training.distributions.bernoulli import Bernoulli
from boltzhash.training.distributions.gaussian import Gaussian


class MixturePrior(nn.Module):
    """Weights π and the divergence from q(s | x) q(c | x), whatever the components are."""

    def __init__(self, n_components: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(n_components))

    def components(self) -> Bernoulli | Gaussian:
        """p(s | c), with c on the second last dimension."""
        raise TypeError("a mixture prior needs components")

    def log_prob(self, s: Tensor) -> Tensor:
        """log Σ_c π_c p(s | c)."""
        joint = self.weights.log_softmax(-1) + self.components().log_prob(s.unsqueeze(-2))
        return joint.logsumexp(-1)

    def kl_divergence(self, divergences: Tensor, group_logits: Tensor) -> Tensor:
        """KL(q(s | x) q(c | x) ‖ p(s, c)) = KL(q(c | x) ‖ π) + Σ_c q(c | x) KL(q(s | x) ‖ p(s | c)).

        ``divergences`` are the inner ones, one column per component; ``group_logits`` those of q(c | x).
        """
        log_q = group_logits.log_softmax(-1)
        return (log_q.exp() * (log_q - self.weights.log_softmax(-1) + divergences)).sum(-1)


class BernoulliMixturePrior(MixturePrior):
    """p(s | c) = Π_i Bernoulli(s_i; σ(γ_ci))."""

    def __init__(self, n_components: int, n_bits: int, generator: torch.Generator) -> None:
        super().__init__(n_components)
        self.logits = nn.Parameter(torch.empty(n_components, n_bits).normal_(generator=generator))

    def components(self) -> Bernoulli:
        return Bernoulli(self.logits)

    def divergences(self, posterior: Bernoulli) -> Tensor:
        """KL(q(s | x) ‖ p(s | c)) for every c."""
        return Bernoulli(posterior.logits.unsqueeze(-2)).kl_divergence(self.components())


class GaussianMixturePrior(MixturePrior):
    """p(z | c) = N(z; m_c, diag(σ_c²))."""

    def __init__(self, n_components: int, n_bits: int, generator: torch.Generator) -> None:
        super().__init__(n_components)
        shape = (n_components, n_bits)
        # Near each other: from N(0, 1) the component nearest to 0 is many nats cheaper than the others
        # for every document, takes them all, and the prior never becomes a mixture.
        start = torch.empty(shape).normal_(0, 0.1, generator=generator)
        self.location = nn.Parameter(start)
        self.raw_deviation = nn.Parameter(torch.full(shape, 0.5413))  # softplus of it is 1

    def components(self) -> Gaussian:
        return Gaussian(self.location, softplus(self.raw_deviation))

    def divergences(self, posterior: Gaussian) -> Tensor:
        """KL(q(z | x) ‖ p(z | c)) for every c."""
        one = Gaussian(posterior.location.unsqueeze(-2), posterior.deviation.unsqueeze(-2))
        return one.kl_divergence(self.components())
