"""Every distribution against enumeration, its own samples and finite differences, from one table.

All in float64, because what is compared are formulas, not roundings. Codes are so short that every
expectation is a sum over all of them; only the law of ``sample`` needs draws, and is tested by χ².
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import pytest
import torch
from torch import Tensor

from boltzhash.training.distributions import (
    Bernoulli,
    BernoulliMixture,
    Boltzmann,
    CholeskyCovariance,
    Covariance,
    LowRankCovariance,
    enumerate_codes,
)
from oracles import chi_square_p_value, logistic_normal_law, normal

# With a true hypothesis a χ² test fails once in a million seeds, and the seeds are fixed; the wrong
# laws it is shown below are rejected at a p-value far smaller still.
REJECT = 1e-6
DRAWS = 40_000


class Distribution(Protocol):
    """What every distribution over codes offers."""

    @property
    def mean(self) -> Tensor: ...

    def log_prob(self, s: Tensor) -> Tensor: ...

    def sample(self, generator: torch.Generator | None = None) -> Tensor: ...

    def enumerate_support(self) -> Tensor: ...


class Case(NamedTuple):
    """One distribution: how it is built, from what, and where a batch dimension goes in each."""

    build: Callable[..., Distribution]
    parameters: tuple[Tensor, ...]
    batch_at: int = 0

    def distribution(self) -> Distribution:
        return self.build(*self.parameters)

    def repeated(self, n: int) -> Distribution:
        """n documents with the same parameters: one ``sample`` call then draws n codes."""
        return self.build(
            *(p.unsqueeze(self.batch_at).expand(*self._shape(p, n)) for p in self.parameters)
        )

    def _shape(self, p: Tensor, n: int) -> tuple[int, ...]:
        return (*p.shape[: self.batch_at], n, *p.shape[self.batch_at :])


def low_rank(location: Tensor, deviation: Tensor, factor: Tensor) -> Boltzmann:
    return Boltzmann(location, LowRankCovariance(deviation, factor))


def full_rank(location: Tensor, cholesky: Tensor) -> Boltzmann:
    return Boltzmann(location, CholeskyCovariance(cholesky))


def boltzmann_case(seed: int, m: int, v: int) -> Case:
    parameters = (normal(seed, m), 0.3 + normal(seed + 1, m).abs(), normal(seed + 2, m, v))
    return Case(low_rank, parameters)


def cholesky_case(seed: int, m: int) -> Case:
    lower = normal(seed + 1, m, m).tril(-1) + (0.3 + normal(seed + 2, m).abs()).diag()
    return Case(full_rank, (normal(seed, m), lower))


BERNOULLI = {
    "bernoulli": Case(Bernoulli, (normal(1, 4),)),
    "bernoulli, 1 bit": Case(Bernoulli, (normal(2, 1),)),
    "bernoulli, saturated": Case(Bernoulli, (torch.tensor([40.0, -40.0, 0.5]).double(),)),
}
MIXTURE = {
    "mixture, k = 1": Case(BernoulliMixture, (2 * normal(3, 1, 4),), batch_at=1),
    "mixture, k = 3": Case(BernoulliMixture, (2 * normal(4, 3, 4),), batch_at=1),
    "mixture, 1 bit": Case(BernoulliMixture, (2 * normal(5, 2, 1),), batch_at=1),
}
BOLTZMANN = {
    "boltzmann, v = 0": boltzmann_case(10, m=3, v=0),
    "boltzmann, v = 1": boltzmann_case(20, m=3, v=1),
    "boltzmann, v = m": boltzmann_case(30, m=3, v=3),
    "boltzmann, v > m": boltzmann_case(40, m=3, v=5),
    "boltzmann, 1 bit": boltzmann_case(50, m=1, v=1),
    "boltzmann, cholesky": cholesky_case(60, m=3),
    "boltzmann, cholesky, 1 bit": cholesky_case(70, m=1),
}
CASES = {**BERNOULLI, **MIXTURE, **BOLTZMANN}

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
every_bernoulli = pytest.mark.parametrize("case", BERNOULLI.values(), ids=BERNOULLI.keys())
every_boltzmann = pytest.mark.parametrize("case", BOLTZMANN.values(), ids=BOLTZMANN.keys())


def log_probabilities(distribution: Distribution) -> Tensor:
    """log p of every code, a call for each: what is tested is one code at a time."""
    return torch.stack([distribution.log_prob(s) for s in distribution.enumerate_support()])


def dense_covariance(case: Case) -> Tensor:
    """Σ written out from the parameters, without the code under test."""
    if case.build is full_rank:
        _, lower = case.parameters
        return lower @ lower.T
    _, deviation, factor = case.parameters
    return deviation.diag() ** 2 + factor @ factor.T


def boltzmann(case: Case) -> Boltzmann:
    distribution = case.distribution()
    assert isinstance(distribution, Boltzmann)
    return distribution


@every_case
def test_probabilities_sum_to_one(case: Case) -> None:
    log_p = log_probabilities(case.distribution())
    assert log_p.logsumexp(0).item() == pytest.approx(0, abs=1e-12)


@every_case
def test_support_is_every_code_once(case: Case) -> None:
    codes = case.distribution().enumerate_support()
    m = codes.shape[-1]
    assert codes.dtype == torch.float64
    assert len(set(map(tuple, codes.tolist()))) == 2**m == len(codes)
    assert set(codes.flatten().tolist()) == {0.0, 1.0}


@every_case
def test_mean_is_that_of_all_codes(case: Case) -> None:
    distribution = case.distribution()
    expected = log_probabilities(distribution).exp() @ distribution.enumerate_support()
    torch.testing.assert_close(distribution.mean, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "case", [*BERNOULLI.values(), *MIXTURE.values()], ids=[*BERNOULLI, *MIXTURE]
)
def test_samples_follow_log_prob(case: Case) -> None:
    samples = case.repeated(DRAWS).sample(torch.Generator().manual_seed(0))
    probabilities = log_probabilities(case.distribution()).exp()
    assert chi_square_p_value(samples, probabilities) > REJECT


def test_mixture_samples_are_not_those_of_its_mean() -> None:
    """What χ² must be able to see: bits of one component belong together (app. A.3).

    Drawing every bit from its own component would have the same bit probabilities.
    """
    logits = torch.tensor([[3.0, 3.0, 3.0], [-3.0, -3.0, -3.0]]).double()
    case = Case(BernoulliMixture, (logits,), batch_at=1)
    samples = case.repeated(DRAWS).sample(torch.Generator().manual_seed(0))
    mixture = BernoulliMixture(logits)
    independent = log_probabilities(Bernoulli(mixture.mean.logit())).exp()
    assert chi_square_p_value(samples, log_probabilities(mixture).exp()) > REJECT
    assert chi_square_p_value(samples, independent) < 1e-100


@every_boltzmann
def test_boltzmann_sample_is_the_shortcut_and_not_b(case: Case) -> None:
    """``sample`` draws Bernoulli(σ(r)), r ~ N(μ, Σ) (eqs. 15-18): another law than log_prob's."""
    samples = case.repeated(DRAWS).sample(torch.Generator().manual_seed(0))
    shortcut = logistic_normal_law(case.parameters[0], dense_covariance(case))
    assert chi_square_p_value(samples, shortcut) > REJECT
    assert chi_square_p_value(samples, log_probabilities(case.distribution()).exp()) < 1e-12


