"""The NumPy path against direct numerical integration and against other batch sizes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, sparse, stats
from scipy.special import expit

from boltzhash.inference import Posterior, hidden_layers, logistic_normal_mean


@pytest.mark.parametrize("mean", [-6.0, -0.3, 0.0, 2.0])
@pytest.mark.parametrize("deviation", [0.0, 0.1, 1.0, 3.0])
def test_logistic_normal_mean_is_the_integral(mean: float, deviation: float) -> None:
    expected, _ = integrate.quad(
        lambda e: expit(mean + deviation * e) * stats.norm.pdf(e), -12, 12, epsabs=1e-12
    )
    got = logistic_normal_mean(np.array([mean]), np.array([deviation**2]))[0]
    assert got == pytest.approx(expected, abs=1e-5)


def test_covariance_by_hand() -> None:
    posterior = Posterior(
        np.zeros((1, 2)), np.array([[1.0, 2.0]]), np.array([[[1.0, 0.0], [3.0, 1.0]]])
    )
    assert posterior.covariance().tolist() == [[[2.0, 3.0], [3.0, 12.0]]]
    assert posterior.variances().tolist() == [[2.0, 12.0]]


def test_hidden_layers_by_hand_and_by_batch() -> None:
    rng = np.random.default_rng(0)
    x = sparse.random(50, 30, 0.2, format="csr", random_state=rng)
    weights = {
        "hidden1.weight": rng.standard_normal((30, 8)),
        "hidden1.bias": rng.standard_normal(8),
        "hidden2.weight": rng.standard_normal((8, 8)),
        "hidden2.bias": rng.standard_normal(8),
    }
    first = np.maximum(x.toarray() @ weights["hidden1.weight"] + weights["hidden1.bias"], 0)
    expected = np.maximum(first @ weights["hidden2.weight"] + weights["hidden2.bias"], 0)
    np.testing.assert_allclose(hidden_layers(x, weights), expected, atol=1e-12)
    alone = np.concatenate([hidden_layers(x[i], weights) for i in range(50)])
    np.testing.assert_allclose(alone, expected, atol=1e-12)
