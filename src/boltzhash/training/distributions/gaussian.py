"""Independent Gaussian latents: the posterior of VDSH and GMSH."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from boltzhash.training.draws import fill_normal


@dataclass(frozen=True)
class Gaussian:
    """N(location, diag(deviation²)) (the paper's eq. 4).

    Examples
    --------
    >>> standard = Gaussian(torch.zeros(2), torch.ones(2))
    >>> round(standard.kl_divergence(Gaussian(torch.ones(2), torch.ones(2))).item(), 4)
    1.0
    """

    location: Tensor
    deviation: Tensor

    @classmethod
    def from_outputs(cls, location: Tensor, raw_deviation: Tensor) -> Gaussian:
        """From what a network says about each document, (n, n_bits) each: σ = softplus(raw), never 0."""
        return cls(location, softplus(raw_deviation) + 1e-6)

    @property
    def mean(self) -> Tensor:
        return self.location

    def log_prob(self, z: Tensor) -> Tensor:
        scaled = (z - self.location) / self.deviation
        return (-0.5 * scaled.square() - self.deviation.log() - 0.5 * math.log(2 * math.pi)).sum(-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """z = μ + σ ε (eq. 6)."""
        epsilon = fill_normal(torch.empty_like(self.location, requires_grad=False), generator)
        return self.location + self.deviation * epsilon

    def entropy(self) -> Tensor:
        return (self.deviation.log() + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)

    def kl_divergence(self, prior: Gaussian) -> Tensor:
        """KL(self ‖ prior) in closed form."""
        ratio = (self.deviation / prior.deviation).square()
        moved = ((self.location - prior.location) / prior.deviation).square()
        return 0.5 * (ratio + moved - 1 - ratio.log()).sum(-1)
