"""The paper's propositions and the bound that training uses, on codes short enough to enumerate.

Expectations over s are sums over all codes. What is left random are the Gaussian draws: a claim
about those holds within ``SIGMAS`` of the standard error measured on the same draws, seeds fixed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from boltzhash.training.distributions import (
    Bernoulli,
    BernoulliMixture,
    Boltzmann,
    CholeskyCovariance,
    LowRankCovariance,
    enumerate_codes,
)
from boltzhash.training.objectives import (
    regulariser_rearranged,
    word_log_likelihood,
)
from boltzhash.training.rows import SparseRows
from oracles import chi_square_p_value, logistic_normal_law, normal, regulariser_as_printed

SIGMAS = 5
REJECT = 1e-6  # χ² against a true law; the wrong law is rejected at far less


def low_rank(seed: int, m: int, v: int, scale: float = 1.0) -> Boltzmann:
    """A posterior with random μ, D and U; ``scale`` multiplies Σ."""
    root = math.sqrt(scale)
    covariance = LowRankCovariance(
        root * (0.5 + normal(seed + 1, m).abs() / 2), root * normal(seed + 2, m, v)
    )
    return Boltzmann(normal(seed, m) - 0.5, covariance)


def full_rank(seed: int, m: int) -> Boltzmann:
    lower = normal(seed + 1, m, m).tril(-1) / 2 + (0.5 + normal(seed + 2, m).abs() / 2).diag()
    return Boltzmann(normal(seed, m) - 0.5, CholeskyCovariance(lower))


def codes_of(m: int) -> Tensor:
    return enumerate_codes(m).double()


def bernoulli_probabilities(r: Tensor) -> Tensor:
    """p(s | r) of every code, on a new last dimension."""
    return Bernoulli(r.unsqueeze(-2)).log_prob(codes_of(r.shape[-1])).exp()


def boltzmann_probabilities(b: Boltzmann) -> Tensor:
    return b.log_prob(b.enumerate_support()).exp()


def shortcut_probabilities(b: Boltzmann, nodes: int = 40) -> Tensor:
    return logistic_normal_law(b.location, b.covariance.dense(), nodes)


def gaussian_log_density(r: Tensor, mean: Tensor, sigma: Tensor) -> Tensor:
    log_density: Tensor = MultivariateNormal(mean, sigma).log_prob(r)  # type: ignore[no-untyped-call]
    return log_density


def total_variation(p: Tensor, q: Tensor) -> float:
    return 0.5 * (p - q).abs().sum().item()


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """KL(p ‖ q) over the last dimension."""
    return (p * (p.log() - q.log())).sum(-1)


def mean_and_error(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean over the first dimension and its standard error."""
    return x.mean(0), x.std(0) / math.sqrt(len(x))


# --- Proposition 1 --------------------------------------------------------------------------------

POSTERIORS = {
    "m = 1": low_rank(1, 1, 1),
    "m = 2": low_rank(2, 2, 1),
    "m = 3, v = 0": low_rank(3, 3, 0),
    "m = 5, v > m": low_rank(4, 5, 7, scale=0.5),
    "m = 6, cholesky": full_rank(5, 6),
    "m = 10": low_rank(6, 10, 2, scale=0.3),
}
every_posterior = pytest.mark.parametrize("b", POSTERIORS.values(), ids=POSTERIORS.keys())


@every_posterior
def test_proposition_1_by_sampling(b: Boltzmann) -> None:
    """r ~ p(r), then s ~ Bernoulli(σ(r)), has the law b; with r ~ N(μ, Σ) it does not."""
    generator = torch.Generator().manual_seed(0)
    n = 100_000
    exact = Bernoulli(b.sample_logits_exact(n, generator)).sample(generator)
    shortcut = Bernoulli(b.sample_logits(n, generator)).sample(generator)
    probabilities = boltzmann_probabilities(b)
    assert chi_square_p_value(exact, probabilities) > REJECT
    assert chi_square_p_value(shortcut, probabilities) < 1e-100


@every_posterior
def test_exact_logits_have_the_moments_of_their_mixture(b: Boltzmann) -> None:
    """E r = μ + Σ E s and Cov r = Σ + Σ Cov(s) Σ: the shift by Σs that the shortcut leaves out."""
    n = 100_000
    r = b.sample_logits_exact(n, torch.Generator().manual_seed(1))
    codes, probabilities = b.enumerate_support(), boltzmann_probabilities(b)
    sigma = b.covariance.dense()
    centred = codes - probabilities @ codes
    expected = b.location + sigma @ (probabilities @ codes)
    mean, error = mean_and_error(r)
    assert ((mean - expected).abs() <= SIGMAS * error).all()
    deviation = r - expected
    mean, error = mean_and_error(deviation.unsqueeze(-1) * deviation.unsqueeze(-2))
    covariance = sigma + sigma @ (centred.T @ (probabilities.unsqueeze(-1) * centred)) @ sigma
    assert ((mean - covariance).abs() <= SIGMAS * error).all()