@every_boltzmann
def test_quadrature_of_the_shortcut_has_converged(case: Case) -> None:
    """The oracle above: half the nodes change it by less than a thousandth of what χ² can see."""
    location, sigma = case.parameters[0], dense_covariance(case)
    coarse, fine = (logistic_normal_law(location, sigma, nodes) for nodes in (32, 64))
    smallest_visible = 0.5 / math.sqrt(DRAWS)  # the standard error of a frequency near 1/2
    assert (coarse - fine).abs().max().item() < smallest_visible / 1000


@every_boltzmann
def test_draws_have_covariance_sigma(case: Case) -> None:
    """E rrᵀ of N(0, Σ) draws (eqs. 17, 26), each entry within 5 of its measured standard errors."""
    b = boltzmann(case)
    zero = torch.zeros_like(b.location)
    r = b.covariance.draws(zero, DRAWS, torch.Generator().manual_seed(0))
    products = r.unsqueeze(-1) * r.unsqueeze(-2)
    error = products.std(0) / math.sqrt(DRAWS)
    assert ((products.mean(0) - dense_covariance(case)).abs() <= 5 * error).all()
    assert (r.mean(0).abs() <= 5 * r.std(0) / math.sqrt(DRAWS)).all()


@every_boltzmann
def test_sample_logits_are_centred_on_the_location(case: Case) -> None:
    """r ~ N(μ, Σ): the same noise as around 0, on top of μ, draw for draw."""
    b = boltzmann(case)
    r = b.sample_logits(7, torch.Generator().manual_seed(3))
    zero = torch.zeros_like(b.location)
    noise = b.covariance.draws(zero, 7, torch.Generator().manual_seed(3))
    assert torch.equal(r, b.location + noise)
    assert r.shape == (7, *b.location.shape)


