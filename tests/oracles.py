"""Random numbers, rows and laws that the oracles of training are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse, stats
from torch import Tensor

from boltzhash.training.distributions import BernoulliMixture, Boltzmann, enumerate_codes
from boltzhash.training.objectives import Prior, printed_at_s, printed_at_s_tilde
from boltzhash.training.rows import SparseRows


def normal(seed: int, *shape: int) -> Tensor:
    """Draws of N(0, 1) in float64."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def numbers(seed: int, *shape: int) -> Tensor:
    """Draws of N(0, 1) in float32."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def rows_of(matrix: Any, dtype: torch.dtype = torch.float64) -> SparseRows:
    csr = sparse.csr_matrix(np.asarray(matrix))
    indices, values, ends = map(torch.from_numpy, (csr.indices, csr.data, csr.indptr))
    return SparseRows(indices, values.to(dtype), ends)


def chi_square_p_value(samples: Tensor, probabilities: Tensor) -> float:
    """How likely counts as far from the law are; cells that expect fewer than 5 are one cell."""
    m = samples.shape[-1]
    codes = (samples.long() * 2 ** torch.arange(m - 1, -1, -1)).sum(-1)
    counts = torch.bincount(codes, minlength=2**m).double().numpy()
    expected = probabilities.numpy() * len(samples)
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 1e-6:  # a cell that cannot happen has no χ²: it must be empty
        assert counts[-1] == 0
        counts, expected = counts[:-1], expected[:-1]
    return float(stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue)


def logistic_normal_law(location: Tensor, sigma: Tensor, nodes: int = 64) -> Tensor:
    """E_{r ~ N(μ, Σ)} Π σ(±r_i) of every code: the shortcut's law, by Gauss–Hermite quadrature."""
    m = location.shape[0]
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = torch.cartesian_prod(*[torch.from_numpy(x)] * m).reshape(-1, m)
    weights = torch.cartesian_prod(*[torch.from_numpy(w / w.sum())] * m).reshape(-1, m).prod(-1)
    r = location + grid @ torch.linalg.cholesky(sigma).T
    signs = 2 * enumerate_codes(m).double() - 1
    return torch.stack([weights @ (sign * r).sigmoid().prod(-1) for sign in signs])


def regulariser_as_printed(
    posterior: Boltzmann, mixture: BernoulliMixture, prior: Prior, s: Tensor, s_tilde: Tensor
) -> Tensor:
    """log p(s) + E(s) − log h_k(s̃) − E(s̃): what the bound adds to log p(x | s) (eq. 24)."""
    return printed_at_s(posterior, prior, s) + printed_at_s_tilde(posterior, mixture, s_tilde)
