"""Layers of the inference networks on a GPU, with few launches each."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from boltzhash.training.fused import constant, fits, launch
from boltzhash.training.fused.chance import CountedChance
from boltzhash.training.words_gradient import BiasGradient, WordsGradient, put_off_of


def side_by_side(x: Tensor, n: int) -> Tensor:
    """The parts of n networks, (rows, n · width), as a stack: (n, rows, width), nothing copied."""
    return x.view(len(x), n, -1).transpose(0, 1)


def parallel_product(x: Tensor, weight: Tensor) -> Tensor:
    """x W, each network's part of x with its part of the columns."""
    n = x.shape[1] // len(weight)
    if n == 1:
        return x @ weight
    out = x.new_empty(len(x), weight.shape[1])
    torch.bmm(side_by_side(x, n), side_by_side(weight, n), out=side_by_side(out, n))
    return out


def by_both(x: Tensor, weight: Tensor, by_product: Tensor) -> tuple[Tensor, Tensor]:
    """The derivatives of :func:`parallel_product` by x and by W."""
    n = x.shape[1] // len(weight)
    if n == 1:
        return by_product @ weight.T, x.T @ by_product
    by_x, by_weight = torch.empty_like(x), torch.empty_like(weight)
    parts = side_by_side(by_product, n)
    torch.bmm(parts, side_by_side(weight, n).mT, out=side_by_side(by_x, n))
    torch.bmm(side_by_side(x, n).mT, parts, out=side_by_side(by_weight, n))
    return by_x, by_weight


def split_products(x: Tensor, weight: Tensor) -> Tensor:
    """Products of parts of x with their rows of W, (parts, rows, outputs): their sum is x W.

    For few rows and many columns: otherwise one block of a GPU sums all columns of its part of the
    result, and most of the GPU is idle.
    """
    # Tensor cores read 8 numbers at a time. The number of parts that leaves the least over is taken.
    parts = min(range(10, 17), key=lambda parts: x.shape[1] % (8 * parts))
    width = x.shape[1] // parts // 8 * 8
    split = parts * width
    if split == 0:
        return (x @ weight).unsqueeze(0)
    left = x[:, :split].view(len(x), parts, width).transpose(0, 1)
    products = torch.bmm(left, weight[:split].view(parts, width, -1))
    if split < x.shape[1]:
        products[0].addmm_(x[:, split:], weight[split:])
    return products


def by_words(x: Tensor, weight: Tensor, by_product: Tensor) -> Tensor | None:
    """xᵀ G, or None if it was left for Adam."""
    put_off = put_off_of(weight)
    if put_off is None:
        return x.T @ by_product
    put_off.append(WordsGradient(x, by_product.contiguous()))
    return None


def by_bias(bias: Tensor, by_sum: Tensor) -> Tensor | None:
    """1ᵀ G, or None if it was left for Adam."""
    put_off = put_off_of(bias)
    if put_off is None:
        return by_sum.sum(0)
    put_off.append(BiasGradient(by_sum))
    return None


class SplitProduct(torch.autograd.Function):
    """x W for few rows x and many columns: ``apply(x, weight)``, differentiable in W."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return split_products(x, weight).sum(0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor | None]:
        x, weight = ctx.saved_tensors
        return None, by_words(x, weight, gradient)


class ParallelProduct(torch.autograd.Function):
    """x W, each network's part of x with its part of the columns: ``apply(x, weight)``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return parallel_product(x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return by_both(x, weight, gradient.contiguous())


def drops_in_kernel(x: object, weight: Tensor, generator: torch.Generator) -> bool:
    """Whether :class:`DroppedLayer` takes these."""
    return (
        isinstance(x, Tensor)
        and isinstance(generator, CountedChance)
        and fits(x, weight)
        and weight.shape[1] % 4 == 0
    )


class DroppedLayer(torch.autograd.Function):
    """relu(x W + b), then dropout: ``apply(x, weight, bias, rate, chance)``.

    An x that needs no gradient is taken for documents, of which all networks read all columns.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, rate: float, chance: CountedChance
    ) -> Tensor:
        if ctx.needs_input_grad[0]:
            products = parallel_product(x, weight).unsqueeze(0)
        else:
            products = split_products(x, weight)
        out = torch.empty_like(products[0])
        ctx.rate = constant(rate, x.device)
        fours, width = out.numel() // 4, out.shape[1] // 4
        given = (products, len(products), bias, ctx.rate, *chance.draw())
        launch("dropped_layer", fours, *given, out, fours, width)
        ctx.save_for_backward(x, weight, bias, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, out = ctx.saved_tensors
        by_sum, n = torch.empty_like(out), out.numel()
        launch("dropped_layer_backward", n, out, gradient.contiguous(), ctx.rate, by_sum, n)
        if ctx.needs_input_grad[0]:
            by_x, by_weight = by_both(x, weight, by_sum)
            return by_x, by_weight, by_bias(bias, by_sum), None, None
        return None, by_words(x, weight, by_sum), by_bias(bias, by_sum), None, None
