"""AMMI's adversary: every sum over codes that it avoids, taken over all codes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from boltzhash.training.adversary import (
    MarkovChain,
    chain_cross_entropy,
    mean_window_probabilities,
)
from boltzhash.training.distributions import Bernoulli, enumerate_codes

N_BITS = 6
ORDERS = (0, 1, 3, 5)
orders = pytest.mark.parametrize("order", ORDERS)


@pytest.fixture(autouse=True)
def double() -> object:
    """What is compared are formulas, not roundings."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def posterior(n: int = 7, seed: int = 0) -> Bernoulli:
    """Independent bits of some documents."""
    return Bernoulli(2 * torch.randn(n, N_BITS, generator=torch.Generator().manual_seed(seed)))


def marginal(documents: Bernoulli) -> Tensor:
    """p(z) = E_x p(z | x) of all codes."""
    codes = enumerate_codes(N_BITS).unsqueeze(1)
    return documents.log_prob(codes).exp().mean(1)


def chain(order: int, seed: int = 1) -> MarkovChain:
    made = MarkovChain(N_BITS, order, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        made.logits.mul_(20)
    return made


@orders
def test_a_chain_is_a_distribution(order: int) -> None:
    assert chain(order).log_prob(enumerate_codes(N_BITS)).exp().sum().item() == pytest.approx(1)


def test_a_bit_follows_those_before_it() -> None:
    """By hand: q(z_i = 1 | 0) = .2 and q(z_i = 1 | 1) = .9, nothing before the first."""
    made = MarkovChain(3, 1, torch.Generator())
    with torch.no_grad():
        made.logits.copy_(torch.tensor([0.2, 0.9]).logit())
    log_prob = made.log_prob(torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]))
    assert log_prob.exp().tolist() == pytest.approx([0.2 * 0.9 * 0.1, 0.8 * 0.2 * 0.9])


@orders
def test_windows_are_those_of_all_codes(order: int) -> None:
    documents = posterior()
    codes, shares = enumerate_codes(N_BITS).long(), marginal(documents)
    expected = torch.zeros(N_BITS, 2 ** (order + 1))
    for code, share in zip(codes.tolist(), shares.tolist(), strict=True):
        padded = [0] * order + code
        for bit in range(N_BITS):
            window = padded[bit : bit + order + 1]
            expected[bit, int("".join(map(str, window)), 2)] += share
    windows = mean_window_probabilities(documents.mean, order)
    torch.testing.assert_close(windows, expected)


@orders
def test_cross_entropy_is_the_sum_over_all_codes(order: int) -> None:
    documents, q = posterior(), chain(order)
    expected = -(marginal(documents) * q.log_prob(enumerate_codes(N_BITS))).sum()
    windows = mean_window_probabilities(documents.mean, order)
    torch.testing.assert_close(q.cross_entropy(windows), expected)


@orders
def test_cross_entropy_is_never_below_entropy(order: int) -> None:
    documents = posterior()
    p = marginal(documents)
    entropy = -(p * p.log()).sum()
    windows = mean_window_probabilities(documents.mean, order)
    for seed in range(5):
        assert chain(order, seed).cross_entropy(windows) > entropy


def test_an_adversary_who_sees_all_bits_finds_the_entropy() -> None:
    documents = posterior()
    p = marginal(documents)
    q = chain(N_BITS - 1)
    windows = mean_window_probabilities(documents.mean, N_BITS - 1)
    for _ in range(20):
        q.follow(windows, rate=0.1, n_steps=100)
    assert q.cross_entropy(windows).item() == pytest.approx(-(p * p.log()).sum().item(), abs=1e-3)


def test_the_steps_of_the_adversary_are_those_of_adam() -> None:
    windows = mean_window_probabilities(posterior().mean, 2)
    q, twin = chain(2), chain(2)
    q.follow(windows, rate=0.03, n_steps=5)
    adam = torch.optim.Adam(twin.parameters(), lr=0.03)
    for _ in range(5):
        adam.zero_grad()
        chain_cross_entropy(windows, twin.logits).backward()  # type: ignore[no-untyped-call]
        adam.step()
    torch.testing.assert_close(q.logits, twin.logits)


def test_gradients_are_those_of_finite_differences() -> None:
    logits = posterior(3).logits.requires_grad_()
    q = torch.randn(N_BITS, 4, generator=torch.Generator().manual_seed(2)).requires_grad_()

    def cross_entropy(logits: Tensor, q: Tensor) -> Tensor:
        return chain_cross_entropy(mean_window_probabilities(logits.sigmoid(), 2), q)

    assert torch.autograd.gradcheck(cross_entropy, (logits, q))


def test_the_loss_of_codes_does_not_move_the_adversary() -> None:
    documents = posterior()
    logits = documents.logits.requires_grad_()
    q = chain(2)
    q.cross_entropy(mean_window_probabilities(logits.sigmoid(), 2)).backward()  # type: ignore[no-untyped-call]
    assert q.logits.grad is None
    assert logits.grad is not None