@every_boltzmann
def test_covariance_is_known_in_all_its_forms(case: Case) -> None:
    """sᵀΣs, Σ_ii and Σ itself against the matrix written out, for codes and for real vectors."""
    covariance: Covariance = boltzmann(case).covariance
    sigma = dense_covariance(case)
    m = sigma.shape[0]
    torch.testing.assert_close(covariance.dense(), sigma, rtol=1e-14, atol=0)
    torch.testing.assert_close(covariance.diagonal_entries(), sigma.diagonal(), rtol=1e-14, atol=0)
    for s in [*enumerate_codes(m).double(), normal(5, m), -normal(6, m)]:
        torch.testing.assert_close(covariance.quadratic(s), s @ sigma @ s, rtol=1e-12, atol=1e-14)


@every_boltzmann
def test_boltzmann_is_the_exponential_of_the_energy(case: Case) -> None:
    """log b(s) = ½ sᵀΣs + μᵀs − log Z (eq. 9), in plain Python."""
    b = boltzmann(case)
    mu, sigma = case.parameters[0].tolist(), dense_covariance(case).tolist()
    m = len(mu)
    weights = []
    for s in b.enumerate_support().tolist():
        pairs = sum(s[i] * sigma[i][j] * s[j] for i in range(m) for j in range(m))
        weights.append(0.5 * pairs + sum(mu[i] * s[i] for i in range(m)))
    log_z = math.log(sum(math.exp(w) for w in weights))
    assert b.log_normalizer().item() == pytest.approx(log_z, rel=1e-12)
    codes = b.enumerate_support()
    assert b.log_weight(codes).tolist() == pytest.approx(weights, rel=1e-12, abs=1e-14)
    expected = [w - log_z for w in weights]
    assert b.log_prob(codes).tolist() == pytest.approx(expected, rel=1e-12)


@every_boltzmann
def test_conditional_logits_are_the_log_odds(case: Case) -> None:
    b = boltzmann(case)
    for s in b.enumerate_support():
        for i in range(len(s)):
            on, off = s.clone(), s.clone()
            on[i], off[i] = 1, 0
            odds = b.log_prob(on) - b.log_prob(off)
            torch.testing.assert_close(b.conditional_logits(s)[i], odds, rtol=1e-11, atol=1e-12)


