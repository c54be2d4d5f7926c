"""How many threads take the steps of a fit on a CPU: one or two, whichever is faster at the time.

The threads of a step wait for each other hundreds of times in it. Where other processes want the CPUs as
well, the one that is waited for has to wait for a CPU first, and two threads take longer than one
(benchmarks/busy.py). So both are timed, in the first steps and again now and then.

What a fit learns must not depend on what else the machine does. With two threads torch's results are
those of one to the last bit if the documents of a step can be shared out evenly, and long sums are taken
in pieces (derivatives.product_in_pieces); with more threads they are not: so two at most, and one for a
step that cannot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import torch

PAIRS = 3  # steps of either kind that are compared
HOPELESS = 2.0  # one that takes so many times as long need not be tried again
REPAID = 20  # what is faster is taken for so many times the time that trying the other took
CHANGED = 1.5  # steps that take so many times as long as before: the machine does something else

FEWEST = (
    64  # documents that two threads share: products with fewer rows are computed in another way
)
SHARED_BY = 8  # of such a number, or each half would end with some that are computed one by one

Choices = Generator[int, float, None]


class StepThreads:
    """Takes steps with as many threads as is best; between steps torch has as many as before.

    ``OMP_NUM_THREADS``, if it is set, is how many threads take every step.
    """

    def __init__(self) -> None:
        self._choices: Choices | None = None
        if torch.get_num_threads() > 1 and "OMP_NUM_THREADS" not in os.environ:
            self._choices = faster(1, 2)
            self._n_threads = next(self._choices)

    @contextmanager
    def step(self, n_documents: int) -> Iterator[None]:
        """What is done within is a step of so many documents."""
        if self._choices is None:
            yield
            return
        is_shared = n_documents >= FEWEST and n_documents % SHARED_BY == 0
        before, start = torch.get_num_threads(), time.perf_counter()
        torch.set_num_threads(self._n_threads if is_shared else 1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
        if is_shared:
            self._n_threads = self._choices.send(time.perf_counter() - start)


def faster(usual: int, other: int) -> Choices:
    """Which of two numbers is to be used for the next step; is sent how many seconds it took.

    >>> choices = faster(1, 2)
    >>> [next(choices), *(choices.send(0.1) for _ in range(11))]
    [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 1]
    """
    yield usual  # what comes first takes longer, whatever takes it
    while True:
        known, tried = yield from _compared(usual, other)
        if sum(tried) < sum(known):
            usual, other, known, tried = other, usual, tried, known
        yield from _repaid(usual, REPAID * sum(tried), sum(known) / len(known))


def _compared(usual: int, other: int) -> Generator[int, float, tuple[list[float], list[float]]]:
    """Seconds of the usual and of the other, which take turns."""
    known: list[float] = []
    tried: list[float] = []
    while len(tried) < PAIRS and not (tried and tried[-1] > HOPELESS * known[-1]):
        tried.append((yield other))
        known.append((yield usual))
    return known, tried


def _repaid(n_threads: int, seconds: float, a_step: float) -> Choices:
    """For so many seconds, or until steps take longer than one did."""
    recent = [a_step] * PAIRS
    while seconds > 0 and sum(recent) < CHANGED * PAIRS * a_step:
        recent = [*recent[1:], (yield n_threads)]
        seconds -= recent[-1]
