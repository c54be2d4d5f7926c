"""A training step's inner loops as CUDA kernels, each one pass where PyTorch launches five to twenty.

At a hundred documents per step, a GPU does little more than start kernels. These are compiled when the
first model is fitted (NVRTC comes with PyTorch), and on every other device their twins in plain PyTorch
do the same: a test for each compares the two if there is a GPU.
"""

from __future__ import annotations

import logging
from functools import cache
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor

logger = logging.getLogger("boltzhash")
THREADS = 256


def fits(*tensors: Tensor) -> bool:
    """Whether the kernels take these: 32-bit numbers on a GPU for which kernels can be compiled."""
    return all(t.is_cuda and t.dtype == torch.float32 for t in tensors) and _compiles()


@cache
def _compiles() -> bool:
    try:
        kernel("dropped_relu")
    except Exception as error:  # whatever is missing: training continues without them, only slower
        logger.info("no fused kernels: %s", error)
        return False
    return True


@cache
def kernel(name: str, source: str | None = None) -> Any:
    """The kernel of this name, from the file of this name unless its source is given."""
    text = source or (files(__name__) / f"{name}.cu").read_text()
    return torch.cuda._compile_kernel(text, name)


def launch(name: str, n_threads: int, *arguments: Tensor | int) -> None:
    """Run a kernel that has one thread per element."""
    blocks = -(-n_threads // THREADS)
    kernel(name)(grid=(blocks, 1, 1), block=(THREADS, 1, 1), args=list(arguments))


@cache
def constant(value: float, device: torch.device) -> Tensor:
    """A number on the GPU, put there once."""
    return torch.tensor(value, device=device)