@every_bernoulli
def test_entropy_and_divergence_by_enumeration(case: Case) -> None:
    """Closed forms against sums over all codes, saturated bits (p log p with p → 0) included."""
    q = Bernoulli(*case.parameters)
    prior = Bernoulli(normal(9, q.logits.shape[-1]))
    log_q, log_prior = log_probabilities(q), log_probabilities(prior)
    entropy = -(log_q.exp() * log_q).sum()
    divergence = (log_q.exp() * (log_q - log_prior)).sum()
    torch.testing.assert_close(q.entropy(), entropy, rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(q.kl_divergence(prior), divergence, rtol=1e-12, atol=1e-15)
    assert q.kl_divergence(q).item() == pytest.approx(0, abs=1e-12)


def leaves(case: Case) -> tuple[Tensor, ...]:
    """The parameters as variables; a factor of no columns has nothing to differentiate."""
    return tuple(p.clone().requires_grad_(p.numel() > 0) for p in case.parameters)


@every_case
def test_gradient_of_log_prob(case: Case) -> None:
    """With respect to the parameters, and to s as a real vector: straight-through needs both."""
    s = torch.rand(
        case.parameters[0].shape[-1],
        generator=torch.Generator().manual_seed(8),
        dtype=torch.float64,
    )

    def log_prob(s: Tensor, *parameters: Tensor) -> Tensor:
        return case.build(*parameters).log_prob(s)

    assert torch.autograd.gradcheck(log_prob, (s.requires_grad_(), *leaves(case)))


@every_case
def test_gradient_of_mean(case: Case) -> None:
    assert torch.autograd.gradcheck(lambda *p: case.build(*p).mean, leaves(case))


@every_boltzmann
def test_gradients_of_weight_and_normalizer(case: Case) -> None:
    s = normal(7, case.parameters[0].shape[-1]).requires_grad_()

    def log_weight(s: Tensor, *parameters: Tensor) -> Tensor:
        b = case.build(*parameters)
        assert isinstance(b, Boltzmann)
        return b.log_weight(s)

    def log_normalizer(*parameters: Tensor) -> Tensor:
        b = case.build(*parameters)
        assert isinstance(b, Boltzmann)
        return b.log_normalizer()

    assert torch.autograd.gradcheck(log_weight, (s, *leaves(case)))
    assert torch.autograd.gradcheck(log_normalizer, leaves(case))


@every_boltzmann
def test_gradient_of_log_normalizer_is_the_mean(case: Case) -> None:
    """∂ log Z / ∂μ = E_b[s]: why the gradient of log Z is as hard as sampling b."""
    parameters = leaves(case)
    b = case.build(*parameters)
    assert isinstance(b, Boltzmann)
    (gradient,) = torch.autograd.grad(b.log_normalizer(), parameters[:1])
    torch.testing.assert_close(gradient, b.mean, rtol=1e-12, atol=1e-14)


@every_bernoulli
def test_gradients_of_entropy_and_divergence(case: Case) -> None:
    logits = leaves(case)
    prior = normal(9, logits[0].shape[-1]).requires_grad_()
    assert torch.autograd.gradcheck(lambda r: Bernoulli(r).entropy(), logits)
    assert torch.autograd.gradcheck(
        lambda r, p: Bernoulli(r).kl_divergence(Bernoulli(p)), (*logits, prior)
    )


@every_boltzmann
def test_reparameterised_logits_have_the_gradients_of_their_formula(case: Case) -> None:
    """R = μ + D^½ε₁ + Uε₂ or μ + Lε with the noise held (eqs. 17, 26), by finite differences."""

    def logits(*parameters: Tensor) -> Tensor:
        b = case.build(*parameters)
        assert isinstance(b, Boltzmann)
        return b.sample_logits(2, torch.Generator().manual_seed(4))

    assert torch.autograd.gradcheck(logits, leaves(case))


def batched_cases(n_documents: int) -> list[tuple[str, Callable[..., Boltzmann], list[Tensor]]]:
    """Boltzmann parameters of several different documents, v = 0, 1, m, > m and Cholesky."""
    n, m = n_documents, 4
    cases: list[tuple[str, Callable[..., Boltzmann], list[Tensor]]] = [
        (f"v = {v}", low_rank, [normal(1, n, m), normal(2, n, m).abs(), normal(3, n, m, v)])
        for v in (0, 1, m, m + 2)
    ]
    return [*cases, ("cholesky", full_rank, [normal(4, n, m), normal(5, n, m, m).tril()])]


BATCHED = [(n, *case) for n in (1, 2, 5) for case in batched_cases(n)]


@pytest.mark.parametrize(
    ("n", "build", "parameters"),
    [(n, build, parameters) for n, _, build, parameters in BATCHED],
    ids=[f"{n} documents, {name}" for n, name, _, _ in BATCHED],
)
def test_a_batch_is_its_documents_one_by_one(
    n: int, build: Callable[..., Boltzmann], parameters: list[Tensor]
) -> None:
    batch = build(*parameters)
    s = (normal(6, n, 4) > 0).double()
    alone = [build(*(p[i] for p in parameters)) for i in range(n)]
    pairs = [
        (batch.log_weight(s), [b.log_weight(s[i]) for i, b in enumerate(alone)]),
        (batch.log_prob(s), [b.log_prob(s[i]) for i, b in enumerate(alone)]),
        (batch.log_normalizer(), [b.log_normalizer() for b in alone]),
        (batch.mean, [b.mean for b in alone]),
        (batch.conditional_logits(s), [b.conditional_logits(s[i]) for i, b in enumerate(alone)]),
        (batch.covariance.dense(), [b.covariance.dense() for b in alone]),
        (batch.covariance.diagonal_entries(), [b.covariance.diagonal_entries() for b in alone]),
    ]
    for together, one_by_one in pairs:
        expected = torch.stack(one_by_one)
        assert together.shape == expected.shape
        torch.testing.assert_close(together, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("v", [0, 1, 4, 6])
def test_draws_of_a_batch_use_each_document_s_own_parameters(n: int, v: int) -> None:
    """Documents so far apart that a draw with a neighbour's μ, D or U would be seen at once."""
    scale = 10.0 ** -torch.arange(n).double()
    location = 1000 * torch.arange(n).double().unsqueeze(-1) + normal(1, n, 4)
    deviation = scale.unsqueeze(-1) * (0.5 + normal(2, n, 4).abs())
    factor = scale[:, None, None] * normal(3, n, 4, v)
    batch = low_rank(location, deviation, factor)
    draws = batch.sample_logits(4000, torch.Generator().manual_seed(0)) - location
    products = draws.unsqueeze(-1) * draws.unsqueeze(-2)
    error = products.std(0) / math.sqrt(len(draws))
    sigma = torch.stack([d.diag() ** 2 + u @ u.T for d, u in zip(deviation, factor, strict=True)])
    assert ((products.mean(0) - sigma).abs() <= 5 * error).all()


def mixture_log_prob(components: list[list[float]], s: list[float]) -> float:
    """Log 1/k Σ_j Π_i σ(r_ji)^{s_i} (1 − σ(r_ji))^{1 − s_i} of one document, as eq. 21 reads."""
    total = 0.0
    for r in components:
        p = [1 / (1 + math.exp(-x)) for x in r]
        total += math.prod(q if bit else 1 - q for q, bit in zip(p, s, strict=True))
    return math.log(total / len(components))


@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("m", [1, 6])
def test_mixture_of_a_batch_is_a_loop_over_documents(k: int, n: int, m: int) -> None:
    logits, s = 2 * normal(1, k, n, m), (normal(2, n, m) > 0).double()
    expected = [mixture_log_prob(logits[:, i].tolist(), s[i].tolist()) for i in range(n)]
    actual = BernoulliMixture(logits).log_prob(s)
    assert actual.shape == (n,)
    assert actual.tolist() == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("m", [1, 5])
def test_mixture_never_mixes_documents_exactly(k: int, n: int, m: int) -> None:
    """Equal to the last bit: at |r| ≥ 1000 no exponential is left, so every sum is of integers.

    Component j of document i charges 1000 (j + 1) + i for a wrong bit, which names both.
    """
    s = (normal(2, n, m) > 0).double()
    right = (normal(3, k, n, m) > 0).double()
    charge = torch.tensor([[[1000.0 * (j + 1) + i] for i in range(n)] for j in range(k)]).double()
    actual = BernoulliMixture((2 * right - 1) * charge).log_prob(s)
    for i in range(n):
        log_p = []
        for j in range(k):
            wrong = sum(right[j, i, b] != s[i, b] for b in range(m))
            log_p.append(-float(wrong) * charge[j, i].item())
        log_p.sort()
        best = sum(x == log_p[-1] for x in log_p)  # equal components add up, others are e^-1000
        assert actual[i].item() == log_p[-1] + math.log(best) - math.log(k)


@pytest.mark.parametrize("k", [1, 10])
def test_a_document_does_not_see_its_neighbours(k: int) -> None:
    """Exchanging all other documents leaves one document's log_prob the same to the last bit."""
    logits, s = normal(1, k, 5, 16), (normal(2, 5, 16) > 0).double()
    others, other_s = normal(3, k, 5, 16), (normal(4, 5, 16) > 0).double()
    others[:, 2], other_s[2] = logits[:, 2], s[2]
    before = BernoulliMixture(logits).log_prob(s)
    after = BernoulliMixture(others).log_prob(other_s)
    assert before[2].item() == after[2].item()
    assert (before != after).sum() == 4


def test_mixture_of_long_codes_does_not_underflow() -> None:
    """Probabilities of 4096-bit codes are 0 in any float; their logarithms are not."""
    logits = torch.zeros(10, 1, 4096, dtype=torch.float64)
    log_p = BernoulliMixture(logits).log_prob(torch.ones(1, 4096, dtype=torch.float64))
    assert log_p.item() == pytest.approx(-4096 * math.log(2), rel=1e-14)


def test_too_many_bits_to_enumerate_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 20 bits, got 21"):
        enumerate_codes(21)


@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_mixture_log_prob_broadcasts_over_codes_in_front(k: int) -> None:
    """All codes at once give what each gives alone, also where k equals a number of codes."""
    mixture = BernoulliMixture(normal(k, k, 3))
    codes = mixture.enumerate_support()
    together = mixture.log_prob(codes)
    assert together.shape == (8,)
    alone = torch.stack([mixture.log_prob(s) for s in codes])
    torch.testing.assert_close(together, alone, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(together.logsumexp(0).exp().item(), 1.0)
