"""Gradient estimators against the exact gradient, by enumeration of all codes.

The draws are one big batch of which every row is the same document with logits of its own, so that
the gradient of the summed value is one estimate a row: their mean and variance are what is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from boltzhash.training.distributions import Bernoulli, enumerate_codes
from boltzhash.training.gradients import (
    ARM,
    ESTIMATORS,
    REBAR,
    RELAX,
    GradientEstimator,
    GumbelSoftmax,
    StraightThrough,
    make_estimator,
)

Problem = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(codes, logits, weights) → values. All have one row for each draw, weights (draws, m, words)."""

M, WORDS = 4, 10
START, END = torch.tensor(0.0), torch.tensor(1.0)  # of training
LOGITS = torch.tensor([0.9, -0.6, 0.3, -1.5], dtype=torch.float64)
WEIGHTS = torch.randn(M, WORDS, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
COUNTS = torch.tensor([3, 0, 1, 0, 0, 2, 0, 0, 1, 0], dtype=torch.float64)


def linear(s: Tensor, logits: Tensor, weights: Tensor) -> Tensor:
    return (s * weights[..., 0]).sum(-1) + 1


def multilinear(s: Tensor, logits: Tensor, weights: Tensor) -> Tensor:
    a, b, c, d = s.unbind(-1)
    return 2 * a * b - 3 * b * c * d + weights[..., 0, 0] * a * b * c * d + d


def reconstruction(s: Tensor, logits: Tensor, weights: Tensor) -> Tensor:
    """−log p(x | s): neither linear nor quadratic in s."""
    words = torch.einsum("...m,...mw->...w", s, weights).log_softmax(-1)
    return -words @ COUNTS


def surprise(s: Tensor, logits: Tensor, weights: Tensor) -> Tensor:
    """−log q(s), which depends on the logits directly, too: its mean is the entropy."""
    return -Bernoulli(logits).log_prob(s)


def bound(s: Tensor, logits: Tensor, weights: Tensor) -> Tensor:
    """All that training minimises: −log p(x | s) − log p(s) + log q(s)."""
    return reconstruction(s, logits, weights) - surprise(s, logits, weights)


PROBLEMS = [linear, multilinear, reconstruction, surprise, bound]


class Estimate(NamedTuple):
    """One gradient a draw for logits (draws, m) and for weights (draws, m, words)."""

    logits: Tensor
    weights: Tensor
    value: Tensor
    s: Tensor


def estimate(
    estimator: GradientEstimator, problem: Problem, draws: int, seed: int = 0, progress: float = 0
) -> Estimate:
    logits = LOGITS.repeat(draws, 1).requires_grad_()
    weights = WEIGHTS.repeat(draws, 1, 1).requires_grad_()
    generator = torch.Generator().manual_seed(seed)
    so_far = torch.tensor(float(progress))
    value, s = estimator(logits, lambda s: problem(s, logits, weights), generator, so_far)
    gradients = torch.autograd.grad(
        value.sum(), [logits, weights], allow_unused=True, materialize_grads=True
    )
    return Estimate(*gradients, value.detach(), s)


def exact(problem: Problem) -> tuple[Tensor, Tensor]:
    """∂ Σ_s q(s) f(s) for logits and weights."""
    logits = LOGITS.clone().requires_grad_()
    weights = WEIGHTS.clone().requires_grad_()
    codes = enumerate_codes(M).to(LOGITS)
    rows = (logits.expand(len(codes), -1), weights.expand(len(codes), -1, -1))
    mean = (Bernoulli(logits).log_prob(codes).exp() * problem(codes, *rows)).sum()
    gradients = torch.autograd.grad(
        mean, [logits, weights], allow_unused=True, materialize_grads=True
    )
    return gradients[0], gradients[1]


def standard_errors(draws: Tensor) -> Tensor:
    return draws.std(0) / len(draws) ** 0.5


def total_variance(draws: Tensor) -> float:
    return draws.flatten(1).var(0).sum().item()


def assert_unbiased(draws: Tensor, truth: Tensor) -> None:
    """Within 5 standard errors everywhere, and these small enough to see a bias of a tenth."""
    errors = standard_errors(draws)
    assert 5 * errors.norm() < 0.1 * truth.norm()
    assert ((draws.mean(0) - truth).abs() <= 5 * errors + 1e-12).all()


def relative_bias(draws: Tensor, truth: Tensor) -> float:
    return ((draws.mean(0) - truth).norm() / truth.norm()).item()


def relax(trained: bool = False, problem: Problem = reconstruction) -> RELAX:
    """A control variate with random weights, so that it is really there, or a trained one."""
    generator = torch.Generator().manual_seed(1)
    estimator = RELAX(M, 16, generator).double()
    if not trained:
        nn.init.normal_(estimator.output.weight, std=0.2, generator=generator)
        nn.init.normal_(estimator.output.bias, std=0.2, generator=generator)
        nn.init.constant_(estimator.eta, 0.7)
        return estimator
    optimiser = torch.optim.Adam(estimator.parameters(), lr=0.01)
    rows = (LOGITS.expand(128, -1), WEIGHTS.expand(128, -1, -1))
    for _ in range(400):
        value, _ = estimator(rows[0], lambda s: problem(s, *rows), generator, START)
        optimiser.zero_grad()
        value.mean().backward()
        optimiser.step()
    return estimator


UNBIASED = {
    "arm": ARM(),
    "rebar": REBAR(),
    "rebar, other settings": REBAR(temperature=0.2, eta=0.6),
    "relax": relax(),
}
ALL: dict[str, GradientEstimator] = {
    **UNBIASED,
    "straight-through": StraightThrough(),
    "gumbel-softmax": GumbelSoftmax(),
    "soft gumbel-softmax": GumbelSoftmax(hard=False),
}
DRAWS = 150_000


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", UNBIASED)
def test_unbiased(name: str, problem: Problem) -> None:
    """For the logits, and for the weights inside f; also where f depends on the logits itself."""
    found = estimate(UNBIASED[name], problem, DRAWS)
    truth = exact(problem)
    assert_unbiased(found.logits, truth[0])
    if truth[1].any():
        assert_unbiased(found.weights, truth[1])
    else:
        assert not found.weights.any()


def test_arm_of_one_fair_bit() -> None:
    """|u − ½|: mean 1/4 and variance 1/48. Any other centre has the same mean, and varies more."""
    logits = torch.zeros(DRAWS, 1, dtype=torch.float64, requires_grad=True)
    value, _ = ARM()(logits, lambda s: s.sum(-1), torch.Generator().manual_seed(0), START)
    (slopes,) = torch.autograd.grad(value.sum(), logits)
    assert slopes.mean().item() == pytest.approx(1 / 4, rel=0.01)
    assert slopes.var().item() == pytest.approx(1 / 48, rel=0.02)


@pytest.mark.parametrize("name", ALL)
def test_bits_have_their_probabilities_and_value_is_f_there(name: str) -> None:
    found = estimate(ALL[name], reconstruction, DRAWS)
    assert set(found.s.flatten().tolist()) == {0.0, 1.0}
    assert ((found.s.mean(0) - LOGITS.sigmoid()).abs() < 5 * standard_errors(found.s)).all()
    pairs = torch.corrcoef(found.s.T) - torch.eye(M, dtype=torch.float64)
    assert pairs.abs().max() < 5 / DRAWS**0.5
    at_bits = reconstruction(found.s, LOGITS, WEIGHTS)
    if name == "soft gumbel-softmax":
        assert (found.value - at_bits).abs().mean() > 0.1
    else:
        torch.testing.assert_close(found.value, at_bits, rtol=1e-12, atol=0)


@pytest.mark.parametrize("problem", [linear, multilinear, surprise])
def test_straight_through_is_unbiased_where_f_is_linear_in_each_bit(problem: Problem) -> None:
    assert_unbiased(estimate(StraightThrough(), problem, DRAWS).logits, exact(problem)[0])


def test_straight_through_is_biased_for_a_decoder_but_not_for_its_weights() -> None:
    found, truth = estimate(StraightThrough(), reconstruction, DRAWS), exact(reconstruction)
    assert relative_bias(found.logits, truth[0]) > 0.1
    assert 5 * standard_errors(found.logits).norm() < 0.05 * truth[0].norm()
    assert_unbiased(found.weights, truth[1])


@pytest.mark.parametrize("hard", [True, False])
def test_gumbel_softmax_is_biased_even_for_linear_functions(hard: bool) -> None:
    """At r = 0, τ = 1 its mean slope is ∫σ'² = 1/6, the true one 1/4."""
    logits = torch.zeros(DRAWS, 1, dtype=torch.float64, requires_grad=True)
    value, _ = GumbelSoftmax((1.0, 1.0), hard)(
        logits, lambda s: s.sum(-1), torch.Generator().manual_seed(0), START
    )
    (slopes,) = torch.autograd.grad(value.sum(), logits)
    assert abs(slopes.mean() - 1 / 6) < 5 * standard_errors(slopes)
    assert 5 * standard_errors(slopes) < 0.01


def test_soft_gumbel_softmax_becomes_exact_as_the_temperature_falls() -> None:
    """Bias falls and variance rises, down to no bias that could be seen."""
    truth = exact(reconstruction)
    found = [
        estimate(GumbelSoftmax((t, t), hard=False), reconstruction, DRAWS) for t in (1.0, 0.3, 0.05)
    ]
    biases = [relative_bias(x.logits, truth[0]) for x in found]
    assert biases[0] > 2 * biases[1]
    assert biases[0] > 5 * biases[2]
    assert_unbiased(found[2].logits, truth[0])
    assert relative_bias(found[0].weights, truth[1]) > 0.1
    assert relative_bias(found[2].weights, truth[1]) < 0.02
    variances = [total_variance(x.logits) for x in found]
    assert 4 * variances[0] < 2 * variances[1] < variances[2]


def test_hard_gumbel_softmax_is_biased_for_a_decoder() -> None:
    """The cold limit does not help: forward and backward see different functions."""
    truth = exact(reconstruction)[0]
    for temperature in (1.0, 0.3):
        found = estimate(GumbelSoftmax((temperature, temperature)), reconstruction, DRAWS)
        assert relative_bias(found.logits, truth) > 0.08
        assert 5 * standard_errors(found.logits).norm() < 0.05 * truth.norm()


def test_temperature_follows_progress() -> None:
    estimator = GumbelSoftmax((1.0, 0.25), hard=False)
    ends = torch.tensor([-1.0, 2.0])
    assert estimator.temperature_at(ends).tolist() == [1, 0.25]
    for progress, temperature in ((0.0, 1.0), (0.5, 0.5), (1.0, 0.25)):
        scheduled = estimate(estimator, reconstruction, 20, progress=progress)
        fixed = estimate(GumbelSoftmax((temperature, temperature), False), reconstruction, 20)
        torch.testing.assert_close(scheduled.logits, fixed.logits, rtol=1e-12, atol=0)


def reinforce(
    logits: Tensor, f: Callable[[Tensor], Tensor], generator: torch.Generator, progress: float
) -> tuple[Tensor, Tensor]:
    """f(s) ∂ log q(s) with no baseline: the reference that others must beat."""
    s = Bernoulli(logits.detach()).sample(generator)
    value, log_prob = f(s), Bernoulli(logits).log_prob(s)
    return value + value.detach() * (log_prob - log_prob.detach()), s


def test_rebar_without_control_variate_is_reinforce() -> None:
    found = estimate(REBAR(eta=0.0), bound, 200)
    logits = LOGITS.repeat(200, 1).requires_grad_()
    value = bound(found.s, logits, WEIGHTS)
    score = value.detach() * Bernoulli(logits).log_prob(found.s)
    (gradient,) = torch.autograd.grad((value + score).sum(), logits)
    torch.testing.assert_close(found.logits, gradient, rtol=1e-10, atol=1e-12)


def test_rebar_with_a_cold_control_variate_is_zero_but_near_the_threshold() -> None:
    """x = s there, so that at η = 1 nothing is left of REINFORCE: the gradient is all in few draws."""
    gradients = estimate(REBAR(temperature=1e-3), reconstruction, 10_000).logits
    assert (gradients.abs().amax(-1) < 1e-6).double().mean() > 0.9


def test_variances_are_ordered() -> None:
    """On the decoder: REINFORCE ≫ ARM, REBAR > trained RELAX > the biased ones."""
    estimators: dict[str, GradientEstimator] = {
        "reinforce": reinforce,
        "arm": ARM(),
        "rebar": REBAR(),
        "relax": relax(trained=True),
        "straight-through": StraightThrough(),
        "gumbel": GumbelSoftmax((1.0, 1.0), hard=False),
    }
    variance = {
        name: total_variance(estimate(estimator, reconstruction, 50_000).logits)
        for name, estimator in estimators.items()
    }
    assert 5 * max(variance["arm"], variance["rebar"]) < variance["reinforce"]
    assert 1.2 * variance["relax"] < min(variance["arm"], variance["rebar"])
    assert 1.5 * variance["straight-through"] < variance["relax"]
    assert 1.5 * variance["gumbel"] < variance["relax"]


def test_relax_starts_as_rebar_and_training_lowers_its_variance_not_its_mean() -> None:
    start = estimate(RELAX(M, 16, torch.Generator()).double(), reconstruction, DRAWS)
    torch.testing.assert_close(
        start.logits, estimate(REBAR(), reconstruction, DRAWS).logits, rtol=1e-10, atol=1e-12
    )
    trained = estimate(relax(trained=True), reconstruction, DRAWS)
    assert total_variance(trained.logits) < 0.8 * total_variance(start.logits)
    truth = exact(reconstruction)
    assert_unbiased(trained.logits, truth[0])
    assert_unbiased(trained.weights, truth[1])


def test_gradient_for_the_control_variate_is_that_of_the_squared_gradient() -> None:
    """Finite differences of Σ g² at common random numbers, g read off as any caller would."""
    estimator = RELAX(M, 3, torch.Generator().manual_seed(0)).double()
    generator = torch.Generator().manual_seed(2)
    for parameter in estimator.parameters():
        nn.init.normal_(parameter, generator=generator)
    logits = LOGITS.repeat(7, 1)
    weights = WEIGHTS.repeat(7, 1, 1)

    def run() -> tuple[Tensor, Tensor]:
        leaf = logits.clone().requires_grad_()
        value, _ = estimator(
            leaf,
            lambda s: reconstruction(s, leaf, weights),
            torch.Generator().manual_seed(3),
            START,
        )
        (g,) = torch.autograd.grad(value.sum(), leaf, retain_graph=True)
        return value.sum(), g.square().sum()

    value, _ = run()
    parameters = list(estimator.parameters())
    gradients = torch.autograd.grad(value, parameters)
    step = 1e-5
    for parameter, gradient in zip(parameters, gradients, strict=True):
        assert gradient.abs().max() > 1e-3
        flat = parameter.data.view(-1)
        for i, expected in enumerate(gradient.flatten().tolist()):
            here = flat[i].item()
            sides = []
            for there in (here + step, here - step):
                flat[i] = there
                sides.append(run()[1].item())
            flat[i] = here
            assert (sides[0] - sides[1]) / (2 * step) == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_control_variate_changes_neither_the_value_nor_the_gradient_inside_f() -> None:
    """And takes no gradient from what it is not: logits and weights get REBAR's when it is off."""
    on, off = relax(), RELAX(M, 16, torch.Generator()).double()
    first, second = (estimate(e, bound, 100) for e in (on, off))
    assert torch.equal(first.s, second.s)
    torch.testing.assert_close(first.value, second.value, rtol=1e-12, atol=0)
    torch.testing.assert_close(first.weights, second.weights, rtol=1e-12, atol=0)
    assert (first.logits - second.logits).abs().min() > 0


@pytest.mark.parametrize("name", ALL)
def test_weights_get_the_ordinary_gradient_at_the_sample(name: str) -> None:
    found = estimate(ALL[name], bound, 50)
    weights = WEIGHTS.repeat(50, 1, 1).requires_grad_()
    at_bits = bound(found.s, LOGITS.repeat(50, 1), weights)
    (gradient,) = torch.autograd.grad(at_bits.sum(), weights)
    if name == "soft gumbel-softmax":
        assert not torch.allclose(found.weights, gradient)
    else:
        torch.testing.assert_close(found.weights, gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_tensors_behind_the_logits_that_f_uses_as_well(name: str) -> None:
    """logits = 2h and f = <h, s>: the ordinary gradient s, and twice that for the logits."""
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(40, M, generator=generator, dtype=torch.float64)

    def gradients(through_f: bool) -> tuple[Tensor, Tensor]:
        leaf = h.clone().requires_grad_()
        inside = leaf if through_f else h
        value, s = ALL[name](
            2 * leaf, lambda s: (s * inside).sum(-1), torch.Generator().manual_seed(5), START
        )
        return torch.autograd.grad(value.sum(), leaf)[0], s

    both, s = gradients(through_f=True)
    through_logits, _ = gradients(through_f=False)
    assert through_logits.abs().sum() > 0
    if name == "soft gumbel-softmax":  # f sees the relaxed code
        assert torch.equal((both - through_logits) > 0.5, s > 0.5)
    else:
        torch.testing.assert_close(both - through_logits, s, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", [(6, M), (3, 2, M)])
@pytest.mark.parametrize("name", ALL)
def test_documents_do_not_mix(name: str, shape: tuple[int, ...]) -> None:
    """Another document in the batch changes nothing for this one, in any shape of batch."""
    generator = torch.Generator().manual_seed(0)
    documents = torch.randn(6, M, generator=generator, dtype=torch.float64)
    scales = torch.arange(1.0, 7, dtype=torch.float64)
    changed = torch.tensor([False, True, False, False, True, True])

    def gradients(logits: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        leaf = logits.reshape(shape).clone().requires_grad_()
        value, s = ALL[name](
            leaf,
            lambda s: scale.view(shape[:-1]) * reconstruction(s, leaf, WEIGHTS),
            torch.Generator().manual_seed(5),
            START,
        )
        assert value.shape == shape[:-1]
        assert s.shape == shape
        (gradient,) = torch.autograd.grad(value.sum(), leaf)
        return gradient.reshape(6, M), value.detach().reshape(6)

    before = gradients(documents, scales)
    after = gradients(
        torch.where(changed.unsqueeze(-1), -3 * documents, documents),
        torch.where(changed, 100.0, scales),
    )
    for first, second in zip(before, after, strict=True):
        torch.testing.assert_close(first[~changed], second[~changed], rtol=1e-12, atol=1e-14)
        assert (first[changed] - second[changed]).abs().max() > 0.1
    flat = ALL[name](
        documents,
        lambda s: scales * reconstruction(s, documents, WEIGHTS),
        torch.Generator().manual_seed(5),
        START,
    )
    torch.testing.assert_close(before[1], flat[0].detach(), rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("name", "factor"), [("straight-through", 1.0), ("straight-through-half", 0.5)]
)
def test_straight_through_is_its_formula(name: str, factor: float) -> None:
    """factor · f'(s) σ(r) (1 − σ(r)), at the code that was drawn: with ½, eq. 19."""
    logits = LOGITS.repeat(50, 1).requires_grad_()
    generator = torch.Generator().manual_seed(3)
    estimator = make_estimator(name, M, generator)
    weights = WEIGHTS.expand(50, M, WORDS)
    value, s = estimator(logits, lambda s: reconstruction(s, logits, weights), generator, START)
    value.sum().backward()
    code = s.clone().requires_grad_()
    reconstruction(code, logits.detach(), weights).sum().backward()
    p = logits.detach().sigmoid()
    assert code.grad is not None
    torch.testing.assert_close(logits.grad, factor * code.grad * p * (1 - p), rtol=1e-12, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_saturated_logits_give_finite_gradients(name: str, dtype: torch.dtype) -> None:
    """Trained posteriors have |r| above 10; nothing may overflow, and 0 and 1 stay where they are.

    Half precision is there because uniforms of so few digits are often exactly 0.
    """
    generator = torch.Generator().manual_seed(0)
    estimator = make_estimator(name, 3, generator)
    if isinstance(estimator, nn.Module):
        estimator.to(dtype)
    extreme = torch.tensor([-500.0, 100.0, 500.0], dtype=dtype)
    logits = extreme.repeat(1000, 1).requires_grad_()
    value, s = estimator(logits, lambda s: (s - 0.3).square().sum(-1), generator, END)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    assert torch.equal(s, (extreme > 0).to(dtype).expand(1000, -1))
    assert value.isfinite().all()
    assert gradient.abs().max() < 1e-6


@pytest.mark.parametrize("name", ALL)
def test_randomness_comes_from_the_generator(name: str) -> None:
    first = estimate(ALL[name], reconstruction, 30, seed=8)
    again = estimate(ALL[name], reconstruction, 30, seed=8)
    other = estimate(ALL[name], reconstruction, 30, seed=9)
    for a, b in zip(first, again, strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first.s, other.s)


@pytest.mark.parametrize("name", ALL)
def test_evaluation_without_autograd_and_f_that_ignores_the_code(name: str) -> None:
    logits = LOGITS.repeat(5, 1)
    with torch.no_grad():
        value, s = ALL[name](
            logits,
            lambda s: s.square().sum(-1),
            torch.Generator().manual_seed(0),
            torch.tensor(0.5),
        )
    assert not value.requires_grad
    assert not s.requires_grad
    constant, _ = ALL[name](
        logits, lambda s: torch.ones(5).to(s), torch.Generator(), torch.tensor(0.5)
    )
    assert constant.tolist() == [1.0] * 5


@pytest.mark.parametrize("name", ALL)
def test_f_must_give_one_value_a_code(name: str) -> None:
    with pytest.raises(ValueError, match=r"one value per code, shape \(5,\), got \(5, 1\)"):
        ALL[name](LOGITS.repeat(5, 1), lambda s: s.sum(-1, keepdim=True), torch.Generator(), START)


def test_names_and_arguments() -> None:
    generator = torch.Generator()
    with pytest.raises(ValueError, match=r"'straight-through', .*'relax', got 'reinforce'"):
        make_estimator("reinforce", 8, generator)
    for broken in (
        lambda: REBAR(temperature=0),
        lambda: GumbelSoftmax((1.0, -1.0)),
        lambda: RELAX(8, 4, generator, temperature=float("nan")),
    ):
        with pytest.raises(ValueError, match="temperature must be a number above 0, got"):
            broken()
