"""Batches that cover everything once, and rates that follow their schedule."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import sparse

from boltzhash.training import Schedule, choose_device, generator_for, minibatches


@pytest.mark.parametrize("batch_size", [1, 3, 7, 10, 25])
def test_batches_cover_every_row_once_in_order(batch_size: int) -> None:
    rng = np.random.default_rng(0)
    one = sparse.random(10, 6, 0.3, format="csr", random_state=rng)
    other = sparse.random(10, 4, 0.5, format="csr", random_state=rng)
    order = rng.permutation(10)
    batches = list(minibatches([one, other], batch_size, order, torch.device("cpu")))
    assert [b[0].n_rows for b in batches[:-1]] == [batch_size] * (len(batches) - 1)
    for number, matrix in enumerate((one, other)):
        seen = torch.cat([b[number].dense(matrix.shape[1]) for b in batches]).numpy()
        np.testing.assert_array_equal(seen, matrix.toarray()[order])


def test_rows_without_words_keep_their_place() -> None:
    matrix = sparse.csr_matrix(np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]))
    (batch,) = minibatches([matrix], 3, np.array([2, 1, 0]), torch.device("cpu"))
    assert batch[0].dense(2).tolist() == [[0, 0], [1, 2], [0, 0]]


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
