"""h_k(s), the k-component mixture that cancels log Z (eq. 21)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from boltzhash.training.distributions.bernoulli import Bernoulli, enumerate_codes


@dataclass(frozen=True)
class BernoulliMixture:
    """h_k(s) = 1/k Σ_j p(s | r^(j)), equal weights, components on the first dimension.

    Parameters
    ----------
    logits : Tensor of shape (k, ..., n_bits)
        One r^(j) per component; the dimensions between are the batch.

    Examples
    --------
    >>> one = BernoulliMixture(torch.zeros(1, 3))
    >>> round(one.log_prob(torch.ones(3)).exp().item(), 4)
    0.125
    """

    logits: Tensor

    @property
    def n_components(self) -> int:
        return self.logits.shape[0]

    @property
    def mean(self) -> Tensor:
        return self.logits.sigmoid().mean(0)

    def log_prob(self, s: Tensor) -> Tensor:
        """log h_k(s) by logsumexp: the components' probabilities underflow from about 100 bits up.

        As with every distribution, s broadcasts against the batch: it may have dimensions in front.
        """
        in_front = max(0, s.dim() - self.logits.dim() + 1)
        logits = self.logits[(slice(None), *[None] * in_front)]
        return Bernoulli(logits).log_prob(s).logsumexp(0) - math.log(self.n_components)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """s̃: choose one component for each element of the batch, then draw its bits (app. A.3)."""
        return Bernoulli(self.choose(generator)).sample(generator)

    def choose(self, generator: torch.Generator | None = None) -> Tensor:
        """The logits r^(c) of one component for each element of the batch."""
        batch = self.logits.shape[1:-1]
        component = torch.randint(
            self.n_components, batch, generator=generator, device=self.logits.device
        )
        index = component.unsqueeze(-1).unsqueeze(0).expand(1, *self.logits.shape[1:])
        return self.logits.gather(0, index).squeeze(0)

    def enumerate_support(self) -> Tensor:
        return enumerate_codes(self.logits.shape[-1]).to(self.logits)
