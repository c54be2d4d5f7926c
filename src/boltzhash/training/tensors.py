"""The types that hashers name in their training code, and a ramp and noise for their steps."""

from __future__ import annotations

import torch
from torch import Generator as Generator
from torch import Tensor as Tensor
from torch.nn import Module as Module

from boltzhash.training.draws import fill_normal


def linear_ramp(ends: tuple[float, float], progress: Tensor) -> Tensor | float:
    """From the first value to the last as progress, of any shape, goes from 0 to 1, and no further.

    >>> linear_ramp((0.0, 0.5), torch.tensor([0.0, 0.5, 2.0]))
    tensor([0.0000, 0.2500, 0.5000])
    """
    first, last = ends
    if first == last:
        return first
    return torch.rsub(progress.clamp(max=1), first, alpha=first - last)  # in one kernel


def standard_normal(like: Tensor, generator: Generator) -> Tensor:
    """ε ~ N(0, 1), of the shape of ``like``."""
    return fill_normal(torch.empty_like(like), generator)
