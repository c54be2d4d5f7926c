"""Straight-through: what it returns, and for which functions of s its gradient is the true one.

Expectations over u are exact: a bit changes only at u = p, so one u on each side of it, weighted
with the length of its side, is the whole integral.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from scipy import stats
from torch import Tensor

from boltzhash.training.distributions import (
    Bernoulli,
    BernoulliMixture,
    Boltzmann,
    LowRankCovariance,
)
from boltzhash.training.gradients import straight_through

PROBABILITIES = torch.tensor([0.3, 0.8, 0.55], dtype=torch.float64)
WEIGHTS = torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64)


def cells(p: Tensor) -> list[tuple[float, Tensor]]:
    """(probability, a u inside) of each of the 2^m boxes of u on which s is constant."""
    sides = [[(x, x / 2), (1 - x, (1 + x) / 2)] for x in p.tolist()]
    return [
        (math.prod(length for length, _ in box), torch.tensor([u for _, u in box]).to(p))
        for box in itertools.product(*sides)
    ]


def expected_gradient(f: Callable[[Tensor], Tensor], p: Tensor, scale: float) -> Tensor:
    """E_u ∂f(s)/∂p as straight-through gives it."""
    total = torch.zeros_like(p)
    for probability, u in cells(p):
        leaf = p.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(f(straight_through(leaf, u, scale)), leaf)
        total += probability * gradient
    return total


def true_gradient(f: Callable[[Tensor], Tensor], p: Tensor) -> Tensor:
    """∂/∂p E_u f(s), from the probabilities of the codes."""
    leaf = p.clone().requires_grad_()
    total = torch.zeros((), dtype=p.dtype)
    for code in itertools.product([0.0, 1.0], repeat=len(p)):
        s = torch.tensor(code).to(p)
        total = total + (s * leaf + (1 - s) * (1 - leaf)).prod() * f(s)
    (gradient,) = torch.autograd.grad(total, leaf)
    return gradient


def linear(s: Tensor) -> Tensor:
    return s @ WEIGHTS + 3


def multilinear(s: Tensor) -> Tensor:
    return s[0] * s[1] - 2 * s[1] * s[2] + s[0] * s[1] * s[2]


def squares(s: Tensor) -> Tensor:
    return WEIGHTS @ s.square()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_forward_is_the_sign_form(dtype: torch.dtype) -> None:
    """(sign(p − u) + 1) / 2 for every u ≠ p, also its nearest neighbours (eq. 18)."""
    generator = torch.Generator().manual_seed(0)
    p = torch.rand(1000, generator=generator, dtype=dtype)
    above = torch.nextafter(p, torch.full_like(p, 2))
    below = torch.nextafter(p, torch.full_like(p, -1))
    for u in (torch.rand(1000, generator=generator, dtype=dtype), above, below):
        s = straight_through(p, u)
        assert s.dtype == dtype
        assert torch.equal(s, ((p - u).sign() + 1) / 2)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_forward_at_equality_is_a_bit(scale: float) -> None:
    """At p = u the sign form says ½, which is no code; off is right, since u < p has probability p.

    u is drawn from [0, 1): p = 0 must never be on, not even at u = 0, and p = 1 always.
    """
    p = torch.tensor([0.0, 0.25, 0.5, 1.0])
    assert straight_through(p, p.clone(), scale).tolist() == [0.0, 0.0, 0.0, 0.0]
    largest = torch.nextafter(torch.ones(1), torch.zeros(1))
    assert straight_through(torch.zeros(1), torch.zeros(1), scale).item() == 0
    assert straight_through(torch.ones(1), largest, scale).item() == 1


def test_expected_code_is_p() -> None:
    total = sum(
        probability * straight_through(PROBABILITIES, u) for probability, u in cells(PROBABILITIES)
    )
    assert isinstance(total, Tensor)
    torch.testing.assert_close(total, PROBABILITIES, rtol=1e-14, atol=0)


@pytest.mark.parametrize("f", [linear, multilinear])
def test_factor_one_is_unbiased_where_f_is_linear_in_each_bit(
    f: Callable[[Tensor], Tensor],
) -> None:
    """Linear functions, and products of different bits since these are independent."""
    torch.testing.assert_close(
        expected_gradient(f, PROBABILITIES, 1.0),
        true_gradient(f, PROBABILITIES),
        rtol=1e-13,
        atol=1e-15,
    )


def test_factor_one_is_exact_draw_by_draw_for_linear_functions() -> None:
    """Its gradient is the weights whatever u is: no variance either."""
    for _, u in cells(PROBABILITIES):
        leaf = PROBABILITIES.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(linear(straight_through(leaf, u)), leaf)
        assert torch.equal(gradient, WEIGHTS)


def test_factor_one_is_biased_for_squares() -> None:
    """s² = s on codes, but straight-through sees the slope 2s: what it cannot do, on record."""
    estimated = expected_gradient(squares, PROBABILITIES, 1.0)
    torch.testing.assert_close(true_gradient(squares, PROBABILITIES), WEIGHTS, rtol=1e-13, atol=0)
    torch.testing.assert_close(estimated, 2 * PROBABILITIES * WEIGHTS, rtol=1e-13, atol=0)


@pytest.mark.parametrize("f", [linear, multilinear, squares])
def test_factor_one_half_is_half(f: Callable[[Tensor], Tensor]) -> None:
    """The paper's literal derivative of its sign form (eq. 19), to the last bit."""
    half = expected_gradient(f, PROBABILITIES, 0.5)
    assert torch.equal(half, 0.5 * expected_gradient(f, PROBABILITIES, 1.0))
    assert half.abs().max() > 0


