"""The NumPy path against direct numerical integration and against other batch sizes."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest
from scipy import integrate, sparse, stats
from scipy.special import expit

from boltzhash.hashers.shared import inference
from boltzhash.hashers.shared.inference import (
    Floats,
    Posterior,
    linear,
    logistic_normal_mean,
)


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


def term_by_term(x: Floats, weight: Floats, bias: Floats) -> Floats:
    """The definition: products added in the order of the columns, then the bias; NumPy fuses nothing."""
    total = np.zeros((len(x), len(bias)))
    for column, row in enumerate(weight.astype(np.float64)):
        total += x[:, column, None] * row
    return total + bias


def layer(n_rows: int, n_inputs: int, n_outputs: int) -> tuple[Floats, Any, Any]:
    """Inputs of very different size, many of them 0, so that another order shows in the last bits."""
    rng = np.random.default_rng(n_inputs * n_outputs)
    x = rng.standard_normal((n_rows, n_inputs)) * 10.0 ** rng.integers(-4, 4, (n_rows, n_inputs))
    x[rng.random(x.shape) < 0.5] = 0
    weight = rng.standard_normal((n_inputs, n_outputs)).astype(np.float32)
    return x, weight, rng.standard_normal(n_outputs).astype(np.float32)


shapes = pytest.mark.parametrize("n_inputs", [1, 2, 3, 4, 5, 30, 500])
outputs = pytest.mark.parametrize("n_outputs", [1, 7, 8, 64, 500])


@shapes
@outputs
@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_matrix])
def test_linear_is_the_sum_term_by_term_to_the_last_bit(
    n_inputs: int, n_outputs: int, as_given: Any
) -> None:
    x, weight, bias = layer(9, n_inputs, n_outputs)
    x[4] = 0
    expected = term_by_term(x, weight, bias)
    np.testing.assert_array_equal(linear(as_given(x), weight, bias), expected)
    rectified = linear(as_given(x), weight, bias, rectified=True)
    np.testing.assert_array_equal(rectified, np.maximum(expected, 0))


@shapes
@outputs
def test_scipy_is_the_twin(n_inputs: int, n_outputs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit where SciPy's build fuses nothing, which x86-64's does not."""
    x, weight, bias = layer(9, n_inputs, n_outputs)
    compiled = linear(x, weight, bias, rectified=True)
    monkeypatch.setattr(inference, "_layers", None)
    for given in (x, sparse.csr_matrix(x)):
        found = linear(given, weight, bias, rectified=True)
        if platform.machine() in ("x86_64", "AMD64"):
            np.testing.assert_array_equal(found, compiled)
        np.testing.assert_allclose(found, compiled, rtol=1e-10, atol=1e-12)


def test_linear_takes_any_layout() -> None:
    x, weight, bias = layer(9, 30, 8)
    expected = linear(x, weight, bias)
    rows = sparse.csr_matrix(x)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    np.testing.assert_array_equal(linear(rows, weight, bias), expected)
    np.testing.assert_array_equal(linear(np.asfortranarray(x), weight, bias), expected)
    np.testing.assert_array_equal(linear(x, np.asfortranarray(weight), bias), expected)
    assert linear(x[:0], weight, bias).shape == (0, 8)
    assert linear(rows[:0], weight, bias).shape == (0, 8)


@pytest.mark.skipif(inference._layers is None, reason="boltzhash was installed without a compiler")
def test_the_compiled_part_reads_nothing_outside_its_arrays() -> None:
    x, weight, bias = layer(9, 30, 8)
    rows = sparse.csr_matrix(x)
    for part, values in {
        "indices": np.where(np.arange(rows.nnz) == 5, 30, rows.indices),
        "indptr": np.where(np.arange(10) == 4, rows.nnz + 1, rows.indptr),
    }.items():
        damaged = rows.copy()
        setattr(damaged, part, values.astype(np.int32))
        with pytest.raises(ValueError, match="do not fit together"):
            linear(damaged, weight, bias)
    with pytest.raises(ValueError, match="rows of 30 numbers expected"):
        linear(x[:, :29], weight, bias)
    with pytest.raises(ValueError, match="232 weights do not fit 7 outputs"):
        linear(x, weight[:29], bias[:7])
    with pytest.raises(ValueError, match="8 columns of weights do not fit 4 outputs"):
        linear(np.ones((9, 30)), weight, bias[:4])


def test_columns_of_a_larger_matrix_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several networks side by side have the weights of each in some columns."""
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(5, 8)).astype(np.float32)
    bias = rng.normal(size=4).astype(np.float32)
    x = rng.normal(size=(3, 5))
    expected = linear(x, weight[:, 4:].copy(), bias)
    copied = []
    plain = np.ascontiguousarray

    def noted(array: Any, *dtype: Any) -> Any:
        result = plain(array, *dtype)
        copied.append(result is not array and not np.shares_memory(result, array))
        return result

    monkeypatch.setattr(np, "ascontiguousarray", noted)
    assert linear(x, weight[:, 4:], bias).tolist() == expected.tolist()
    if inference._layers is not None:  # SciPy does it otherwise, and nobody asks NumPy
        assert copied
        assert not any(copied)


def test_hidden_layers_by_hand_and_by_batch() -> None:
    rng = np.random.default_rng(0)
    x = sparse.random(50, 30, 0.2, format="csr", random_state=rng)
    shapes = {"hidden1": (30, 8), "hidden2": (8, 8)}
    weights = {f"{name}.weight": rng.standard_normal(shape) for name, shape in shapes.items()}
    weights |= {f"{name}.bias": rng.standard_normal(8) for name in shapes}
    weights = {name: array.astype(np.float32) for name, array in weights.items()}
    wide = {name: array.astype(np.float64) for name, array in weights.items()}
    first = np.maximum(x.toarray() @ wide["hidden1.weight"] + wide["hidden1.bias"], 0)
    expected = np.maximum(first @ wide["hidden2.weight"] + wide["hidden2.bias"], 0)

    def hidden_layers(rows: sparse.csr_matrix) -> Floats:
        first = linear(rows, weights["hidden1.weight"], weights["hidden1.bias"], rectified=True)
        return linear(first, weights["hidden2.weight"], weights["hidden2.bias"], rectified=True)

    np.testing.assert_allclose(hidden_layers(x), expected, atol=1e-12)
    alone = np.concatenate([hidden_layers(x[i]) for i in range(50)])
    np.testing.assert_array_equal(alone, hidden_layers(x))
