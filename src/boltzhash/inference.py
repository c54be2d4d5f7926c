"""The one inference path: NumPy and SciPy, float64, no torch.

float32 products round differently for another batch size and flip bits whose mean is near zero;
in float64 the code of a text does not depend on the batch it came in or on the BLAS of the day.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

Floats = NDArray[np.float64]
Weights = Mapping[str, NDArray[np.floating]]


class Posterior(NamedTuple):
    """μ and Σ = D + UUᵀ of each document: what the inference network says of it.

    ``location`` is μ (n, m), ``diagonal`` D (n, m), ``factor`` U (n, m, v). With a full covariance
    D is 0 and U is the Cholesky factor L.
    """

    location: Floats
    diagonal: Floats
    factor: Floats

    def variances(self) -> Floats:
        """Σ_ii."""
        return np.asarray(self.diagonal + np.square(self.factor).sum(axis=-1))

    def covariance(self) -> Floats:
        """Σ as matrices (n, m, m)."""
        correlated = self.factor @ self.factor.transpose(0, 2, 1)
        return correlated + self.diagonal[:, :, None] * np.eye(self.diagonal.shape[1])


def hidden_layers(x: sparse.csr_matrix, weights: Weights) -> Floats:
    """The two ReLU layers of the inference network."""
    h = np.maximum(x @ weights["hidden1.weight"] + weights["hidden1.bias"], 0)
    return np.asarray(np.maximum(h @ weights["hidden2.weight"] + weights["hidden2.bias"], 0))


def head(hidden: Floats, weights: Weights, name: str) -> Floats:
    """One parameter of the posterior, linear in the last hidden layer."""
    return hidden @ weights[f"heads.{name}.weight"] + weights[f"heads.{name}.bias"]


def logistic_normal_mean(mean: Floats, variance: Floats, nodes: int = 48) -> Floats:
    """E σ(μ + √v ε), ε ~ N(0, 1), by Gauss–Hermite quadrature.

    >>> logistic_normal_mean(np.array([0.0]), np.array([4.0])).round(6)
    array([0.5])
    """
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    deviation = np.sqrt(variance)
    total = np.zeros_like(mean)
    for node, weight in zip(x, w / w.sum(), strict=True):
        total += weight * expit(mean + deviation * node)
    return total
