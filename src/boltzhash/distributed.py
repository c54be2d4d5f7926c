"""Fitting by several processes or GPUs: each takes its share of every minibatch, gradients are summed.

torch's own data parallelism, started with torchrun::

    # fit.py: torchrun --nproc-per-node 2 fit.py
    with joined() as rank:
        hasher = CorrSH(n_bits=64).fit(texts)      # every process is given all texts
        if rank == 0:
            hasher.save("model")

All processes end with the same weights. A step sees the same documents as it would with one process, so
that nothing about the schedule changes. Two things do: what is drawn at random within a step, and terms
that compare the documents of a batch with each other, which see those of their own share only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from boltzhash.batches import Batch, Documents, Plan, Terms, take_batch


@contextmanager
def joined(backend: str = "gloo") -> Iterator[int]:
    """Take part in the group that torchrun started; yields this process' number.

    Without torchrun there is one process, and nothing is different. ``backend`` is "nccl" for GPUs.
    """
    if "WORLD_SIZE" not in os.environ:
        yield 0
        return
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
        self.optimizer = torch.optim.Adam(model.parameters(), fused=True)
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._step = step
        self._documents = documents
        self._batch_size = batch_size
        self._device = device
        self._rank, self._n_ranks = dist.get_rank(), dist.get_world_size()
        if batch_size < self._n_ranks:
            raise ValueError(
                f"batch_size must be at least the number of processes, {self._n_ranks}, got "
                f"{batch_size}"
            )

    def epoch(
        self, plan: Plan, rates: list[float], progress: float, seed: int
    ) -> tuple[Tensor, Tensor]:
        n = len(plan.order)
        places = np.arange(n)
        mine = []
        generator = torch.Generator(self._device).manual_seed((seed + self._rank) % 2**63)
        so_far = torch.tensor(progress, device=self._device)
        sums = torch.zeros(2, device=self._device)
        bits = []
        for number, (rate, whole) in enumerate(
            zip(rates, plan.batches(self._batch_size), strict=True)
        ):
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            self.optimizer.zero_grad(set_to_none=True)
            # Every n_ranks-th: the same rows as without others, in shares that hardly differ.
            rows = whole[self._rank :: self._n_ranks]
            if len(rows):  # the last batch may have fewer documents than there are processes
                terms = self._step(take_batch(self._documents, plan, rows, so_far, generator))
                (len(rows) / len(whole) * terms.loss).backward()  # type: ignore[no-untyped-call]
                sums += torch.stack([terms.reconstruction, terms.kl]).detach() * len(rows)
                bits.append(terms.bits)
                start = number * self._batch_size
                mine.append(places[start : start + len(whole)][self._rank :: self._n_ranks])
            self._sum_gradients()
            self.optimizer.step()
        dist.all_reduce(sums)
        return sums, self._all_bits(torch.cat(bits), torch.from_numpy(np.concatenate(mine)), n)

    def _sum_gradients(self) -> None:
        """In one message."""
        gradients = [
            p.grad if p.grad is not None else torch.zeros_like(p) for p in self._parameters
        ]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        start = 0
        for parameter in self._parameters:
            part = flat[start : start + parameter.numel()]
            parameter.grad = part.view_as(parameter)
            start += parameter.numel()

    def _all_bits(self, mine: Tensor, places: Tensor, n: int) -> Tensor:
        everyone = torch.zeros(n, mine.shape[1], dtype=torch.uint8, device=self._device)
        everyone[places.to(self._device)] = mine.to(torch.uint8)
        dist.all_reduce(everyone)
        return everyone.bool()
