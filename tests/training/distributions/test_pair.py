"""Correlated pairs of Gaussians, and trees of them, against the joint Gaussian and by integration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from boltzhash.training.distributions import Gaussian, GaussianPair, edge_divergence
from boltzhash.training.distributions.pair import log_cosh

N_BITS = 3
# Documents 0 to 5; a tree with a branch, a path and a leaf, whose edges need not go upwards.
TREE = [(0, 1), (1, 2), (1, 3), (4, 3), (4, 5)]
CORRELATIONS = (0.1, 0.5, 0.9, 0.99)


def random_pair(seed: int, *shape: int) -> GaussianPair:
    generator = torch.Generator().manual_seed(seed)

    def draw() -> torch.Tensor:
        return torch.randn(*shape, N_BITS, generator=generator, dtype=torch.float64)

    one, other = (Gaussian(draw(), draw().exp()) for _ in range(2))
    return GaussianPair(one, other, draw())


def joint(pair: GaussianPair, bit: int) -> MultivariateNormal:
    """The same law of one bit, as torch has it."""
    mean = torch.stack([pair.one.location[bit], pair.other.location[bit]])
    s, t = pair.one.deviation[bit], pair.other.deviation[bit]
    covariance = pair.correlation[bit] * s * t
    rows = [torch.stack([s**2, covariance]), torch.stack([covariance, t**2])]
    return MultivariateNormal(mean, torch.stack(rows))


def prior(correlation: float, n: int = 2) -> MultivariateNormal:
    together = torch.full((n, n), correlation, dtype=torch.float64)
    return MultivariateNormal(torch.zeros(n, dtype=torch.float64), together.fill_diagonal_(1.0))


def standard(n: int = N_BITS) -> Gaussian:
    return Gaussian(torch.zeros(n, dtype=torch.float64), torch.ones(n, dtype=torch.float64))


@pytest.mark.parametrize("seed", range(3))
def test_the_density_is_that_of_the_joint_gaussian(seed: int) -> None:
    pair = random_pair(seed)
    first, second = (standard().sample(torch.Generator().manual_seed(s)) for s in (7, 8))
    both = torch.stack([first, second], -1)
    expected = sum(joint(pair, bit).log_prob(both[bit]) for bit in range(N_BITS))
    torch.testing.assert_close(pair.log_prob(first, second), expected)


def test_samples_have_the_moments_of_the_law() -> None:
    pair = random_pair(0)
    n = 200_000
    wide = GaussianPair(
        Gaussian(pair.one.location.expand(n, -1), pair.one.deviation.expand(n, -1)),
        Gaussian(pair.other.location.expand(n, -1), pair.other.deviation.expand(n, -1)),
        pair.fisher,
    )
    drawn = torch.stack(wide.sample(torch.Generator().manual_seed(0)), -1)  # (n, bits, 2)
    for bit in range(N_BITS):
        law = joint(pair, bit)
        scale = law.covariance_matrix.diagonal().sqrt()
        mean = (drawn[:, bit].mean(0) - law.mean) / scale
        covariance = (torch.cov(drawn[:, bit].T) - law.covariance_matrix) / scale.outer(scale)
        assert mean.abs().max() < 5 / math.sqrt(n)
        assert covariance.abs().max() < 10 / math.sqrt(n)


@pytest.mark.parametrize("correlation", CORRELATIONS)
@pytest.mark.parametrize("seed", range(3))
def test_an_edge_adds_the_divergence_of_the_pair_less_those_of_its_ends(
    seed: int, correlation: float
) -> None:
    pair = random_pair(seed)
    of_pair = sum(kl_divergence(joint(pair, b), prior(correlation)) for b in range(N_BITS))
    of_ends = pair.one.kl_divergence(standard()) + pair.other.kl_divergence(standard())
    torch.testing.assert_close(edge_divergence(pair, correlation), of_pair - of_ends)


def correlation_along_the_tree(of_edge: dict[tuple[int, int], float], n: int) -> torch.Tensor:
    """Of any two documents: the product of those on the path between them."""
    result = torch.eye(n, dtype=torch.float64)
    for _ in range(n):  # reach one edge further
        for (i, j), value in of_edge.items():
            for a, b in ((i, j), (j, i)):
                for k in range(n):
                    if result[a, k] != 0 and result[b, k] == 0:
                        result[b, k] = result[k, b] = result[a, k] * value
    return result


def tree_log_density(
    z: torch.Tensor, nodes: Gaussian, of_edge: dict[tuple[int, int], float]
) -> torch.Tensor:
    """log ∏ q_i ∏ q_ij / (q_i q_j) at z (…, n), of one bit."""

    def node(i: int) -> Gaussian:
        return Gaussian(nodes.location[i : i + 1], nodes.deviation[i : i + 1])

    def at(i: int) -> torch.Tensor:
        return z[..., i : i + 1]

    total = sum(node(i).log_prob(at(i)) for i in range(z.shape[-1]))
    for (i, j), value in of_edge.items():
        fisher = torch.tensor([math.atanh(value)], dtype=torch.float64)
        pair = GaussianPair(node(i), node(j), fisher)
        total = (
            total + pair.log_prob(at(i), at(j)) - node(i).log_prob(at(i)) - node(j).log_prob(at(j))
        )
    return torch.as_tensor(total)


@pytest.mark.parametrize("seed", range(3))
def test_a_tree_of_pairs_is_a_gaussian_whose_bound_is_a_sum_over_documents_and_edges(
    seed: int,
) -> None:
    """The density ∏ q_i ∏ q_ij / (q_i q_j), and KL(q_T ‖ p_T), against the joint Gaussian."""
    n, tied = 6, 0.8
    rng = np.random.default_rng(seed)
    nodes = Gaussian(torch.from_numpy(rng.normal(size=n)), torch.from_numpy(rng.uniform(0.3, 2, n)))
    gammas = {edge: float(rng.uniform(-0.9, 0.9)) for edge in TREE}
    correlations = correlation_along_the_tree(gammas, n)
    posterior = MultivariateNormal(
        nodes.location, correlations * nodes.deviation.outer(nodes.deviation)
    )
    lambdas = dict.fromkeys(TREE, tied)
    prior_of_tree = MultivariateNormal(
        torch.zeros(n, dtype=torch.float64), correlation_along_the_tree(lambdas, n)
    )
    z = torch.from_numpy(rng.normal(size=(5, n)))
    torch.testing.assert_close(tree_log_density(z, nodes, gammas), posterior.log_prob(z))
    torch.testing.assert_close(tree_log_density(z, standard(n), lambdas), prior_of_tree.log_prob(z))

    def node(i: int) -> Gaussian:
        return Gaussian(nodes.location[i : i + 1], nodes.deviation[i : i + 1])

    of_nodes = sum(node(i).kl_divergence(standard(1)) for i in range(n))
    of_edges = sum(
        edge_divergence(
            GaussianPair(node(i), node(j), torch.tensor([math.atanh(g)], dtype=torch.float64)), tied
        )
        for (i, j), g in gammas.items()
    )
    torch.testing.assert_close(
        torch.as_tensor(of_nodes + of_edges), kl_divergence(posterior, prior_of_tree)
    )


def test_the_derivatives_of_an_edge_are_those_of_finite_differences() -> None:
    pair = random_pair(3)
    inputs = [
        part.clone().requires_grad_()
        for part in (
            pair.one.location,
            pair.one.deviation,
            pair.other.location,
            pair.other.deviation,
            pair.fisher,
        )
    ]

    def divergence(*parts: torch.Tensor) -> torch.Tensor:
        m, s, o, t, fisher = parts
        return edge_divergence(GaussianPair(Gaussian(m, s), Gaussian(o, t), fisher), 0.9)

    assert torch.autograd.gradcheck(divergence, inputs)


def test_an_edge_is_finite_and_pulls_where_correlations_are_extreme() -> None:
    """In float32, at which training runs: γ = ±1 to all digits, and λ = .99."""
    ends = [Gaussian(torch.full((4,), m), torch.full((4,), 0.5)) for m in (0.1, 0.9)]
    for size in (0.0, 20.0, -20.0, 300.0):
        fisher = torch.full((4,), size, requires_grad=True)
        value = edge_divergence(GaussianPair(*ends, fisher), 0.99)
        value.backward()
        assert value.isfinite()
        assert fisher.grad is not None
        assert fisher.grad.isfinite().all()
    for x, y in itertools.pairwise((0.0, 1.0, 30.0, 1e4)):
        assert log_cosh(torch.tensor(x)) < log_cosh(torch.tensor(y))
