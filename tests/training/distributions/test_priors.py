"""Gaussian latents and mixture priors, by enumeration, quadrature and finite differences."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal
from torch.distributions import kl_divergence as torch_kl

from boltzhash.training.distributions import (
    Bernoulli,
    BernoulliMixturePrior,
    FairBits,
    Gaussian,
    GaussianMixturePrior,
    enumerate_codes,
)
from oracles import normal


def bernoulli_prior(n_components: int = 3, n_bits: int = 4) -> BernoulliMixturePrior:
    prior = BernoulliMixturePrior(n_components, n_bits, torch.Generator().manual_seed(0)).double()
    prior.weights.data = normal(1, n_components)
    return prior


def gaussian_prior(n_components: int = 3, n_bits: int = 4) -> GaussianMixturePrior:
    prior = GaussianMixturePrior(n_components, n_bits, torch.Generator().manual_seed(0)).double()
    prior.weights.data = normal(2, n_components)
    prior.raw_deviation.data = normal(3, n_components, n_bits)
    return prior


def test_gaussian_against_torch() -> None:
    one = Gaussian(normal(1, 5, 3), normal(2, 5, 3).exp())
    other = Gaussian(normal(3, 3), normal(4, 3).exp())
    theirs, their_prior = (
        Normal(one.location, one.deviation),
        Normal(other.location, other.deviation),
    )
    z = normal(5, 5, 3)
    torch.testing.assert_close(one.log_prob(z), theirs.log_prob(z).sum(-1))
    torch.testing.assert_close(one.entropy(), theirs.entropy().sum(-1))
    torch.testing.assert_close(one.kl_divergence(other), torch_kl(theirs, their_prior).sum(-1))


def test_gaussian_sample_has_its_moments() -> None:
    n = 200_000
    one = Gaussian(torch.tensor([1.0, -2.0]).expand(n, 2), torch.tensor([0.5, 3.0]).expand(n, 2))
    z = one.sample(torch.Generator().manual_seed(0))
    error = one.deviation[0] / n**0.5
    assert ((z.mean(0) - one.location[0]).abs() < 5 * error).all()
    assert ((z.std(0) / one.deviation[0] - 1).abs() < 5 / (2 * n) ** 0.5).all()


def test_fair_bits() -> None:
    codes = enumerate_codes(4)
    torch.testing.assert_close(FairBits().log_prob(codes).exp(), torch.full((16,), 1 / 16))


def test_bernoulli_mixture_sums_to_one_and_is_the_weighted_sum() -> None:
    prior = bernoulli_prior()
    codes = enumerate_codes(4).double()
    by_hand = sum(
        weight * Bernoulli(logits).log_prob(codes).exp()
        for weight, logits in zip(prior.weights.softmax(0), prior.logits, strict=True)
    )
    torch.testing.assert_close(prior.log_prob(codes).exp(), by_hand)
    torch.testing.assert_close(prior.log_prob(codes).exp().sum().item(), 1.0)


def test_gaussian_mixture_is_the_weighted_sum() -> None:
    prior = gaussian_prior()
    z = normal(7, 6, 4)
    components = prior.components()
    by_hand = sum(
        weight * Gaussian(location, deviation).log_prob(z).exp()
        for weight, location, deviation in zip(
            prior.weights.softmax(0), components.location, components.deviation, strict=True
        )
    )
    torch.testing.assert_close(prior.log_prob(z).exp(), by_hand)


def test_bernoulli_divergence_is_the_sum_over_codes_and_groups() -> None:
    """KL(q(s) q(c) ‖ p(s, c)) against Σ_s Σ_c q(s) q(c) log (q(s) q(c) / (π_c p(s | c)))."""
    prior = bernoulli_prior()
    posterior, groups = Bernoulli(normal(8, 2, 4)), normal(9, 2, 3)
    got = prior.kl_divergence(prior.divergences(posterior), groups)
    codes = enumerate_codes(4).double()
    for document in range(2):
        log_s = Bernoulli(posterior.logits[document]).log_prob(codes)[:, None]
        log_c = groups[document].log_softmax(0)[None]
        log_p = prior.weights.log_softmax(0) + prior.components().log_prob(codes[:, None])
        joint = log_s + log_c
        torch.testing.assert_close(got[document], (joint.exp() * (joint - log_p)).sum())


def test_gaussian_divergence_is_that_of_its_parts() -> None:
    prior = gaussian_prior()
    posterior, groups = Gaussian(normal(8, 2, 4), normal(10, 2, 4).exp()), normal(9, 2, 3)
    divergences = prior.divergences(posterior)
    components = prior.components()
    for document in range(2):
        for c in range(3):
            one = Gaussian(posterior.location[document], posterior.deviation[document])
            other = Gaussian(components.location[c], components.deviation[c])
            torch.testing.assert_close(divergences[document, c], one.kl_divergence(other))
    q = groups.softmax(-1)
    expected = (q * (q.log() - prior.weights.log_softmax(0) + divergences)).sum(-1)
    torch.testing.assert_close(prior.kl_divergence(divergences, groups), expected)


def test_best_groups_turn_the_divergence_into_the_marginal_bound() -> None:
    """With q(c) ∝ π_c exp(−KL_c) the divergence is −log Σ_c π_c exp(−KL_c), and no q(c) gives less."""
    prior = bernoulli_prior()
    posterior = Bernoulli(normal(8, 1, 4))
    divergences = prior.divergences(posterior)
    best = prior.weights.log_softmax(0) - divergences
    least = prior.kl_divergence(divergences, best)
    torch.testing.assert_close(least, -best.logsumexp(-1))
    for seed in range(5):
        assert prior.kl_divergence(divergences, normal(seed, 1, 3)) > least


@pytest.mark.parametrize("make", [bernoulli_prior, gaussian_prior])
def test_gradients_of_the_mixture(
    make: Callable[[], BernoulliMixturePrior | GaussianMixturePrior],
) -> None:
    prior = make()
    names = [name for name, _ in prior.named_parameters()]
    s = normal(11, 3, 4).sigmoid()

    def value(*parameters: Tensor) -> Tensor:
        arguments = dict(zip(names, parameters, strict=True))
        result: Tensor = torch.func.functional_call(prior, arguments, (s,))
        return result

    prior.forward = prior.log_prob  # type: ignore[method-assign, assignment]  # functional_call's entry
    parameters = tuple(p.detach().clone().requires_grad_() for p in prior.parameters())
    assert torch.autograd.gradcheck(value, parameters)


@pytest.mark.parametrize("n_bits", [8, 32, 128])
def test_no_gaussian_component_is_much_cheaper_than_another_at_the_start(n_bits: int) -> None:
    """Otherwise it takes all documents and the prior stays one Gaussian, as it did from N(0, 1)."""
    prior = GaussianMixturePrior(20, n_bits, torch.Generator().manual_seed(0))
    divergences = prior.divergences(Gaussian(torch.zeros(1, n_bits), torch.ones(1, n_bits)))
    assert (divergences.max() - divergences.min()).item() < 1
