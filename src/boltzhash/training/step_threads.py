"""How many threads take the steps of a fit on a CPU: one or two, whichever is faster at the time.

The threads of a step wait for each other hundreds of times in it. Where other processes want the CPUs as
well, the one that is waited for has to wait for a CPU first, and two threads take longer than one
(benchmarks/busy.py). So both are timed, in the first steps and again now and then.

What a fit learns must not depend on what else the machine does. With two threads torch's results are
those of one to the last bit if the bits of a step's codes can be shared out evenly, and no sum is
(products); with more threads they are not: so two at most, and one for a step that cannot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import torch

COMPARED = 3  # steps of either kind
SETTLING = (
    0.4  # seconds before: a CPU that had nothing to do is slow at first, or shared with the other
)
HOPELESS = 2.0  # a step that takes so many times as long need not be followed by another
REPAID = 20  # what is faster is taken for so many times the time that trying the other took
CHANGED = 1.5  # steps that take so many times as long as before: the machine does something else

# Documents that two threads share: products with fewer rows are computed in another way.
FEWEST = 64
# Numbers that torch's loops take at once. Each thread has half of a tensor, and what is left over at the
# end of a half is computed one by one, by another formula.
AT_ONCE = 32

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
    def step(self, n_documents: int, n_bits: int) -> Iterator[None]:
        """What is done within is a step of so many documents, whose codes have so many bits."""
        if self._choices is None:
            yield
            return
        is_shared = n_documents >= FEWEST and n_documents * n_bits % (2 * AT_ONCE) == 0
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
    >>> [next(choices), *(choices.send(0.5) for _ in range(10))]
    [1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1]
    """
    yield usual  # what comes first takes longer, whatever takes it
    while True:
        known = yield from _known(usual)
        spent, tried = yield from _tried(other, HOPELESS * known)
        if tried < known:
            usual, other, known = other, usual, tried
        yield from _repaid(usual, REPAID * spent, known)


def _known(n_threads: int) -> Generator[int, float, float]:
    """How long a step takes."""
    seconds: list[float] = []
    while len(seconds) < COMPARED:
        seconds.append((yield n_threads))
    return _mean(seconds)


def _tried(n_threads: int, hopeless: float) -> Generator[int, float, tuple[float, float]]:
    """The seconds of some steps, and how long one takes when that has settled or is hopeless."""
    seconds: list[float] = []
    while len(seconds) < COMPARED or sum(seconds) < SETTLING:
        seconds.append((yield n_threads))
        if seconds[-1] > hopeless:
            return sum(seconds), seconds[-1]
    return sum(seconds), _mean(seconds[-COMPARED:])


def _repaid(n_threads: int, seconds: float, a_step: float) -> Choices:
    """For so many seconds, or until steps take longer than one did."""
    recent = [a_step] * COMPARED
    while seconds > 0 and _mean(recent) < CHANGED * a_step:
        recent = [*recent[1:], (yield n_threads)]
        seconds -= recent[-1]


def _mean(seconds: list[float]) -> float:
    return sum(seconds) / len(seconds)