@pytest.mark.parametrize(
    "b", [low_rank(1, 1, 1), low_rank(2, 2, 1), full_rank(3, 2)], ids=["m = 1", "m = 2", "cholesky"]
)
def test_proposition_1_by_quadrature(b: Boltzmann) -> None:
    """b(s) = ∫ p(s | r) p(r) dr with p(r) = 1/Z Π (e^{r_i} + 1) N(r; μ, Σ) (eqs. 12, 14).

    The trapezoid rule; the range holds every N(Σs + μ, Σ) to ten standard deviations.
    """
    m = b.location.shape[0]
    axis = torch.linspace(-20, 25, 901, dtype=torch.float64)
    cell = (axis[1] - axis[0]).item() ** m
    r = torch.cartesian_prod(*[axis] * m).reshape(-1, m)
    gaussian = gaussian_log_density(r, b.location, b.covariance.dense())
    log_p_r = (r.exp() + 1).log().sum(-1) + gaussian - b.log_normalizer()
    spread = b.covariance.diagonal_entries().sqrt()
    centres = b.enumerate_support() @ b.covariance.dense() + b.location
    assert (centres - 10 * spread > axis[0]).all()
    assert (centres + 10 * spread < axis[-1]).all()
    assert cell * log_p_r.exp().sum().item() == pytest.approx(1, abs=1e-9)
    integral = cell * (log_p_r.exp().unsqueeze(-1) * bernoulli_probabilities(r)).sum(0)
    torch.testing.assert_close(integral, boltzmann_probabilities(b), rtol=0, atol=1e-9)


@every_posterior
def test_proposition_1_density_is_a_mixture_of_gaussians(b: Boltzmann) -> None:
    """1/Z Π (e^{r_i} + 1) N(r; μ, Σ) = Σ_s b(s) N(r; Σs + μ, Σ), point by point.

    What ``sample_logits_exact`` draws from is thereby the paper's p(r) and not just like it.
    """
    sigma = b.covariance.dense()
    r = b.location + 4 * normal(8, 50, len(b.location))
    gaussian = gaussian_log_density(r, b.location, sigma)
    tilted = (r.exp() + 1).log().sum(-1) + gaussian - b.log_normalizer()
    codes = b.enumerate_support()
    components = gaussian_log_density(r.unsqueeze(-2), codes @ sigma + b.location, sigma)
    mixture = (b.log_prob(codes) + components).logsumexp(-1)
    torch.testing.assert_close(tilted, mixture, rtol=1e-10, atol=1e-10)


# --- the Gaussian shortcut ------------------------------------------------------------------------


def test_shortcut_is_another_law_under_strong_coupling() -> None:
    """Two bits tied with Σ₁₂ = 4; a coarser quadrature of the shortcut agrees to 1e-6."""
    b = Boltzmann(
        torch.full((2,), -2.0, dtype=torch.float64),
        LowRankCovariance(
            torch.full((2,), 0.1, dtype=torch.float64), torch.full((2, 1), 2.0, dtype=torch.float64)
        ),
    )
    shortcut = shortcut_probabilities(b, nodes=160)
    torch.testing.assert_close(shortcut, shortcut_probabilities(b, 120), rtol=0, atol=1e-6)
    assert total_variation(shortcut, boltzmann_probabilities(b)) > 0.5


def test_shortcut_becomes_exact_as_sigma_vanishes() -> None:
    """TV(shortcut, b) → 0, and in proportion to Σ: a tenth of Σ leaves a tenth of the distance."""
    distances = []
    for scale in (1.0, 1e-1, 1e-2, 1e-3, 1e-4):
        b = low_rank(7, 3, 2, scale)
        distances.append(total_variation(shortcut_probabilities(b), boltzmann_probabilities(b)))
    assert distances[0] > 0.1
    ratios = [small / large for large, small in pairwise(distances)]
    assert all(ratio < 0.2 for ratio in ratios)
    assert ratios[-1] == pytest.approx(0.1, rel=0.01)
    assert distances[-1] < 1e-4


