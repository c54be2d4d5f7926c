"""Training on a GPU: a run of steps is recorded once as a CUDA graph and replayed, data and all.

Launching the hundred small kernels of a step from Python takes ten times as long as running them. A
graph launches them in one go, but repeats them exactly: all that changes from run to run must be on the
GPU. So the documents, the order of an epoch, the learning rates and the place in it are there, and
within an epoch the host neither sends nor asks for anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from boltzhash.training.adam import Optimizer
from boltzhash.training.batches import Batch, Documents, Plan, RowNumbers, RowsOnDevice, Terms

WARM_UP = 3  # steps that are run before any are recorded, in which libraries set themselves up
AT_ONCE = 16  # steps of a graph


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
        rate = torch.zeros((), device=device)
        self.optimizer: Optimizer = torch.optim.Adam(
            model.parameters(), lr=rate, fused=True, capturable=True
        )
        self._batch_size = batch_size
        self._share = documents.neighbour_share
        self._n = documents.inputs.shape[0]
        self._inputs = RowsOnDevice(documents.inputs, device)
        self._targets = RowsOnDevice(documents.targets, device)
        labels = documents.labels
        self._labels = None if labels is None else RowsOnDevice(labels, device)
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._generator = torch.Generator(device)
        self._graphs: dict[tuple[int, int], torch.cuda.CUDAGraph] = {}
        self._taken: dict[int, int] = {}  # steps with that many documents that were not replayed
        self._device = device
        n_steps = math.ceil(self._n / batch_size)
        self._rates = torch.zeros(n_steps, device=device)
        self._numbers = torch.zeros(AT_ONCE, dtype=torch.int64, device=device)  # of the next steps
        self._places = torch.zeros(AT_ONCE * batch_size, dtype=torch.int64, device=device)
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
        # What was sent to the GPU before, weights included, must have arrived before a step reads it.
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        precision = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")  # tensor cores: factors of 10 bits, sums of 24
        try:
            with torch.cuda.stream(self._stream):
                self._prepare(plan, rates, progress, seed)
                full, rest = divmod(self._n, self._batch_size)
                for start in range(0, full, AT_ONCE):
                    self._next(min(AT_ONCE, full - start), self._batch_size)
                if rest:
                    self._next(1, rest)
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
        torch.arange(len(self._numbers), out=self._numbers)
        torch.arange(len(self._places), out=self._places)
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

    def _next(self, n_steps: int, n_rows: int) -> None:
        """The next steps, of that many documents each: replayed once they have been recorded."""
        key = (n_steps, n_rows)
        if self._taken.get(n_rows, 0) < WARM_UP:
            self._taken[n_rows] = self._taken.get(n_rows, 0) + n_steps
            self._run(*key)
            return
        if key not in self._graphs:
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self._generator)
            self.optimizer.zero_grad()
            with torch.cuda.graph(graph, stream=self._stream):
                self._run(*key)
            self._graphs[key] = graph
        self._graphs[key].replay()

    def _run(self, n_steps: int, n_rows: int) -> None:
        places = self._places[: n_steps * n_rows]
        rows = self._order.index_select(0, places)
        rates = self._rates.index_select(0, self._numbers[:n_steps])
        steps = zip(rows.view(n_steps, n_rows), rates, strict=True)
        seen = [self._one(batch, rate) for batch, rate in steps]
        sums = torch.stack([term for terms in seen for term in (terms.reconstruction, terms.kl)])
        self._sums += n_rows * sums.view(-1, 2).sum(0)
        bits = torch.cat([terms.bits for terms in seen])
        if self._bits is None:
            shape = (self._n, bits.shape[1])
            self._bits = torch.zeros(shape, dtype=torch.bool, device=self._device)
        self._bits.index_copy_(0, places, bits)
        self._numbers += n_steps
        self._places += n_steps * n_rows

    def _one(self, rows: Tensor, rate: Tensor) -> Terms:
        """One step of these documents."""
        terms = self._step(self._batch(rows))
        self.optimizer.zero_grad()
        terms.loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        return Terms(*(term.detach() for term in terms))

    def _batch(self, rows: Tensor) -> Batch:
        targets = self._targets.take(rows)
        companions = tuple(self._inputs.take(c.index_select(0, rows)) for c in self._companions)
        labels = None if self._labels is None else self._labels.take(rows)
        beside = None
        if self._neighbour is not None:
            neighbour = self._neighbour.index_select(0, rows)
            targets = torch.lerp(targets, self._targets.take(neighbour), self._share)
            beside = self._inputs.take(neighbour)
        read = (self._inputs.take(rows), targets)
        where = (self._progress, self._generator)
        return Batch(*read, *where, companions, beside, labels=labels, rows=rows)
