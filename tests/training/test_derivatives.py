"""Derivatives written by hand against autograd's own, against finite differences and in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

from boltzhash.training.derivatives import SparseProduct
from boltzhash.training.networks import InferenceNetwork
from boltzhash.training.objectives import decoded_log_likelihood, word_log_likelihood
from boltzhash.training.rows import SparseRows, stacked
from oracles import normal, rows_of

N_WORDS, N_BITS = 9, 6


def random_matrix(n: int, density: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return sparse.random(n, N_WORDS, density, random_state=rng).toarray()


MATRICES = {
    "one row": random_matrix(1, 0.5),
    "one row, no word": np.zeros((1, N_WORDS)),
    "some empty": random_matrix(7, 0.15),
    "every word": random_matrix(4, 1.0),
    "no word at all": np.zeros((3, N_WORDS)),
}
every_matrix = pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES.keys())


def plain(codes: Tensor, weight: Tensor, bias: Tensor, target: Tensor, n_groups: int) -> Tensor:
    """The slow twin: a dense target, autograd's derivatives."""
    groups = zip(codes.tensor_split(n_groups, -1), weight.tensor_split(n_groups), strict=True)
    return sum(word_log_likelihood(s @ E + bias, target) for s, E in groups) / n_groups


def decoder(n: int) -> tuple[Tensor, Tensor, Tensor]:
    shapes = ((n, N_BITS), (N_BITS, N_WORDS), (N_WORDS,))
    codes, weight, bias = (normal(i, *shape).requires_grad_() for i, shape in enumerate(shapes))
    return codes, weight, bias


@every_matrix
def test_sparse_product_by_finite_differences(matrix: np.ndarray) -> None:
    weight = normal(0, N_WORDS, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda w: SparseProduct.apply(w, *rows_of(matrix)), weight)
    torch.testing.assert_close(
        SparseProduct.apply(weight, *rows_of(matrix)), torch.from_numpy(matrix) @ weight
    )


@every_matrix
@pytest.mark.parametrize("n_groups", [1, 2, 4])
def test_decoded_likelihood_by_finite_differences(matrix: np.ndarray, n_groups: int) -> None:
    target = rows_of(matrix)
    assert torch.autograd.gradcheck(
        lambda *inputs: decoded_log_likelihood(*inputs, target, n_groups), decoder(len(matrix))
    )


@every_matrix
@pytest.mark.parametrize("n_groups", [1, 2, 4])  # 4 groups of 6 bits are not equally long
@pytest.mark.parametrize("count", ["alike", "differently"])
def test_decoded_likelihood_is_its_slow_twin(matrix: np.ndarray, n_groups: int, count: str) -> None:
    """With the same weight on every document, as in a mean, and with different ones."""
    inputs = decoder(len(matrix))
    outside = normal(3, len(matrix))
    if count == "alike":
        outside.fill_(-0.7)
    fast = decoded_log_likelihood(*inputs, rows_of(matrix), n_groups)
    slow = plain(*inputs, torch.from_numpy(matrix), n_groups)
    torch.testing.assert_close(fast, slow, rtol=1e-12, atol=1e-13)
    for a, b in zip(
        torch.autograd.grad(fast @ outside, inputs),
        torch.autograd.grad(slow @ outside, inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-13)


def test_derivative_by_the_bias_in_closed_form() -> None:
    """Σ over documents of t − (Σt) softmax."""
    matrix = random_matrix(5, 0.4)
    codes, weight, bias = decoder(5)
    decoded_log_likelihood(codes, weight, bias, rows_of(matrix)).sum().backward()
    t = torch.from_numpy(matrix)
    expected = (t - t.sum(-1, keepdim=True) * (codes @ weight + bias).softmax(-1)).sum(0)
    torch.testing.assert_close(bias.grad, expected.detach(), rtol=1e-12, atol=1e-14)


def test_a_second_backward_gives_the_same() -> None:
    """Nothing that is kept is overwritten by the first."""
    inputs = decoder(5)
    value = decoded_log_likelihood(*inputs, rows_of(random_matrix(5, 0.4)), 2).sum()
    first = torch.autograd.grad(value, inputs, retain_graph=True)
    second = torch.autograd.grad(value, inputs)
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)


def test_large_logits_do_not_overflow() -> None:
    weight = torch.tensor([[1000.0, 0.0, -1000.0]], dtype=torch.float64, requires_grad=True)
    target = rows_of(np.array([[1.0, 0.0, 2.0]]))
    one = torch.ones(1, 1, dtype=torch.float64)
    value = decoded_log_likelihood(one, weight, torch.zeros(3).double(), target)
    assert value.item() == -4000
    value.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[-2.0, 0.0, 2.0]]


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("n_networks", [1, 2])
@pytest.mark.parametrize("n_hidden", [0, 6])
def test_neighbours_encoded_in_the_same_pass_are_those_encoded_alone(
    n_hidden: int, n_networks: int, dense: bool
) -> None:
    heads, generator = {"location": 4, "deviation": 2}, torch.Generator().manual_seed(0)
    network = InferenceNetwork(N_WORDS, n_hidden, heads, 0.0, generator, n_networks).double()
    inputs = [random_matrix(6, 0.4, seed) for seed in (1, 2)]
    x, beside = (torch.from_numpy(m) if dense else rows_of(m) for m in inputs)
    generator = torch.Generator()
    alone = network(x, generator), network(beside, generator)["location"]
    together = network.with_neighbour(x, beside, "location", generator)
    torch.testing.assert_close(network.without_dropout(x, "location"), alone[0]["location"])
    results = []
    for outputs, location in (alone, together):
        joined = torch.cat([outputs["location"], outputs["deviation"], location], -1)
        loss = (joined * normal(4, *joined.shape)).sum()
        results.append([joined, *torch.autograd.grad(loss, list(network.parameters()))])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-13)


def test_stacked_rows_are_the_stacked_matrix() -> None:
    above, below = random_matrix(3, 0.3, 5), random_matrix(4, 0.5, 6)
    both = stacked(rows_of(above), rows_of(below))
    assert isinstance(both, SparseRows)
    assert both.dense(N_WORDS).tolist() == np.vstack([above, below]).tolist()