def test_u_gets_no_gradient_and_values_do_not_change_with_scale() -> None:
    u = torch.full((3,), 0.5, dtype=torch.float64, requires_grad=True)
    p = PROBABILITIES.clone().requires_grad_()
    gradients = torch.autograd.grad(
        straight_through(p, u).sum(), [p, u], allow_unused=True, materialize_grads=True
    )
    assert gradients[0].tolist() == [1, 1, 1]
    assert gradients[1].tolist() == [0, 0, 0]
    assert torch.equal(straight_through(p, u, 0.5), straight_through(p, u, 1.0))


def test_gradient_through_a_bernoulli_sample() -> None:
    """∂s/∂r = σ'(r), so that for linear functions it is the gradient of E f(s) in closed form."""
    generator = torch.Generator().manual_seed(1)
    r = torch.randn(200, 3, generator=generator, dtype=torch.float64).requires_grad_()
    s = Bernoulli(r).sample(generator)
    assert set(s.flatten().tolist()) == {0.0, 1.0}
    (gradient,) = torch.autograd.grad((s @ WEIGHTS).sum(), r, retain_graph=True)
    (closed_form,) = torch.autograd.grad((Bernoulli(r).mean @ WEIGHTS).sum(), r)
    torch.testing.assert_close(gradient, closed_form, rtol=1e-14, atol=0)


def test_bernoulli_sample_draws_from_its_generator_only() -> None:
    r = torch.zeros(64)
    first, again = (Bernoulli(r).sample(torch.Generator().manual_seed(3)) for _ in range(2))
    other = Bernoulli(r).sample(torch.Generator().manual_seed(4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_gradient_through_a_boltzmann_sample() -> None:
    """The chain s ← σ(r) ← μ, D^½, U with the noise held (eqs. 18, 19, 26), written out by hand."""
    n, m, v = 5, 4, 2
    generator = torch.Generator().manual_seed(2)
    location = torch.randn(n, m, generator=generator, dtype=torch.float64).requires_grad_()
    deviation = torch.rand(n, m, generator=generator, dtype=torch.float64).requires_grad_()
    factor = torch.randn(n, m, v, generator=generator, dtype=torch.float64).requires_grad_()
    posterior = Boltzmann(location, LowRankCovariance(deviation, factor))
    s = posterior.sample(torch.Generator().manual_seed(7))
    weights = torch.arange(1.0, n * m + 1, dtype=torch.float64).reshape(n, m)
    gradients = torch.autograd.grad((weights * s).sum(), [location, deviation, factor])

    # Gradients of r at the same noise recover it: ∂r/∂D^½ = ε₁ and ∂r/∂U = ε₂.
    logits = posterior.sample_logits(1, torch.Generator().manual_seed(7))[0]
    epsilon1, epsilon2 = torch.autograd.grad(logits.sum(), [deviation, factor], retain_graph=True)
    rebuilt = location + deviation * epsilon1 + (factor * epsilon2).sum(-1)
    torch.testing.assert_close(rebuilt, logits, rtol=1e-13, atol=1e-14)
    slope = (weights * logits.sigmoid() * (1 - logits.sigmoid())).detach()
    expected = [slope, slope * epsilon1, slope.unsqueeze(-1) * epsilon2]
    for actual, by_hand in zip(gradients, expected, strict=True):
        torch.testing.assert_close(actual, by_hand, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_gradient_of_a_mixture_sample_goes_through_the_chosen_component(k: int) -> None:
    """One component for each document, all its bits, the others untouched (appendix A.3).

    Logits of ±30 make the drawn bits tell which was chosen: component j is on at bit j only.
    """
    n = 600
    signs = 2 * torch.eye(k, 5, dtype=torch.float64) - 1
    logits = (30 * signs).unsqueeze(1).repeat(1, n, 1).requires_grad_()
    s = BernoulliMixture(logits).sample(torch.Generator().manual_seed(0))
    chosen = s.argmax(-1)
    assert torch.equal(s, torch.eye(5, dtype=torch.float64)[chosen])
    (gradient,) = torch.autograd.grad(s.sum(), logits)
    slope = (logits.sigmoid() * (1 - logits.sigmoid())).detach()
    taken = torch.nn.functional.one_hot(chosen, 5).T[:k].double()  # (k, n)
    torch.testing.assert_close(gradient, slope * taken.unsqueeze(-1), rtol=1e-12, atol=0)
    if k > 1:  # every component equally often
        assert stats.chisquare(taken.sum(-1).numpy()).pvalue > 1e-6