# --- Proposition 2 --------------------------------------------------------------------------------

M = 3
REPLICATES = 4000
K_MAX = 256


class Setting(NamedTuple):
    """A posterior, the law q of its codes for one way of drawing r, and draws of r."""

    posterior: Boltzmann
    q: Tensor  # (2^m,), with infinitely many components h_k would be this
    components: Tensor  # p(s | r) with shape (replicates, k, 2^m)

    def mixture(self, k: int) -> Tensor:
        """h_k(s) of each replicate, of its first k components, so that h_k and h_k+1 are nested."""
        return self.components[:, :k].mean(1)


def tiny_decoder() -> Tensor:
    """log p(x | s) of every code: three words, a linear decoder, one document."""
    word_logits = codes_of(M) @ normal(20, M, 3) + normal(21, 3)
    n = len(word_logits)
    target = SparseRows(
        torch.tensor([0, 2]).repeat(n),
        torch.tensor([2.0, 1.0], dtype=torch.float64).repeat(n),
        torch.arange(0, 2 * n + 1, 2),
    )
    return word_log_likelihood(word_logits, target)


def elbo(q: Tensor, log_joint: Tensor) -> Tensor:
    """L = E_q[log p(x, s) − log q(s)] (eq. 3)."""
    return (q * (log_joint - q.log())).sum()


PRIOR = Bernoulli(torch.tensor([0.4, -0.3, 0.1], dtype=torch.float64))


def log_joint() -> Tensor:
    return tiny_decoder() + PRIOR.log_prob(codes_of(M))


@pytest.fixture(scope="module", params=["exact", "shortcut"])
def setting(request: pytest.FixtureRequest) -> Setting:
    """Proposition 2 holds for whatever law r has: for Proposition 1's and for the Gaussian."""
    b = low_rank(11, M, 2)
    generator = torch.Generator().manual_seed(2)
    n = REPLICATES * K_MAX
    if request.param == "exact":
        r, q = b.sample_logits_exact(n, generator), boltzmann_probabilities(b)
    else:
        r, q = b.sample_logits(n, generator), shortcut_probabilities(b)
    components = bernoulli_probabilities(r).reshape(REPLICATES, K_MAX, -1)
    return Setting(b, q, components)


def gap(setting: Setting, k: int) -> tuple[Tensor, Tensor]:
    """L − L_k = E KL(h_k ‖ q) (eq. 22), and its standard error."""
    return mean_and_error(divergence(setting.mixture(k), setting.q))


def test_draws_of_r_have_the_law_they_are_compared_with(setting: Setting) -> None:
    """E p(s | r) = q(s): else the limit of h_k would be something else than q."""
    mean, error = mean_and_error(setting.components.flatten(0, 1))
    assert ((mean - setting.q).abs() <= SIGMAS * error).all()


def test_bound_grows_with_k_to_the_elbo(setting: Setting) -> None:
    """Proposition 2: L_1 ≤ L_2 ≤ L_4 ≤ ... → L; every step is larger than its error.

    For large k the gap is E KL(h_k ‖ q) = 1/2k Σ_s Var p(s | r) / q(s) + O(1/k²), a number known
    apart from the bound: not only does the gap vanish, it does so as fast as theory says.
    """
    ks = [2**i for i in range(9)]
    for k, larger in pairwise(ks):
        growth = divergence(setting.mixture(k), setting.q) - divergence(
            setting.mixture(larger), setting.q
        )
        mean, error = mean_and_error(growth)
        assert mean > SIGMAS * error
    first, _ = gap(setting, 1)
    last, error = gap(setting, K_MAX)
    chi_square = (setting.components.flatten(0, 1).var(0) / setting.q).sum()
    assert last < first / 100
    expected = chi_square / (2 * K_MAX)
    assert (last - expected).abs() <= SIGMAS * error  # O(1/k²) is a tenth of this here


@pytest.mark.parametrize("k", [1, 2, 5, 16])
def test_growth_is_the_divergence_between_neighbours(setting: Setting, k: int) -> None:
    """L_{k+1} − L_k = E KL(h_k ‖ h_{k+1}) ≥ 0, the identity at the end of appendix A.2."""
    now, next_ = setting.mixture(k), setting.mixture(k + 1)
    growth = divergence(now, setting.q) - divergence(next_, setting.q)
    neighbours = divergence(now, next_)
    assert (neighbours >= 0).all()
    mean, error = mean_and_error(growth - neighbours)
    assert mean.abs() <= SIGMAS * error
    mean, error = mean_and_error(neighbours)
    assert mean > SIGMAS * error


