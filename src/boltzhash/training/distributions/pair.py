"""Two correlated Gaussian latents: the posterior and the prior of SNUH along an edge of its graph."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from boltzhash.training.distributions.gaussian import Gaussian


@dataclass(frozen=True)
class GaussianPair:
    """N([μ_i; μ_j], [[σ_i², γ σ_i σ_j], [γ σ_i σ_j, σ_j²]]), for each bit by itself.

    SNUH's q(z_i, z_j | x_i, x_j) of two documents that an edge connects, and, with means 0, deviations 1
    and γ = λ, its prior p(z_i, z_j).

    ``fisher`` is artanh γ, Fisher's transform of the correlation: it may be any number, and the
    logarithm of 1 − γ² is as exact for correlations near 1 as for others.

    Examples
    --------
    >>> standard = Gaussian(torch.zeros(1), torch.ones(1))
    >>> half = torch.tensor([0.5]).atanh()
    >>> GaussianPair(standard, standard, half).mutual_information()  # −½ log(1 − ½²)
    tensor(0.1438)
    """

    one: Gaussian
    other: Gaussian
    fisher: Tensor

    @property
    def correlation(self) -> Tensor:
        return self.fisher.tanh()

    def sample(self, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """z_i = μ_i + σ_i ε, z_j = μ_j + σ_j (γ ε + √(1 − γ²) ε′)."""
        epsilon = torch.empty_like(self.one.location).normal_(generator=generator)
        further = torch.empty_like(self.one.location).normal_(generator=generator)
        mixed = self.correlation * epsilon + further / self.fisher.cosh()
        first = self.one.location + self.one.deviation * epsilon
        return first, self.other.location + self.other.deviation * mixed

    def log_prob(self, first: Tensor, second: Tensor) -> Tensor:
        a = (first - self.one.location) / self.one.deviation
        b = (second - self.other.location) / self.other.deviation
        squares = a.square() + b.square() - 2 * self.correlation * a * b
        deviations = self.one.deviation.log() + self.other.deviation.log()
        each = -0.5 * squares * self.fisher.cosh().square() - deviations - math.log(2 * math.pi)
        return each.sum(-1) + self.mutual_information()

    def mutual_information(self) -> Tensor:
        """KL(q(z_i, z_j) ‖ q(z_i) q(z_j)) = −½ Σ log(1 − γ²) = Σ log cosh artanh γ."""
        return log_cosh(self.fisher).sum(-1)


def log_cosh(x: Tensor) -> Tensor:
    """log cosh x, also where cosh x is too large for a float.

    >>> log_cosh(torch.tensor([0.0, 1000.0]))
    tensor([  0.0000, 999.3068])
    """
    size = x.abs()
    return size + softplus(-2 * size) - math.log(2)


def edge_divergence(pair: GaussianPair, correlation: float) -> Tensor:
    """KL(q_ij ‖ p_ij) − KL(q_i ‖ p_i) − KL(q_j ‖ p_j): what an edge adds to the KL of a tree.

    SNUH's bound on a tree, whose densities are ∏ q_i ∏ q_ij / (q_i q_j) over documents and edges. The
    prior p_ij has zero means, unit variances and λ, the given correlation, on every bit; its margins p_i
    and p_j are N(0, I). Of the three divergences the entropies of z_i and z_j cancel, which leaves

        Σ ½ (E z_i² + E z_j² − 2 λ E z_i z_j) / (1 − λ²) − ½ (E z_i² + E z_j²)
          − ½ log(1 − γ²) + ½ log(1 − λ²)

    The first two terms are λ / (1 − λ²) times λ (E z_i² + E z_j²) / 2 − E z_i z_j.

    >>> standard = Gaussian(torch.zeros(1), torch.ones(1))
    >>> edge_divergence(GaussianPair(standard, standard, torch.zeros(1)), 0.6)  # ½·.36/.64 + ½ log .64
    tensor(0.3394)
    """
    one, other = pair.one, pair.other
    squares = sum_of_squares(one) + sum_of_squares(other)
    spread = pair.correlation * one.deviation * other.deviation
    product = one.location * other.location + spread
    tied = (correlation * squares / 2 - product) * (correlation / (1 - correlation**2))
    constant = 0.5 * math.log1p(-(correlation**2))
    return (tied + log_cosh(pair.fisher) + constant).sum(-1)


def sum_of_squares(gaussian: Gaussian) -> Tensor:
    """E z² = μ² + σ²."""
    return gaussian.location.square() + gaussian.deviation.square()
