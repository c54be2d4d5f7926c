"""Fitting by several processes or GPUs: each takes its share of every minibatch, gradients are summed.

The gradient of a layer that reads words is the largest of all, and most of it is 0. On a CPU it is left
in its parts, the words of the documents and what was derived by them; those of all processes are fetched
and each process multiplies them out when it updates its weights (as sufficient factors: Xie et al.,
Lighter-Communication Distributed Machine Learning via Sufficient Factor Broadcasting, UAI 2016).

torch's own data parallelism, started with torchrun::

    # fit.py: torchrun --nproc-per-node 2 fit.py
    with joined() as rank:
        hasher = CorrSH(n_bits=64).fit(texts)      # every process is given all texts
        if rank == 0:
            hasher.save("model")

All processes end with the same weights. A step sees the same documents as it would with one process and
follows the gradient of the same loss; terms that compare the documents of a minibatch with each other
fetch those of the other processes. What differs is what is drawn at random within a step: each process
draws for its own documents.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from boltzhash.training.adam import adam_of
from boltzhash.training.batches import Batch, Documents, Plan, RowNumbers, Share, Terms, take_batch
from boltzhash.training.rows import SparseRows
from boltzhash.training.words_gradient import Optimizer, WordsGradient, put_off_of


@contextmanager
def joined(backend: str = "gloo") -> Iterator[int]:
    """Take part in the group that torchrun started; yields this process's number.

    Without torchrun there is one process, and nothing is different. ``backend`` is "nccl" for GPUs.
    """
    if "WORLD_SIZE" not in os.environ:
        yield 0
        return
    # Its functions keep, as a default argument, the group that exists when it is first imported, which
    # torch.optim does in the middle of a fit. The group would then outlive its end, and its threads
    # would abort the process when they release a tensor while Python shuts down.
    import torch.distributed.nn  # noqa: F401

    dist.init_process_group(backend)
    try:
        yield dist.get_rank()
    finally:
        dist.destroy_process_group()


class DistributedSteps:
    """Runs epochs of ``step`` together with the other processes of the group."""

    def __init__(
        self,
        model: nn.Module,
        step: Callable[[Batch], Terms],
        documents: Documents,
        batch_size: int,
        device: torch.device,
    ) -> None:
        self.optimizer: Optimizer = adam_of(model, device)
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._leaves_parts = any(put_off_of(p) is not None for p in self._parameters)
        self._step = step
        self._documents = documents
        self._batch_size = batch_size
        self._device = device
        self._rank, self._n_ranks = dist.get_rank(), dist.get_world_size()
        for name, number in (("batch_size", batch_size), ("documents", documents.inputs.shape[0])):
            if number < self._n_ranks:
                raise ValueError(
                    f"{name} must be at least as many as the {self._n_ranks} processes, got {number}"
                )

    def epoch(
        self, plan: Plan, rates: list[float], progress: float, seed: int
    ) -> tuple[Tensor, Tensor]:
        n = len(plan.order)
        mine = []
        generator = torch.Generator(self._device).manual_seed((seed + self._rank) % 2**63)
        so_far = torch.tensor(progress, device=self._device)
        sums = torch.zeros(2, device=self._device)
        bits = []
        for rate, places in zip(rates, self._batches_of_places(n), strict=True):
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            self.optimizer.zero_grad()
            here = self._shares(places)[self._rank]
            if len(here):
                batch = take_batch(self._documents, plan, plan.order[here], so_far, generator)
                share = self._share(places)
                terms = self._step(batch._replace(share=share))
                of_whole = 1.0 if share is None else share.of_whole
                (of_whole * terms.loss).backward()  # type: ignore[no-untyped-call]
                sums += torch.stack([terms.reconstruction, terms.kl]).detach() * len(here)
                bits.append(terms.bits)
                mine.append(here)
            self._sum_gradients()
            self.optimizer.step()
        dist.all_reduce(sums)
        return sums, self._all_bits(bits, mine, n)

    def _batches_of_places(self, n: int) -> list[RowNumbers]:
        """Places in the order of the epoch, one minibatch at a time."""
        return np.split(np.arange(n), range(self._batch_size, n, self._batch_size))

    def _shares(self, places: RowNumbers) -> list[RowNumbers]:
        """Which documents of a minibatch each process takes: every n-th, so shares hardly differ.

        The last one may have fewer documents than there are processes. The first takes it alone, since
        a process without documents could not take part when they are compared with each other.
        """
        if len(places) < self._n_ranks:
            return [places, *([places[:0]] * (self._n_ranks - 1))]
        return [places[rank :: self._n_ranks] for rank in range(self._n_ranks)]

    def _share(self, places: RowNumbers) -> Share | None:
        sizes = [len(some) for some in self._shares(places)]
        if sizes[self._rank] == len(places):
            return None

        def gathered(mine: Tensor) -> Tensor:
            even = mine.new_zeros(max(sizes), *mine.shape[1:])  # all must send as much
            even[: len(mine)] = mine.detach()
            everyone = self._of_all(even)
            everyone[self._rank] = mine
            return torch.cat([some[:size] for some, size in zip(everyone, sizes, strict=True)])

        return Share(sizes[self._rank] / len(places), gathered)

    def _of_all(self, mine: Tensor) -> list[Tensor]:
        everyone = [torch.empty_like(mine) for _ in range(self._n_ranks)]
        dist.all_gather(everyone, mine)
        return everyone

    def _sum_gradients(self) -> None:
        """What was left in parts is fetched, all else is summed in one message."""
        if not self._leaves_parts:
            self._sum(self._parameters)
            return
        mine = [_left(parameter) for parameter in self._parameters]
        is_whole = [parameter.grad is not None for parameter in self._parameters]
        for number, sizes in enumerate(self._sizes_of_all(mine, is_whole)):
            parameter, left = self._parameters[number], mine[number]
            n_rows = int(sizes[:, 1].sum())
            is_whole[number] = bool(sizes[:, 0].any())
            if 0 < n_rows < len(parameter):
                _leave(parameter, self._fetched(left, sizes[:, 1:], parameter.shape[1]))
            elif n_rows:  # then the matrix is smaller
                is_whole[number] = True
                _leave(parameter, None)
                if left is not None:
                    whole = left.whole(len(parameter))
                    parameter.grad = whole if parameter.grad is None else parameter.grad + whole
        self._sum([p for p, whole in zip(self._parameters, is_whole, strict=True) if whole])

    def _sizes_of_all(
        self, mine: list[WordsGradient | None], is_whole: list[bool]
    ) -> list[NDArray[np.int64]]:
        """For each weight, (n_ranks, 3): has it a gradient; rows and words of what is left in parts."""
        sizes = [
            (whole, *((0, 0) if left is None else (len(left.by_output), len(_words(left).values))))
            for left, whole in zip(mine, is_whole, strict=True)
        ]
        message = torch.tensor(sizes, dtype=torch.int64, device=self._device)
        return list(torch.stack(self._of_all(message), 1).cpu().numpy())

    def _fetched(
        self, mine: WordsGradient | None, sizes: NDArray[np.int64], n_outputs: int
    ) -> WordsGradient:
        """The parts of all processes, of so many rows and words each, in one message."""
        needed = [rows * (n_outputs + 1) + 2 * words for rows, words in sizes]
        message = torch.zeros(max(needed), dtype=torch.int32)  # all must send as much
        if mine is not None:
            x = _words(mine)
            floats = [part.flatten().view(torch.int32) for part in (mine.by_output, x.values)]
            packed = torch.cat([*floats, x.indices.int(), x.offsets.diff().int()])
            message[: len(packed)] = packed
        found = []
        for numbers, (rows, words) in zip(self._of_all(message), sizes.tolist(), strict=True):
            lengths = [rows * n_outputs, words, words, rows]
            found.append(torch.split(numbers[: sum(lengths)], lengths))
        by_output, values, indices, counts = map(torch.cat, zip(*found, strict=True))
        ends = torch.nn.functional.pad(counts.cumsum(0, dtype=torch.int32), (1, 0))
        x = SparseRows(indices, values.view(torch.float32), ends)
        return WordsGradient(x, by_output.view(torch.float32).view(-1, n_outputs))

    def _sum(self, parameters: list[nn.Parameter]) -> None:
        """Their gradients; a process without one adds nothing."""
        gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        parts = torch.split(flat, [p.numel() for p in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)

    def _all_bits(self, mine: list[Tensor], places: list[RowNumbers], n: int) -> Tensor:
        bits = torch.cat(mine)
        everyone = torch.zeros(n, bits.shape[1], dtype=torch.uint8, device=self._device)
        everyone[torch.from_numpy(np.concatenate(places)).to(self._device)] = bits.to(torch.uint8)
        dist.all_reduce(everyone)
        return everyone.bool()


def _left(weight: nn.Parameter) -> WordsGradient | None:
    """What of its gradient was left in parts."""
    parts = put_off_of(weight)
    return reduce(WordsGradient.plus, parts) if parts else None


def _leave(weight: nn.Parameter, gradient: WordsGradient | None) -> None:
    """In place of what was left."""
    parts = put_off_of(weight)
    assert parts is not None
    parts[:] = [] if gradient is None else [gradient]


def _words(gradient: WordsGradient) -> SparseRows:
    assert isinstance(gradient.x, SparseRows)  # on a CPU, where alone gradients are left in parts
    return gradient.x
