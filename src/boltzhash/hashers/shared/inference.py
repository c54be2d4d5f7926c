"""The one inference path: float64, row by row, no torch and no BLAS.

A BLAS rounds a matrix product differently for another batch size or machine, which flips bits whose
mean is near zero. Here every sum is taken in the same order whatever the batch, so a text has one code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

try:
    from boltzhash.hashers.shared import (
        _layers as _layers,  # tests and benchmarks check whether it is there
    )
except ImportError:  # no compiler when this was installed: SciPy does it
    _layers = None  # type: ignore[assignment]

Floats = NDArray[np.float64]
Weights = Mapping[str, NDArray[np.floating]]


class Posterior(NamedTuple):
    """μ and Σ = D + UUᵀ of each document: what the inference network says about it.

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


def linear(
    x: sparse.csr_matrix | Floats,
    weight: NDArray[np.floating],
    bias: NDArray[np.floating],
    *,
    rectified: bool = False,
) -> Floats:
    """x @ weight + bias in float64, each row on its own; ``rectified`` replaces negatives by 0.

    ``x`` is (n, n_inputs), ``weight`` (n_inputs, n_outputs), ``bias`` (n_outputs,). A dense ``x`` of
    (n, n_networks · n_inputs) has the columns of ``weight`` and ``bias`` divided among the networks.

    Compiled for float32 weights. SciPy's row-by-row product is its twin: the same sums in the same
    order, without the inputs that are 0.

    >>> linear(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), np.array([-1.0]))
    array([[10.]])
    """
    n = x.shape[1] // weight.shape[0]
    if n > 1:
        parts = []
        for part in zip(np.split(x, n, 1), np.split(weight, n, 1), np.split(bias, n), strict=True):
            parts.append(linear(*part, rectified=rectified))
        return np.concatenate(parts, axis=1)
    if _layers is None or weight.dtype != np.float32 or bias.dtype != np.float32:
        return _linear_in_scipy(sparse.csr_matrix(x), weight, bias, rectified)
    bias = np.ascontiguousarray(bias, np.float32)
    out = np.empty((x.shape[0], len(bias)))
    if isinstance(x, np.ndarray):
        if weight.strides[1] != weight.itemsize or weight.strides[0] < 0:  # else columns will do
            weight = np.ascontiguousarray(weight)
        _layers.dense_linear(np.ascontiguousarray(x, np.float64), weight, bias, out, rectified)
    else:
        layer = (np.ascontiguousarray(weight), bias)
        values = np.ascontiguousarray(x.data, np.float64)
        columns = np.ascontiguousarray(x.indices, np.int32)
        ends = np.ascontiguousarray(x.indptr, np.int64)
        _layers.sparse_linear(values, columns, ends, *layer, out, rectified)
    return out


def _linear_in_scipy(
    x: sparse.csr_matrix,
    weight: NDArray[np.floating],
    bias: NDArray[np.floating],
    rectified: bool,
) -> Floats:
    used, columns = np.unique(x.indices, return_inverse=True)  # widen no more than is needed
    rows = sparse.csr_matrix((x.data, columns, x.indptr), shape=(x.shape[0], len(used)))
    out = rows @ weight[used].astype(np.float64) + bias
    return np.asarray(np.maximum(out, 0) if rectified else out)


def head(hidden: sparse.csr_matrix | Floats, weights: Weights, name: str) -> Floats:
    """One parameter of the posterior, linear in the last hidden layer (n, n_networks · n_hidden).

    Without hidden layers it is linear in the documents themselves (n, n_inputs), sparse or not.
    """
    return linear(hidden, weights[f"heads.{name}.weight"], weights[f"heads.{name}.bias"])


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
