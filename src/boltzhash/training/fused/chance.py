"""Random numbers that kernels draw by themselves."""

from __future__ import annotations

import torch
from torch import Tensor


class CountedChance(torch.Generator):
    """A generator on a GPU whose steps also have a seed there, for kernels that draw by counting.

    A draw is told from others of its step by its number, and steps by their seeds, so nothing has to be
    kept between a forward pass and the backward pass that needs the same numbers (chance.cuh).
    """

    _seed: Tensor
    _n_drawn: int

    def seeds(self, n_steps: int) -> Tensor:
        """Of that many steps."""
        none = torch.empty(n_steps, dtype=torch.int64, device=self.device)
        return none.random_(-(2**63), None, generator=self)

    def begin_step(self, seed: Tensor) -> None:
        self._seed, self._n_drawn = seed, 0

    def draw(self) -> tuple[Tensor, int]:
        """The seed of the step, and the number of the next draw."""
        self._n_drawn += 1
        return self._seed, self._n_drawn
