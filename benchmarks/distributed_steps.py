"""One of the processes that benchmarks/distributed.py starts: times steps and writes what it found.

Times are the median of some steps, in milliseconds, by the clock and of the CPU. The parts of a step are
this process's own share of the minibatch, forwards and backwards; the codes of the others' shares,
fetched; gradients, fetched and summed; Adam. Waiting for the slowest process is part of what is fetched
and summed. Neighbours are found by one scale of latent semantics, without a first training: that is no
part of a step.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from scipy import sparse
from torch import Tensor

from boltzhash import CorrSH
from boltzhash.datasets.vdsh import load_mat
from boltzhash.text.tfidf import unit_rows
from boltzhash.training.batches import RowNumbers, Share
from boltzhash.training.distributed import DistributedSteps, joined
from boltzhash.training.loop import PlainSteps
from boltzhash.training.memory import kept_memory
from synthetic import counts
from training import CPU, prepare

BITS = 64
STEPS = {200: 40, 1600: 10}  # that count, of each batch size
WARMING = 3  # before
SHARES = (1, 2, 4, 8, 16, 32, 64)
OTHERS = ("codes", "gradients", "Adam")  # all parts but the own share
Figures = dict[str, float]


def read_matrix() -> tuple[str, sparse.csr_matrix]:
    folder = os.environ.get("BOLTZHASH_DATA")
    if folder:
        return "Reuters", load_mat(Path(folder, "reuters.tfidf.mat")).train.tfidf
    return "made-up documents", unit_rows(counts(8_000, 10_000, 60))


class Clock:
    """Seconds of the parts of each step, and bytes that this process sends in them."""

    def __init__(self) -> None:
        self._steps: list[Figures] = []
        self._now: Figures = defaultdict(float)
        self._part: str | None = None
        self._last = now()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        start, self._part = now(), name
        yield
        self._add(name, start)
        self._part = None

    def _add(self, name: str, start: tuple[float, float]) -> None:
        for kind, before, after in zip(("", ", CPU"), start, now(), strict=True):
            self._now[name + kind] += after - before

    def sends(self, kind: str, n_bytes: int) -> None:
        if self._part is not None:
            self._now[f"{self._part}, bytes {kind}"] += n_bytes

    def end_step(self) -> None:
        self._add("step", self._last)
        self._steps.append(self._now)
        self._now, self._last = defaultdict(float), now()

    def medians(self) -> Figures:
        for step in self._steps:
            for kind in ("", ", CPU"):
                others = sum(step.get(part + kind, 0.0) for part in OTHERS)
                step["own share" + kind] = step["step" + kind] - others
        counted = self._steps[WARMING:]
        found = {name: float(np.median([step[name] for step in counted])) for name in counted[0]}
        return {
            name: round(value) if "bytes" in name else round(1000 * value, 2)
            for name, value in found.items()
        }


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


class TimedSteps(DistributedSteps):
    """Tells a clock what takes how long."""

    clock: Clock

    def _share(self, places: RowNumbers) -> Share | None:
        share = super()._share(places)
        return share and share._replace(gathered=partial(self._timed, share.gathered))

    def _timed(self, gathered: Callable[[Tensor], Tensor], mine: Tensor) -> Tensor:
        with self.clock.part("codes"):
            return gathered(mine)

    def _sum_gradients(self) -> None:
        with self.clock.part("gradients"):
            super()._sum_gradients()


class OneShare(DistributedSteps):
    """Takes the first of ``n_shares`` of each minibatch; instead of the others' codes it has its own."""

    n_shares: int

    def _shares(self, places: RowNumbers) -> list[RowNumbers]:
        return [places[:: self.n_shares]]

    def _share(self, places: RowNumbers) -> Share | None:
        n = len(self._shares(places)[0])

        def gathered(mine: Tensor) -> Tensor:
            return torch.cat([mine, mine.detach().repeat(self.n_shares, 1)[: len(places) - n]])

        return None if n == len(places) else Share(n / len(places), gathered)

    def _all_bits(self, mine: list[Tensor], places: list[RowNumbers], n: int) -> Tensor:
        return torch.cat(mine)


class Corpus:
    """What all measurements of a process begin with."""

    def __init__(self) -> None:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        self._hasher = CorrSH(
            BITS, device="cpu", neighbours=20, latent_dimensions=(64,), second_training=False
        )
        self._model, self._documents = prepare(self._hasher, read_matrix()[1])

    def medians(self, kind: Any, batch_size: int, **attributes: Any) -> Figures:
        """Of the steps of one kind."""
        clock, model = Clock(), copy.deepcopy(self._model)
        step = partial(self._hasher._step, model)
        steps = kind(model, step, self._documents, batch_size, CPU)
        for name, value in {"clock": clock, **attributes}.items():
            setattr(steps, name, value)
        take_step = steps.optimizer.step

        def timed_step() -> None:
            with clock.part("Adam"):
                take_step()
            clock.end_step()

        steps.optimizer.step = timed_step
        n_steps, rng = WARMING + STEPS[batch_size], np.random.default_rng(0)
        plan = self._documents.draw(rng)
        order = np.concatenate([rng.permutation(plan.order) for _ in range(n_steps)])
        with kept_memory(), counted(clock):
            plan = plan._replace(order=order[: n_steps * batch_size])
            steps.epoch(plan, [1e-4] * n_steps, 0.0, seed=0)
        return clock.medians()


@contextmanager
def counted(clock: Clock) -> Iterator[None]:
    """What is sent through the group is counted."""
    kinds = {"all_reduce": "summed", "all_gather": "fetched"}
    before = {name: getattr(dist, name) for name in kinds}

    def counting(name: str) -> Callable[..., Any]:
        def send(*tensors: Any) -> Any:
            clock.sends(kinds[name], tensors[-1].nbytes)
            return before[name](*tensors)

        return send

    for name in kinds:
        setattr(dist, name, counting(name))
    try:
        yield
    finally:
        for name, send in before.items():
            setattr(dist, name, send)


def alone() -> dict[str, Figures]:
    """One process by itself, as it takes its steps without a group."""
    corpus = Corpus()
    return {str(size): corpus.medians(PlainSteps, size) for size in STEPS}


def together() -> dict[str, Figures]:
    """One of several processes."""
    corpus = Corpus()
    return {str(size): corpus.medians(TimedSteps, size) for size in STEPS}


def shares() -> dict[str, Figures]:
    """The own share of one of so many processes, without the others; of the CPU, on one thread."""
    corpus = Corpus()
    return {
        str(size): {
            str(n): corpus.medians(OneShare, size, n_shares=n)["own share, CPU"] for n in SHARES
        }
        for size in STEPS
    }


def mean(found: list[dict[str, Figures]]) -> dict[str, Figures]:
    """Over the processes."""
    return {
        size: {name: round(float(np.mean([one[size][name] for one in found])), 2) for name in first}
        for size, first in found[0].items()
    }


def faster(one: dict[str, Figures], other: dict[str, Figures]) -> dict[str, Figures]:
    """Of two measurements, with each batch size."""
    return {size: min(one[size], other[size], key=lambda found: found["step"]) for size in one}


def main() -> None:
    what, folder = sys.argv[1:]
    with joined() as rank:
        result = {"alone": alone, "together": together, "shares": shares}[what]()
    Path(folder, f"{rank}.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
