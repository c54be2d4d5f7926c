"""The compiled way from a network's outputs to codes, against the distributions in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from boltzhash.training import compiled_bound
from boltzhash.training.compiled_bound import SampledCodes, Settings
from boltzhash.training.draws import fill_normal, fill_uniform
from composed_steps import NOISE, check_steps_at_once_learn_alike, composed_codes, settings
from oracles import numbers
from torch_threads import threads

pytestmark = pytest.mark.skipif(
    compiled_bound._steps is None, reason="boltzhash was installed without a compiler"
)
Results = tuple[Tensor, Tensor, Tensor]


def compiled(outputs: Tensor, given: Settings, n_threads: int = 1) -> Results:
    with threads(n_threads):
        generator = torch.Generator().manual_seed(5)
        noisy, divergences, locations, is_on = SampledCodes.apply(outputs, NOISE, given, generator)  # type: ignore[no-untyped-call]
    assert torch.equal(is_on, locations > 0)
    return noisy, divergences, locations


def composed(outputs: Tensor, given: Settings) -> Results:
    """Of the distributions, with the numbers that the compiled one draws."""
    n, rank, k = len(outputs), given.rank, given.n_components
    bits = outputs.shape[1] // (2 + rank)
    generator = torch.Generator().manual_seed(5)
    drawn = fill_normal(torch.empty(n, (1 + k) * (bits + rank) + bits), generator).double()
    u = fill_uniform(torch.empty(n, 2 * bits), generator).double()
    return composed_codes(outputs, given, drawn, u)


def derived(
    function: Callable[[Tensor, Settings], Results], outputs: Tensor, given: Settings
) -> list[Tensor]:
    """The results, and the derivative by the outputs of all of them with and without the locations."""
    own = outputs.clone().requires_grad_()
    results = function(own, given)
    weighed = [(numbers(7 + i, *r.shape) * r).sum() for i, r in enumerate(results)]
    gradients = []
    for total in (weighed[0] + weighed[1], sum(weighed[1:], weighed[0])):
        gradients += torch.autograd.grad(total, own, retain_graph=True)
    return [*results, *gradients]


@pytest.mark.parametrize(
    ("changes", "bits"),
    [
        ({}, 24),
        ({"rank": 0, "n_components": 1}, 16),
        ({"rank": 1}, 3),
        ({"rank": 10, "n_components": 10}, 64),
        ({"n_networks": 2, "rank": 10, "n_components": 10}, 128),
        ({"n_networks": 2, "straight_through": 0.5}, 50),
    ],
)
@pytest.mark.parametrize("size", [1.0, 20.0])  # of outputs: beyond where the logistic function is 1
@pytest.mark.parametrize("n", [1, 8])
def test_sampled_codes(changes: dict[str, Any], bits: int, size: float, n: int) -> None:
    given = settings(**changes)
    outputs = size * numbers(0, n, bits * (2 + given.rank))
    ours, exact = derived(compiled, outputs, given), derived(composed, outputs.double(), given)
    for one, other in zip(ours, exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=2e-5 * size)


def test_they_are_the_same_by_one_thread_and_by_two() -> None:
    given, outputs = settings(n_networks=2), numbers(0, 9, 40 * 5)
    found = [derived(lambda x, g, n=n: compiled(x, g, n), outputs, given) for n in (1, 2)]
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_what_is_not_a_number_is_noticed() -> None:
    given, outputs = settings(), numbers(0, 2, 16 * 5)
    outputs[1, 17] = torch.nan
    _, divergences, _ = compiled(outputs, given)
    assert divergences.isnan().tolist() == [False, True]


def test_deviations_that_are_nearly_zero_are_not_zero() -> None:
    """log(1 + e^-30): 1 + e^-30 is 1."""
    given, outputs = settings(rank=0, n_components=1), numbers(0, 1, 32).requires_grad_()
    with torch.no_grad():
        outputs[:, 16:] = -30
    _, divergences, _ = compiled(outputs, given)
    divergences.sum().backward()
    assert outputs.grad is not None
    assert (outputs.grad[:, 16:] != 0).all()


@pytest.mark.parametrize("spoilt", range(8))
def test_what_does_not_fit_together_is_refused(spoilt: int) -> None:
    sizes, steps = (2, 3, 8, 1, 1), compiled_bound._steps
    shapes = (2 * 8 * 3, 2 * (3 * 9 + 8), 2 * 16, steps.kept_of_sampling(*sizes), 16, 16, 2)
    arrays = [*(np.zeros(shape, np.float32) for shape in shapes), np.zeros(16, np.bool_)]
    steps.sampled_codes(*arrays, sizes, 0.0, 1)
    arrays[spoilt] = arrays[spoilt][:-1].copy()
    with pytest.raises(ValueError, match="do not fit together"):
        steps.sampled_codes(*arrays, sizes, 0.0, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"neighbours__count": 0, "neighbours__contrast": 0.0, "network__networks": 2},
        {"network__hidden_units": 0},
    ],
)
def test_compiled_steps_learn_what_composed_ones_do(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_steps_at_once_learn_alike(monkeypatch, training__device="cpu", **changes)