def printed_expectation(b: Boltzmann, q: Tensor, r: Tensor) -> Tensor:
    """E over s ~ q and s̃ ~ h_k of ``regulariser_as_printed``, from all pairs of codes; r (k, m)."""
    codes = codes_of(M)
    n = len(codes)
    s, s_tilde = codes.repeat_interleave(n, 0), codes.repeat(n, 1)
    mixture = BernoulliMixture(r.unsqueeze(1).expand(-1, n * n, -1))
    values = regulariser_as_printed(b, mixture, PRIOR, s, s_tilde).reshape(n, n)
    h = bernoulli_probabilities(r).mean(0)
    return q @ values @ h


@pytest.mark.parametrize("k", [1, 3, 10])
def test_bound_without_log_z_is_the_elbo_less_a_divergence(k: int) -> None:
    """Eq. 23 = eq. 22 for any components r: the code's two energy terms say ELBO − KL(h_k ‖ b).

    An identity and no estimate: log Z, enumerated on one side, is nowhere on the other.
    """
    b = low_rank(11, M, 2)
    q = boltzmann_probabilities(b)
    r = b.sample_logits(k, torch.Generator().manual_seed(k))
    without_z = q @ tiny_decoder() + printed_expectation(b, q, r)
    h = bernoulli_probabilities(r).mean(0)
    with_z = elbo(q, log_joint()) - divergence(h, q)
    torch.testing.assert_close(without_z, with_z, rtol=1e-12, atol=1e-12)


