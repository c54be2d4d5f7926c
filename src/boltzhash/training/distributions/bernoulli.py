"""Independent bits: the prior p(s), and p(s | r), one component of the mixture h_k."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from boltzhash.training.draws import fill_uniform
from boltzhash.training.gradients import straight_through


def enumerate_codes(n_bits: int) -> Tensor:
    """All 2^n_bits codes, one per row, counting upwards with bit 0 the most significant.

    >>> enumerate_codes(2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    if n_bits > 20:
        raise ValueError(f"enumerating codes is for at most 20 bits, got {n_bits}")
    numbers = torch.arange(2**n_bits).unsqueeze(-1)
    shifts = torch.arange(n_bits - 1, -1, -1)
    return ((numbers >> shifts) & 1).to(torch.get_default_dtype())


class FairBits(nn.Module):
    """p(s) = 2^-m: the prior of NASH and CorrSH, with nothing to learn."""

    def log_prob(self, s: Tensor) -> Tensor:
        return s.new_full(s.shape[:-1], -s.shape[-1] * math.log(2))


@dataclass(frozen=True)
class Bernoulli:
    """Independent bits with s_i = 1 with probability σ(logits_i), the paper's eq. 5.

    Parameters
    ----------
    logits : Tensor of shape (..., n_bits)

    Examples
    --------
    >>> uniform = Bernoulli(torch.zeros(3))
    >>> round(uniform.log_prob(torch.ones(3)).exp().item(), 4)
    0.125
    """

    logits: Tensor

    @property
    def mean(self) -> Tensor:
        return self.logits.sigmoid()

    def log_prob(self, s: Tensor) -> Tensor:
        """log p(s) = Σ_i s_i r_i − log(1 + e^{r_i}), linear in s and so differentiable in it."""
        return (s * self.logits - softplus(self.logits)).sum(-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """s = (sign(σ(r) − u) + 1) / 2 with the straight-through gradient (eqs. 7 and 18)."""
        probabilities = self.mean
        u = fill_uniform(torch.empty_like(probabilities, requires_grad=False), generator)
        return straight_through(probabilities, u)

    def entropy(self) -> Tensor:
        """Σ_i log(1 + e^{r_i}) − σ(r_i) r_i."""
        return (softplus(self.logits) - self.mean * self.logits).sum(-1)

    def kl_divergence(self, prior: Bernoulli | FairBits) -> Tensor:
        """KL(self ‖ prior) in closed form: the regulariser of a factorised posterior."""
        return -self.entropy() - prior.log_prob(self.mean)

    def enumerate_support(self) -> Tensor:
        return enumerate_codes(self.logits.shape[-1]).to(self.logits)
