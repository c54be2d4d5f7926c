"""Training on a GPU: the step is recorded once as a CUDA graph and replayed, data and all.

Launching the two hundred small kernels of a step from Python takes ten times as long as running them.
A graph launches them in one go, but repeats them exactly: all that changes from step to step must lie
on the GPU. So the documents, the order of an epoch, the learning rates and a step counter lie there, and
within an epoch the host neither sends nor asks for anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from boltzhash.batches import Batch, Documents, Plan, RowNumbers, RowsOnDevice, Terms

WARM_UP = 3  # steps that are run before one is recorded: libraries set themselves up in these


class ReplayedSteps:
    """Runs epochs of ``step`` on a GPU."""

    def __init__(
        self,
        model: nn.Module,
        step: Callable[[Batch], Terms],
        documents: Documents,
        batch_size: int,
        device: torch.device,
    ) -> None:
        self._step = step
        self._rate = torch.zeros((), device=device)
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=self._rate, fused=True, capturable=True
        )
        self._batch_size = batch_size
        self._share = documents.neighbour_share
        self._n = documents.inputs.shape[0]
        self._inputs = RowsOnDevice(documents.inputs, device)
        self._targets = RowsOnDevice(documents.targets, device)
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._generator = torch.Generator(device)
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._runs: dict[int, int] = {}
        self._device = device
        n_steps = math.ceil(self._n / batch_size)
        self._rates = torch.zeros(n_steps, device=device)
        self._counter = torch.zeros(1, dtype=torch.int64, device=device)
        self._places = torch.arange(batch_size, device=device)
        self._progress = torch.zeros((), device=device)
        self._sums = torch.zeros(2, device=device)
        self._order = torch.zeros(self._n, dtype=torch.int64, device=device)
        self._companions: list[Tensor] = []
        self._neighbour: Tensor | None = None
        self._bits: Tensor | None = None

    def epoch(
        self, plan: Plan, rates: list[float], progress: float, seed: int
    ) -> tuple[Tensor, Tensor]:
        """Sums of reconstruction and KL over the documents, and the bits of each, in their order."""
        # What was put on the GPU before, weights included, must be there before a step reads it.
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        precision = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")  # tensor cores: factors of 10 bits, sums of 24
        try:
            with torch.cuda.stream(self._stream):
                self._prepare(plan, rates, progress, seed)
                for start in range(0, self._n, self._batch_size):
                    self._one(min(self._batch_size, self._n - start))
        finally:
            torch.set_float32_matmul_precision(precision)
        self._stream.synchronize()
        assert self._bits is not None
        return self._sums, self._bits

    def _prepare(self, plan: Plan, rates: list[float], progress: float, seed: int) -> None:
        """Put on the GPU what is particular to the epoch, where the recorded steps look for it."""
        self._generator.manual_seed(seed)
        self._rates.copy_(torch.tensor(rates))
        self._progress.fill_(progress)
        self._counter.zero_()
        torch.arange(self._batch_size, out=self._places)
        self._sums.zero_()
        self._order.copy_(torch.from_numpy(plan.order))
        if plan.neighbour is not None:
            self._neighbour = self._put(self._neighbour, plan.neighbour)
        for number, rows in enumerate(plan.companions):
            if number == len(self._companions):
                self._companions.append(self._put(None, rows))
            else:
                self._put(self._companions[number], rows)

    def _put(self, there: Tensor | None, rows: RowNumbers) -> Tensor:
        if there is None:
            there = torch.empty(len(rows), dtype=torch.int64, device=self._device)
        return there.copy_(torch.from_numpy(np.ascontiguousarray(rows)))

    def _one(self, n_rows: int) -> None:
        """The next step, of so many documents: replayed once it has been recorded."""
        runs = self._runs.get(n_rows, 0)
        self._runs[n_rows] = runs + 1
        if runs < WARM_UP:
            self._run(n_rows)
            return
        if n_rows not in self._graphs:
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self._generator)
            self.optimizer.zero_grad(set_to_none=True)
            with torch.cuda.graph(graph, stream=self._stream):
                self._run(n_rows)
            self._graphs[n_rows] = graph
        self._graphs[n_rows].replay()

    def _run(self, n_rows: int) -> None:
        torch.index_select(self._rates, 0, self._counter, out=self._rate.view(1))
        places = self._places[:n_rows]
        terms = self._step(self._batch(self._order.index_select(0, places)))
        self.optimizer.zero_grad(set_to_none=True)
        terms.loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.optimizer.step()
        self._sums[0].add_(terms.reconstruction.detach(), alpha=n_rows)
        self._sums[1].add_(terms.kl.detach(), alpha=n_rows)
        if self._bits is None:
            shape = (self._n, terms.bits.shape[1])
            self._bits = torch.zeros(shape, dtype=torch.bool, device=self._device)
        self._bits.index_copy_(0, places, terms.bits)
        self._counter += 1
        self._places += self._batch_size

    def _batch(self, rows: Tensor) -> Batch:
        inputs, targets = self._inputs.take(rows), self._targets.take(rows)
        companions = tuple(self._inputs.take(c.index_select(0, rows)) for c in self._companions)
        if self._neighbour is None:
            return Batch(inputs, targets, self._progress, self._generator, companions)
        neighbour = self._neighbour.index_select(0, rows)
        targets = torch.lerp(targets, self._targets.take(neighbour), self._share)
        beside = self._inputs.take(neighbour)
        return Batch(inputs, targets, self._progress, self._generator, companions, beside)