def test_elbo_with_the_energy_written_out() -> None:
    """Eq. 11 = eq. 3 for q = b: E_b[log p(x, s) + E(s)] + log Z."""
    b = low_rank(11, M, 2)
    q = boltzmann_probabilities(b)
    with_energy = q @ (log_joint() - b.log_weight(codes_of(M))) + b.log_normalizer()
    torch.testing.assert_close(with_energy, elbo(q, log_joint()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("k", [1, 10])
def test_sampled_bound_estimates_the_bound_of_the_shortcut(k: int) -> None:
    """Eq. 24 as codes and components of the shortcut feed it: its mean is L_k of the shortcut's law.

    L_k there is ELBO(q) − E KL(h_k ‖ q), q the law of the shortcut's codes: not the Boltzmann ELBO.
    """
    b = low_rank(11, M, 2)
    n = 40_000
    batch = repeated(b, n)
    generator = torch.Generator().manual_seed(k)
    s = batch.sample(generator)
    mixture = BernoulliMixture(batch.sample_logits(k, generator))
    regulariser = regulariser_as_printed(batch, mixture, PRIOR, s, mixture.sample(generator))
    numbers = (s.long() * torch.tensor([4, 2, 1])).sum(-1)
    mean, error = mean_and_error(tiny_decoder()[numbers] + regulariser)
    q = shortcut_probabilities(b)
    h = bernoulli_probabilities(b.sample_logits(n * k, generator)).reshape(n, k, -1).mean(1)
    gap, gap_error = mean_and_error(divergence(h, q))
    expected = elbo(q, log_joint()) - gap
    assert (mean - expected).abs() <= SIGMAS * (error**2 + gap_error**2).sqrt()
    if (
        k == 1
    ):  # and clearly not L_1 measured against b, whose energy only the printed form mentions
        boltzmann = elbo(boltzmann_probabilities(b), log_joint()) - divergence(
            h, boltzmann_probabilities(b)
        ).mean(0)
        assert (mean - boltzmann).abs() > SIGMAS * error


# --- log Z cancels --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shifted(Boltzmann):
    """The same posterior with a constant added to its energy."""

    constant: float

    def log_weight(self, s: Tensor) -> Tensor:
        return super().log_weight(s) - self.constant


@dataclass(frozen=True)
class Normalised(Boltzmann):
    """The same posterior with log b(s) in place of −E(s): log Z enumerated, in both terms."""

    def log_weight(self, s: Tensor) -> Tensor:
        plain = Boltzmann(self.location, self.covariance)
        return plain.log_weight(s) - plain.log_normalizer()


def leaf_posterior() -> tuple[Boltzmann, list[Tensor]]:
    parameters = [0.5 * normal(30, 4, M), 0.5 + normal(31, 4, M).abs(), normal(32, 4, M, 2)]
    leaves = [p.requires_grad_() for p in parameters]
    return Boltzmann(leaves[0], LowRankCovariance(leaves[1], leaves[2])), leaves


@pytest.mark.parametrize("other", ["shifted", "normalised"])
def test_constant_of_the_energy_cancels(other: str) -> None:
    """Per document and draw, in value and in gradient: neither log Z nor ∂ log Z is missed."""
    b, leaves = leaf_posterior()
    changed = (
        Shifted(b.location, b.covariance, 7.25)
        if other == "shifted"
        else Normalised(b.location, b.covariance)
    )
    assert not torch.allclose(b.log_weight(b.location), changed.log_weight(b.location))
    generator = torch.Generator().manual_seed(0)
    s = b.sample(generator)
    mixture = BernoulliMixture(b.sample_logits(3, generator))
    s_tilde = mixture.sample(generator)
    assert not torch.equal(s, s_tilde)  # else the energies would cancel for want of a difference
    plain, with_constant = (
        regulariser_as_printed(posterior, mixture, PRIOR, s, s_tilde) for posterior in (b, changed)
    )
    torch.testing.assert_close(plain, with_constant, rtol=0, atol=1e-13)
    gradients = torch.autograd.grad(plain.sum(), leaves, retain_graph=True)
    with_constants = torch.autograd.grad(with_constant.sum(), leaves)
    for a, c in zip(gradients, with_constants, strict=True):
        assert a.abs().max() > 0.01
        torch.testing.assert_close(a, c, rtol=0, atol=1e-13)


# --- the two forms of the regulariser -------------------------------------------------------------


def repeated(b: Boltzmann, n: int) -> Boltzmann:
    """n documents with the same posterior."""
    assert isinstance(b.covariance, LowRankCovariance)
    return Boltzmann(
        b.location.expand(n, -1),
        LowRankCovariance(
            b.covariance.deviation.expand(n, -1), b.covariance.factor.expand(n, -1, -1)
        ),
    )


class Estimates(NamedTuple):
    """One draw a row of both forms: the value, and the gradient with respect to each parameter."""

    printed: list[Tensor]
    rearranged: list[Tensor]
    energy: list[Tensor]  # of s alone: what the printed form would be off by, were one left out


NAMES = ["value", "location", "deviation", "factor"]


@pytest.fixture(scope="module", params=[1, 10], ids=["k = 1", "k = 10"])
def estimates(request: pytest.FixtureRequest) -> Estimates:
    """Parameters repeated as leaves, so that one backward pass gives the gradient of every draw."""
    n, m, v = 40_000, 6, 2
    parameters = [normal(40, m), 0.4 + 0.3 * normal(41, m).abs(), 0.5 * normal(42, m, v)]
    leaves = [p.expand(n, *p.shape).clone().requires_grad_() for p in parameters]
    posterior = Boltzmann(leaves[0], LowRankCovariance(leaves[1], leaves[2]))
    prior = Bernoulli(0.5 * normal(43, m))
    generator = torch.Generator().manual_seed(5)
    s = posterior.sample(generator)
    mixture = BernoulliMixture(posterior.sample_logits(request.param, generator))
    s_tilde = mixture.sample(generator)
    printed = regulariser_as_printed(posterior, mixture, prior, s, s_tilde)
    rearranged = regulariser_rearranged(mixture, prior, s_tilde)

    def with_gradients(values: Tensor) -> list[Tensor]:
        gradients = torch.autograd.grad(values.sum(), leaves, retain_graph=True)
        return [values.detach().unsqueeze(-1), *(g.flatten(1) for g in gradients)]

    energy = -posterior.log_weight(s)
    return Estimates(*(with_gradients(x) for x in (printed, rearranged, energy)))


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_have_the_same_expectation(estimates: Estimates, name: str) -> None:
    """The difference of the two on the same draws has mean zero, entry by entry.

    That the test can tell is asserted too: a tenth of an energy left over would be seen.
    """
    i = NAMES.index(name)
    difference = estimates.printed[i] - estimates.rearranged[i]
    mean, error = mean_and_error(difference)
    assert (mean.abs() <= SIGMAS * error).all()
    assert (estimates.energy[i].mean(0).abs() / 10 > SIGMAS * error).any()


@pytest.mark.parametrize("name", NAMES)
def test_printed_form_varies_more(estimates: Estimates, name: str) -> None:
    """Summed over entries, by more than the variances' own error."""
    i = NAMES.index(name)
    squared = [
        (x - x.mean(0)).square().sum(-1) for x in (estimates.printed[i], estimates.rearranged[i])
    ]
    mean, error = mean_and_error(squared[0] - squared[1])
    assert mean > SIGMAS * error
