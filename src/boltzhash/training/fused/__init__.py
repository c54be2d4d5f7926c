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
        kernel("dropped_layer")
    except Exception as error:  # whatever is missing: training continues without them, only slower
        logger.info("no fused kernels: %s", error)
        return False
    return True


@cache
def kernel(name: str, source: str | None = None) -> Any:
    """The kernel of this name, from the file of its function unless its source is given."""
    text = source or source_of(f"{name.removesuffix('_backward')}.cu")
    return torch.cuda._compile_kernel(text, name)


def source_of(file: str) -> str:
    """What is in a file, and in the one that it includes: the compiler sees no folder."""
    text = (files(__name__) / file).read_text()
    return text.replace('#include "chance.cuh"', (files(__name__) / "chance.cuh").read_text())


def launch(name: str, n_threads: int, *arguments: Tensor | int) -> None:
    """Run a kernel that has one thread per element."""
    run_blocks(name, -(-n_threads // THREADS), *arguments)


def run_blocks(
    name: str, n_blocks: int, *arguments: Tensor | int, threads: int = THREADS, memory: int = 0
) -> None:
    """Run so many blocks of a kernel; ``memory`` is what each has to share, in bytes."""
    kernel(name)(
        grid=(n_blocks, 1, 1), block=(threads, 1, 1), args=list(arguments), shared_mem=memory
    )


@cache
def constant(value: float, device: torch.device) -> Tensor:
    """A number on the GPU, put there once."""
    return torch.tensor(value, device=device)
