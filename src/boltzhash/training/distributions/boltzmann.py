"""The correlated posterior: a Boltzmann machine over the bits of a code (section 3).

b(s) = exp(½ sᵀΣs + μᵀs) / Z with Σ = D + UUᵀ or LLᵀ. Sampling b itself needs 2^m terms or a Markov
chain. Training therefore samples what the paper samples, s ~ Bernoulli(σ(r)) with r ~ N(μ, Σ): the
*shortcut*, a logistic-normal Bernoulli distribution. What enumerates says so in its name or docstring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import softplus

from boltzhash.training.distributions.bernoulli import Bernoulli, enumerate_codes
from boltzhash.training.draws import fill_normal


class Covariance(Protocol):
    """Σ, as far as the model needs it: never a matrix unless asked for."""

    def draws(self, location: Tensor, n: int, generator: torch.Generator | None) -> Tensor:
        """n draws of N(location, Σ), stacked in front."""
        ...

    def quadratic(self, s: Tensor) -> Tensor:
        """sᵀΣs."""
        ...

    def diagonal_entries(self) -> Tensor:
        """Σ_ii."""
        ...

    def dense(self) -> Tensor:
        """Σ as a matrix."""
        ...


@dataclass(frozen=True)
class LowRankCovariance:
    """Σ = D + UUᵀ (eq. 25): m + mv numbers per document instead of m².

    ``deviation`` is D^½ with shape (..., m): kept as a root, because the gradient of a root at a
    variance that underflows is not a number. ``factor`` is U with shape (..., m, v), any v ≥ 0.
    """

    deviation: Tensor
    factor: Tensor

    def draws(self, location: Tensor, n: int, generator: torch.Generator | None) -> Tensor:
        """μ + D^½ ε₁ + U ε₂ (eq. 26)."""
        *batch, m, v = self.factor.shape

        def epsilon(size: int) -> Tensor:
            """All draws of a document side by side, so that U is applied by one product."""
            empty = self.factor.new_empty((*batch, n, size), requires_grad=False)
            return fill_normal(empty, generator)

        around = self.deviation.unsqueeze(-2) * epsilon(m)
        if v > 0:
            around = around + epsilon(v) @ self.factor.mT
        return location + around.movedim(-2, 0)

    def quadratic(self, s: Tensor) -> Tensor:
        """Σ_i D_i s_i² + ‖Uᵀs‖², O(mv)."""
        projected = (s.unsqueeze(-2) @ self.factor).squeeze(-2)
        return (self.deviation * s).square().sum(-1) + projected.square().sum(-1)

    def diagonal_entries(self) -> Tensor:
        return self.deviation.square() + self.factor.square().sum(-1)

    def dense(self) -> Tensor:
        return torch.diag_embed(self.deviation.square()) + self.factor @ self.factor.mT


@dataclass(frozen=True)
class CholeskyCovariance:
    """Σ = LLᵀ with L = L(x) lower triangular, shape (..., m, m) (below eq. 17)."""

    cholesky: Tensor

    def draws(self, location: Tensor, n: int, generator: torch.Generator | None) -> Tensor:
        """μ + L ε (eq. 17)."""
        like = self.cholesky[..., 0, :]
        epsilon = torch.randn(
            (n, *like.shape), generator=generator, dtype=like.dtype, device=like.device
        )
        return location + (self.cholesky @ epsilon.unsqueeze(-1)).squeeze(-1)

    def quadratic(self, s: Tensor) -> Tensor:
        """‖Lᵀs‖²."""
        return (s.unsqueeze(-2) @ self.cholesky).squeeze(-2).square().sum(-1)

    def diagonal_entries(self) -> Tensor:
        return self.cholesky.square().sum(-1)

    def dense(self) -> Tensor:
        return self.cholesky @ self.cholesky.mT


@dataclass(frozen=True)
class Boltzmann:
    """b(s) ∝ exp(½ sᵀΣs + μᵀs) over s ∈ {0, 1}^m (eq. 9).

    Parameters
    ----------
    location : Tensor of shape (..., n_bits)
        μ. Not the mean of s.
    covariance : Covariance
        Σ, positive semi-definite by construction.

    Examples
    --------
    Two bits, coupled so that they like to be on together:

    >>> covariance = LowRankCovariance(torch.zeros(2), torch.ones(2, 1))
    >>> b = Boltzmann(torch.tensor([-1.0, -1.0]), covariance)
    >>> [round(p, 3) for p in b.log_prob(b.enumerate_support()).exp().tolist()]
    [0.311, 0.189, 0.189, 0.311]
    """

    location: Tensor
    covariance: Covariance

    def log_weight(self, s: Tensor) -> Tensor:
        """−E(s) = ½ sᵀΣs + μᵀs, the logarithm of b(s) up to the constant log Z (eq. 11)."""
        return 0.5 * self.covariance.quadratic(s) + (self.location * s).sum(-1)

    def sample_logits(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """r^(1..n) ~ N(μ, Σ), shape (n, ..., n_bits): the shortcut's logits (eqs. 15, 17, 26)."""
        return self.covariance.draws(self.location, n, generator)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One code from the shortcut: r ~ N(μ, Σ), then s ~ Bernoulli(σ(r)) (eq. 18)."""
        return Bernoulli(self.sample_logits(1, generator).squeeze(0)).sample(generator)

    def conditional_logits(self, s: Tensor) -> Tensor:
        """logit b(s_i = 1 | s_-i) = μ_i + ½ Σ_ii + Σ_{j≠i} Σ_ij s_j."""
        sigma = self.covariance.dense()
        diagonal = self.covariance.diagonal_entries()
        neighbours = (sigma @ s.unsqueeze(-1)).squeeze(-1) - diagonal * s
        return self.location + 0.5 * diagonal + neighbours

    def log_normalizer(self) -> Tensor:
        """log Z by enumeration: for small m, for checks, never for training."""
        codes = self.enumerate_support()
        return torch.stack([self.log_weight(s) for s in codes]).logsumexp(0)

    def log_prob(self, s: Tensor) -> Tensor:
        """log b(s), exact, with log Z by enumeration."""
        return self.log_weight(s) - self.log_normalizer()

    @property
    def mean(self) -> Tensor:
        """E_b[s], exact, by enumeration."""
        codes = self.enumerate_support()
        weights = torch.stack([self.log_weight(s) for s in codes]).softmax(0)
        return torch.einsum("c...,cm->...m", weights, codes)

    def sample_logits_exact(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """r ~ p(r) = Σ_s b(s) N(r; Σs + μ, Σ), Proposition 1's own, by enumerating s.

        For one distribution (no batch). Then s ~ Bernoulli(σ(r)) has exactly the law b.
        """
        codes = self.enumerate_support()
        probabilities = self.log_prob(codes).exp()
        chosen = torch.multinomial(probabilities, n, replacement=True, generator=generator)
        means = codes @ self.covariance.dense() + self.location
        return self.covariance.draws(means[chosen], n, generator)

    def enumerate_support(self) -> Tensor:
        return enumerate_codes(self.location.shape[-1]).to(self.location)


def low_rank_boltzmann(
    location: Tensor, deviation: Tensor, couplings: Tensor | None = None
) -> Boltzmann:
    """Σ = D + UUᵀ from a network's outputs: D^½ = softplus, U = tanh / v as in the authors' code.

    Parameters
    ----------
    location, deviation : Tensors of shape (n, n_bits)
    couplings : Tensor of shape (n, n_bits · v), optional
        None for v = 0, independent bits.
    """
    if couplings is None:
        factor = location.new_zeros(*location.shape, 0)
    else:
        factor = couplings.tanh().view(*location.shape, -1)
        factor = factor / factor.shape[-1]
    return Boltzmann(location, LowRankCovariance(softplus(deviation), factor))


def cholesky_boltzmann(location: Tensor, deviation: Tensor, couplings: Tensor) -> Boltzmann:
    """Σ = LLᵀ from a network's outputs: the diagonal of L = softplus, what is below it = tanh / m.

    Parameters
    ----------
    location, deviation : Tensors of shape (n, m)
    couplings : Tensor of shape (n, m (m - 1) / 2)
        L below its diagonal, row by row.
    """
    m = location.shape[-1]
    rows, columns = torch.tril_indices(m, m, -1, device=location.device)
    cholesky = torch.diag_embed(softplus(deviation))
    cholesky[:, rows, columns] = couplings.tanh() / m
    return Boltzmann(location, CholeskyCovariance(cholesky))
