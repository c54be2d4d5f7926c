"""Random numbers of a step: from PyTorch's generators, compiled on a CPU.

There one draw of a generator seeds as many numbers as are asked for: PyTorch makes them one by one,
which takes five times as long. What is drawn depends on the generator alone, not on threads.
"""

from __future__ import annotations

import torch
from torch import Tensor

from boltzhash.training.rows import _steps


def fill_normal(out: Tensor, generator: torch.Generator | None) -> Tensor:
    """The tensor, which must not be in a graph, filled with draws of N(0, 1)."""
    return _filled(out, generator) if _is_compiled(out) else out.normal_(generator=generator)


def fill_uniform(out: Tensor, generator: torch.Generator | None) -> Tensor:
    """The tensor, which must not be in a graph, filled with numbers from 0 to 1, without 1."""
    if _is_compiled(out):
        return _filled(out, generator, are_normal=False)
    return out.uniform_(generator=generator)


def seed_from(generator: torch.Generator | None) -> int:
    """64 bits of a CPU's generator, or of PyTorch's own."""
    drawn = torch.empty((), dtype=torch.int64).random_(-(2**63), None, generator=generator)
    return int(drawn.item()) % 2**64


def _is_compiled(out: Tensor) -> bool:
    fits = out.device.type == "cpu" and out.dtype == torch.float32 and out.is_contiguous()
    return _steps is not None and fits


def _filled(out: Tensor, generator: torch.Generator | None, are_normal: bool = True) -> Tensor:
    threads = torch.get_num_threads()
    _steps.draw_random(out.numpy(), seed_from(generator), are_normal, threads)
    return out
