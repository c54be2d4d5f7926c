"""Rates that follow their schedule, streams of random numbers, devices, what a batch holds."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from boltzhash.training.loop import Schedule, choose_device, generator_for

CPU = torch.device("cpu")


def test_published_decay_is_every_ten_thousand_steps() -> None:
    schedule = Schedule(100, 100, 1e-3, "steps")
    rates = [schedule.rate(step, 113) for step in (0, 9_999, 10_000, 20_000)]
    assert rates == pytest.approx([1e-3, 1e-3, 0.96e-3, 0.96**2 * 1e-3])


def test_cosine_goes_up_in_the_first_epoch_and_down_to_nothing() -> None:
    schedule = Schedule(5, 10, 1.0, "cosine")
    rates = [schedule.rate(step, 10) for step in range(50)]
    assert rates[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert rates[10] == 1.0
    assert rates[30] == pytest.approx(0.5)
    assert rates[49] == pytest.approx((1 + math.cos(math.pi * 39 / 40)) / 2)
    assert all(later <= earlier for earlier, later in itertools.pairwise(rates[10:]))
    assert Schedule(1, 10, 1.0, "cosine").rate(9, 10) == 1.0


def test_streams_differ_and_repeat() -> None:
    def draw(seed: int, stream: int) -> list[float]:
        return torch.rand(3, generator=generator_for(seed, stream)).tolist()

    assert draw(1, 2) == draw(1, 2)
    assert len({tuple(draw(seed, stream)) for seed in (0, 1) for stream in (0, 1, 2)}) == 6


def test_device_is_chosen_or_named() -> None:
    assert choose_device("cpu").type == "cpu"
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(ValueError, match='device must be "auto" or a torch device, got'):
        choose_device("abacus")
