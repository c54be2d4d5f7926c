"""Steps take the faster number of threads, soon after it changes, and learn the same with either."""

from __future__ import annotations

from collections.abc import Callable, Generator
from itertools import cycle

import numpy as np
import pytest
import torch
from scipy import sparse

from boltzhash.hashers import HASHERS
from boltzhash.hashers.shared.trained import TrainedHasher
from boltzhash.training import step_threads
from boltzhash.training.step_threads import StepThreads, faster
from torch_threads import threads

QUIET = {2: 0.6, 1: 1.0}  # seconds of a step by its number of threads
BUSY = {2: 4.0, 1: 1.5}


def taken(n_steps: int, seconds: Callable[[int], dict[int, float]]) -> list[int]:
    """The threads of each step, where step i takes ``seconds(i)``."""
    choices = faster(1, 2)
    chosen = [next(choices)]
    for step in range(n_steps - 1):
        chosen.append(choices.send(seconds(step)[chosen[-1]]))
    return chosen


@pytest.mark.parametrize(("load", "best"), [(QUIET, 2), (BUSY, 1)])
def test_the_faster_number_takes_nearly_all_steps(load: dict[int, float], best: int) -> None:
    steps = taken(400, lambda step: load)
    assert sum(load[n] for n in steps) < 1.1 * 400 * load[best]
    assert set(steps[200:]) == {1, 2}  # the other is still tried now and then


def test_a_short_fit_on_a_busy_machine_tries_two_threads_once() -> None:
    assert taken(20, lambda step: BUSY).count(2) == 1


def test_a_machine_that_becomes_busy_is_noticed_within_ten_steps() -> None:
    steps = taken(300, lambda step: QUIET if step < 100 else BUSY)
    assert steps[60:100].count(2) > 30
    assert steps[110:].count(2) < 12


def test_a_machine_that_becomes_quiet_is_noticed() -> None:
    steps = taken(300, lambda step: BUSY if step < 100 else QUIET)
    assert steps[60:100].count(1) > 30
    assert steps[200:].count(2) > 90


def test_a_number_that_the_user_sets_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with threads(3), StepThreads().step(200, 64):
        assert torch.get_num_threads() == 3


def test_torch_has_its_threads_back_after_a_step_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with threads(4):
        steps = StepThreads()
        with pytest.raises(ZeroDivisionError), steps.step(200, 64):
            assert torch.get_num_threads() == 1
            1 / 0  # noqa: B018
        assert torch.get_num_threads() == 4
        monkeypatch.setattr(steps, "_n_threads", 2)
        for n_documents, n_bits, expected in ((100, 64, 2), (100, 8, 1), (13, 64, 1)):
            with steps.step(n_documents, n_bits):  # the last two cannot be shared evenly
                assert torch.get_num_threads() == expected


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="only MKL's products are known")
@pytest.mark.parametrize("batch_size", [100, 200])
@pytest.mark.parametrize(
    "kind", [name for name, kind in HASHERS.items() if issubclass(kind, TrainedHasher)]
)
def test_what_is_learned_does_not_depend_on_threads(
    kind: str, batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with threads(2):
        learned = [weights(kind, batch_size, turns, monkeypatch) for turns in ([1], [2], [2, 1, 1])]
    for others in learned[1:]:
        assert learned[0].keys() == others.keys()
        for name, array in learned[0].items():
            np.testing.assert_array_equal(array, others[name], err_msg=name)


def weights(
    kind: str, batch_size: int, turns: list[int], monkeypatch: pytest.MonkeyPatch
) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    """Learned from 413 documents, the last 13 of which make a step of their own."""

    def in_turns(usual: int, other: int) -> Generator[int, float, None]:
        turn = cycle(turns)
        while True:
            yield next(turn)

    monkeypatch.setattr(step_threads, "faster", in_turns)
    settings = {
        "n_bits": 32,
        "training__epochs": batch_size // 100,
        "training__batch_size": batch_size,
    }
    hasher = HASHERS[kind]().set_params(training__device="cpu", random_state=0, **settings)
    hasher.fit(documents())
    assert isinstance(hasher, TrainedHasher)
    return hasher.weights_


def documents() -> sparse.csr_matrix:
    """413 of 3,000 words: enough that two threads share what a step computes."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(3_000, 0.02), size=8)
    counts = np.stack([rng.multinomial(80, topics[i % 8]) for i in range(413)])
    return sparse.csr_matrix(counts.astype(np.float32))
