"""Products of a step on a CPU: layers, forwards and backwards, whose results do not depend on threads.

Compiled (``steps/products.c``) every number is summed by one thread, in one order. PyTorch's products
are MKL's on most CPUs, which shares out long sums: those are taken in pieces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from boltzhash.training.rows import _steps as _steps  # tests check whether it is there

# Where MKL shares out sums instead of results: if they are longer and there are no more of them.
LONGEST_SUM, MOST_SUMS = 768, 200_000
PIECE = 256


def product_in_pieces(a: Tensor, b: Tensor) -> Tensor:
    """a b, whose long sums are taken piece by piece.

    Two threads would each take half of a long sum if there are few of them (MKL does so on Intel's
    CPUs), and what comes out would depend on how many threads there are.

    >>> product_in_pieces(torch.ones(1, 900), torch.ones(900, 1))
    tensor([[900.]])
    """
    if a.shape[1] <= LONGEST_SUM or len(a) * b.shape[1] > MOST_SUMS:
        return a @ b
    total = torch.zeros(len(a), b.shape[1], dtype=a.dtype)
    for first in range(0, len(b), PIECE):
        total.addmm_(a[:, first : first + PIECE], b[first : first + PIECE])
    return total


def sums_are_long(x: Tensor, weight: Tensor) -> bool:
    """Whether :class:`SteadyProduct` is to be taken: on a CPU, of many rows or outputs."""
    return x.device.type == "cpu" and max(len(x), weight.shape[1]) > LONGEST_SUM


class SteadyProduct(torch.autograd.Function):
    """x W, its derivatives by :func:`product_in_pieces`: ``apply(x, weight)``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return product_in_pieces(gradient, weight.T), product_in_pieces(x.T, gradient)


def steady_product(x: Tensor, weight: Tensor) -> Tensor:
    """x W, whose derivatives do not depend on how many threads compute them."""
    if multiplies_compiled(x, weight):
        compiled: Tensor = SideBySide.apply(x, weight, None)  # type: ignore[no-untyped-call]
        return compiled
    if not sums_are_long(x, weight):
        return x @ weight
    product: Tensor = SteadyProduct.apply(x, weight)  # type: ignore[no-untyped-call]
    return product


def multiplies_compiled(*matrices: Tensor) -> bool:
    """Whether :class:`SideBySide` takes these."""
    return (
        _steps is not None
        and all(t.dtype == torch.float32 and t.device.type == "cpu" for t in matrices)
        and all(t.numel() > 0 for t in matrices)
        and _steps.multiplies()
    )


class SideBySide(torch.autograd.Function):
    """x W + b, compiled, of layers side by side: ``apply(x, weight, bias)``, the bias may be ``None``.

    Each layer reads its own part of x and writes its own part of the outputs; ``weight`` has the rows of
    one of them and the columns of all.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        x, weight = x.contiguous(), weight.contiguous()
        out = x.new_empty(len(x), weight.shape[1])
        _multiply(*_parts(x, weight, out), None if bias is None else bias.contiguous())
        ctx.save_for_backward(x, weight)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        gradient = gradient.contiguous()
        by_x = by_weight = by_bias = None
        if torch.is_grad_enabled():  # the derivatives are to be derived, by RELAX: as PyTorch can
            rows, columns, by_outputs = _parts(x, weight, gradient)
            by_x = (by_outputs @ columns.mT).transpose(0, 1).flatten(1)
            by_weight = (rows.mT @ by_outputs).transpose(0, 1).flatten(1)
            return by_x, by_weight, gradient.sum(0) if ctx.needs_input_grad[2] else None
        if ctx.needs_input_grad[0]:
            by_x = torch.empty_like(x)
            by_rows, columns, by_outputs = _parts(by_x, weight, gradient)
            _multiply(by_outputs, columns.mT, by_rows)
        if ctx.needs_input_grad[1]:
            by_weight = torch.empty_like(weight)
            rows, by_columns, by_outputs = _parts(x, by_weight, gradient)
            _multiply(rows.mT, by_outputs, by_columns)
        if ctx.needs_input_grad[2]:
            by_bias = gradient.sum(0)
        return by_x, by_weight, by_bias


def _parts(x: Tensor, weight: Tensor, out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of each layer by itself: (n_layers, rows, columns) of the three."""
    n_layers = x.shape[1] // len(weight)
    rows, columns, outputs = (
        t.view(len(t), n_layers, -1).transpose(0, 1) for t in (x, weight, out)
    )
    return rows, columns, outputs


def _multiply(a: Tensor, b: Tensor, out: Tensor, start: Tensor | None = None) -> None:
    """out = a b + start, of matrices that may lie between each other's numbers."""
    sizes, nothing = (*a.shape, b.shape[-1]), a.new_empty(0)
    given = (_numbers(a), _numbers(b), (nothing if start is None else start).detach().numpy())
    strides = (a.stride(), b.stride(), out.stride()[:-1])
    _steps.multiply(*given, _numbers(out), sizes, *strides, torch.get_num_threads())


def _numbers(part: Tensor) -> NDArray[np.float32]:
    """All that lies between its first number and its last."""
    reach = sum((size - 1) * stride for size, stride in zip(part.shape, part.stride(), strict=True))
    numbers: NDArray[np.float32] = part.detach().as_strided((reach + 1,), (1,)).numpy()
    return numbers
