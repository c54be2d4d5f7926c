"""The two layers that touch every word, and dropout, with derivatives written by hand: for the CPU.

What autograd would do is correct but wasteful there. It sorts the words of a batch for the
gradient of the first layer, and it passes over a matrix of documents × words a dozen times for the
decoder's. Here they are a few passes; tests compare them with autograd's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from boltzhash.training.draws import seed_from
from boltzhash.training.products import product_in_pieces
from boltzhash.training.rows import Rows, SparseRows, row_sums
from boltzhash.training.rows import _steps as _steps  # tests check whether it is there
from boltzhash.training.words_gradient import WordsGradient, put_off_of, weighted_sums


class SparseProduct(torch.autograd.Function):
    """x W of sparse rows x: ``apply(weight, indices, values, offsets)``, differentiable in W."""

    @staticmethod
    def forward(weight: Tensor, indices: Tensor, values: Tensor, offsets: Tensor) -> Tensor:
        return weighted_sums(weight, indices, values, offsets)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        weight, indices, values, offsets = inputs
        ctx.n_words, ctx.put_off = weight.shape[0], put_off_of(weight)
        ctx.save_for_backward(indices, values, offsets)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, None]:
        """xᵀ G."""
        by_weight = WordsGradient(SparseRows(*ctx.saved_tensors), gradient.contiguous())
        return _left_or_whole(ctx, by_weight), None, None, None


def _left_or_whole(ctx: Any, by_weight: WordsGradient) -> Tensor | None:
    """The gradient, unless it is left where the optimiser looks for it."""
    if ctx.put_off is None:
        return by_weight.whole(ctx.n_words)
    ctx.put_off.append(by_weight)
    return None


def drops_compiled(x: Tensor) -> bool:
    """Whether :class:`DroppedRelu` takes this."""
    return _steps is not None and x.device.type == "cpu" and x.dtype == torch.float32


class Dropout(NamedTuple):
    """Of 16 bits: what draws less than the threshold is dropped, what is kept is scaled."""

    threshold: int
    scale: float

    @classmethod
    def of_rate(cls, rate: float) -> Dropout:
        """The nearest of 65,536 parts.

        >>> Dropout.of_rate(0.5)
        Dropout(threshold=32768, scale=2.0)
        """
        threshold = min(round(rate * 2**16), 2**16 - 1)  # something is always kept
        return cls(threshold, 2**16 / (2**16 - threshold))


class DroppedRelu(torch.autograd.Function):
    """relu(x), then inverted dropout: ``apply(x, rate, generator)``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float, generator: torch.Generator) -> Tensor:
        x, out, dropout = x.contiguous(), torch.empty_like(x), Dropout.of_rate(rate)
        arrays, seed = (x.detach().numpy(), out.numpy()), seed_from(generator)
        _steps.dropped_relu(*arrays, seed, *dropout, torch.get_num_threads())
        ctx.scale = dropout.scale
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (out,) = ctx.saved_tensors
        return _derive_dropped(out, gradient, ctx.scale), None, None


def _derive_dropped(out: Tensor, gradient: Tensor, scale: float) -> Tensor:
    """The derivative by what went in, from what came out."""
    by_x = torch.empty_like(out)
    arrays = (out.numpy(), gradient.contiguous().numpy(), by_x.numpy())
    _steps.dropped_relu_backward(*arrays, scale, torch.get_num_threads())
    return by_x


class DroppedWords(torch.autograd.Function):
    """relu(x W + b) of sparse rows x, then inverted dropout, in one pass.

    ``apply(weight, bias, x, rate, generator)``, differentiable in the first two.
    """

    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        bias: Tensor,
        x: SparseRows,
        rate: float,
        generator: torch.Generator,
    ) -> Tensor:
        out, dropout = weight.new_empty(x.n_rows, len(bias)), Dropout.of_rate(rate)
        layer = (weight.detach().numpy(), bias.detach().numpy())
        words, seed = (x.indices.numpy(), x.values.numpy(), x.offsets.numpy()), seed_from(generator)
        _steps.dropped_words(*layer, *words, out.numpy(), seed, *dropout, torch.get_num_threads())
        ctx.n_words, ctx.put_off, ctx.scale = len(weight), put_off_of(weight), dropout.scale
        ctx.x = x
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (out,) = ctx.saved_tensors
        by_product = _derive_dropped(out, gradient, ctx.scale)
        by_weight = _left_or_whole(ctx, WordsGradient(ctx.x, by_product))
        return by_weight, by_product.sum(0), None, None, None


def reads_compiled(x: Rows, weight: Tensor, bias: Tensor, rate: float) -> bool:
    """Whether :class:`DroppedWords` takes these."""
    return (
        _steps is not None
        and isinstance(x, SparseRows)
        and rate > 0
        and all(t.dtype == torch.float32 and t.is_contiguous() for t in (weight, bias, x.values))
        and all(t.dtype == torch.int32 for t in (x.indices, x.offsets))
    )


class DecodedLogLikelihood(torch.autograd.Function):
    """Σ_w t_w log softmax(sᵀE + b)_w, the mean over groups of bits that each decode by themselves.

    ``apply(codes, weight, bias, words, n_groups)``, differentiable in the first three. The derivatives
    are taken on the way forward, while the logits of a group are at hand, as if every document counted
    once; nothing of the size documents × words is kept. If they count differently, those by weight and
    bias are recomputed.
    """

    @staticmethod
    def forward(
        ctx: Any, codes: Tensor, weight: Tensor, bias: Tensor, words: SparseRows, n_groups: int
    ) -> Tensor:
        total = codes.new_zeros(len(codes))
        by_codes, by_weight, by_bias = [], torch.empty_like(weight), torch.zeros_like(bias)
        readings = _readings(codes, weight, bias, words, n_groups)
        for reading, by_E in zip(readings, by_weight.tensor_split(n_groups), strict=True):
            total += reading.value
            if any(ctx.needs_input_grad):
                by_codes.append(product_in_pieces(reading.by_logits, reading.weight.T))
                torch.mm(reading.codes.T, reading.by_logits, out=by_E)
                by_bias += reading.by_bias
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(codes, weight, bias, torch.cat(by_codes, -1), by_weight, by_bias)
            ctx.words, ctx.n_groups = words, n_groups
        return total / n_groups

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        codes, weight, bias, by_codes, by_weight, by_bias = ctx.saved_tensors
        each = gradient / ctx.n_groups
        if (each == each[:1]).all():
            by_weight, by_bias = by_weight * each[:1], by_bias * each[:1]
        else:
            by_weight, by_bias = torch.empty_like(weight), torch.zeros_like(bias)
            readings = _readings(codes, weight, bias, ctx.words, ctx.n_groups)
            for reading, by_E in zip(readings, by_weight.tensor_split(ctx.n_groups), strict=True):
                counted = each.unsqueeze(-1) * reading.codes
                torch.mm(counted.T, reading.by_logits, out=by_E)
                by_bias += each @ reading.by_logits
        return each.unsqueeze(-1) * by_codes, by_weight, by_bias, None, None


class DecodedInBlocks(torch.autograd.Function):
    """The twin of :class:`DecodedLogLikelihood` that takes a block of words at a time, for x86 CPUs.

    The logits of a block become exponentials and are multiplied by E again while they are in the cache,
    and each of two threads has half of the words. The exponentials are kept for the derivatives by
    weight and bias, which are taken when it is known how much each document counts.
    """

    @staticmethod
    def forward(
        ctx: Any, codes: Tensor, weight: Tensor, bias: Tensor, words: SparseRows, n_groups: int
    ) -> Tensor:
        codes, weight, threads = codes.contiguous(), weight.contiguous(), torch.get_num_threads()
        n, n_words = len(codes), len(bias)
        target, groups = words.by_word(n_words), _groups(codes.shape[1], n_groups)
        kept = codes.new_empty(n_groups, _steps.kept_of_decoding(n, n_words))
        values, by_codes = codes.new_empty(n_groups, n), torch.empty_like(codes)
        given = (weight.detach().numpy(), bias.detach().numpy())
        for (first, n_bits), own, value in zip(groups, kept, values, strict=True):
            arrays = (codes.detach().numpy(), own.numpy(), *given, value.numpy(), by_codes.numpy())
            differentiable = ctx.needs_input_grad[0]
            _steps.decode_bits(*target, *arrays, first, n_bits, differentiable, threads)
        ctx.save_for_backward(codes, by_codes, kept)
        ctx.target, ctx.groups, ctx.shapes = target, groups, (weight.shape, n_words)
        return values[0] if n_groups == 1 else values.sum(0) / n_groups

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, gradient: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None, None]:
        codes, by_codes, kept = ctx.saved_tensors
        shape, n_words = ctx.shapes
        each = (gradient / len(ctx.groups)).contiguous()
        documents, amounts, ends = ctx.target
        counted = each.unsqueeze(-1) * by_codes if ctx.needs_input_grad[0] else None
        if not any(ctx.needs_input_grad[1:3]):
            return counted, None, None, None, None
        by_weight, by_bias = codes.new_empty(shape), codes.new_empty(len(ctx.groups), n_words)
        for (first, n_bits), own, of_group in zip(ctx.groups, kept, by_bias, strict=True):
            given = (documents, amounts, ends, codes.numpy(), own.numpy(), each.numpy())
            results, threads = (by_weight.numpy(), of_group.numpy()), torch.get_num_threads()
            _steps.decode_bits_backward(*given, *results, first, n_bits, threads)
        return counted, by_weight, by_bias[0] if len(by_bias) == 1 else by_bias.sum(0), None, None


def decodes_in_blocks(codes: Tensor, weight: Tensor, bias: Tensor, words: SparseRows) -> bool:
    """Whether :class:`DecodedInBlocks` takes these."""
    return _is_compiled(codes, weight, bias, words) and len(codes) > 0 and _steps.decodes()


def _groups(n_bits: int, n_groups: int) -> list[tuple[int, int]]:
    """The first bit and the number of bits of each group, as torch's tensor_split shares them out.

    >>> _groups(6, 4)
    [(0, 2), (2, 2), (4, 1), (5, 1)]
    """
    size, longer = divmod(n_bits, n_groups)
    sizes = [size + (group < longer) for group in range(n_groups)]
    return [(sum(sizes[:group]), sizes[group]) for group in range(n_groups)]


class Reading(NamedTuple):
    """What one group of bits says about the documents."""

    codes: Tensor
    weight: Tensor
    value: Tensor  # log p(x | s)
    by_logits: Tensor  # its derivative, t − (Σt) softmax
    by_bias: Tensor  # the sum of that over the documents


def _readings(
    codes: Tensor, weight: Tensor, bias: Tensor, words: SparseRows, n_groups: int
) -> Iterator[Reading]:
    """Of each group of bits s and its part of E.

    One matrix holds the logits, their softmax and the derivative, of one group after the other.
    """
    logits = codes.new_empty(len(codes), len(bias))
    derive = _derive_compiled if _is_compiled(codes, weight, bias, words) else _derive
    for s, E in zip(codes.tensor_split(n_groups, -1), weight.tensor_split(n_groups), strict=True):
        torch.mm(s, E, out=logits)
        yield Reading(s, E, *derive(logits, bias, words))


def _is_compiled(codes: Tensor, weight: Tensor, bias: Tensor, words: SparseRows) -> bool:
    floats = (codes, weight, bias, words.values)
    integers = (words.indices, words.offsets)
    return (
        _steps is not None
        and all(t.dtype == torch.float32 and t.device.type == "cpu" for t in floats)
        and all(t.dtype == torch.int32 for t in integers)
        and bias.is_contiguous()
    )


def _derive_compiled(
    logits: Tensor, bias: Tensor, words: SparseRows
) -> tuple[Tensor, Tensor, Tensor]:
    """The twin of :func:`_derive` that goes over a document's logits while they are in the cache."""
    value, by_bias = logits.new_empty(len(logits)), logits.new_empty(2, len(bias))
    target = (words.indices.numpy(), words.values.numpy(), words.offsets.numpy())
    arrays = (logits.numpy(), bias.detach().numpy(), *target, value.numpy(), by_bias.numpy())
    _steps.decode(*arrays, torch.get_num_threads())
    return value, logits, by_bias[0] + by_bias[1]


def _derive(logits: Tensor, bias: Tensor, words: SparseRows) -> tuple[Tensor, Tensor, Tensor]:
    """Adds the bias to the logits and makes them the derivative; with the value and its sum.

    The normaliser is that of the likeliest word, whose logit is log softmax + log Σ exp, so the
    exponentials are computed once.
    """
    logits += bias
    rows, totals = words.row_numbers(), row_sums(words)
    places = rows * len(bias) + words.indices
    found = logits.view(-1).index_select(0, places)
    highest = logits.amax(-1)
    softmax = torch.softmax(logits, -1, out=logits)
    value = -totals * (highest - softmax.amax(-1).log())
    value.index_add_(0, rows, words.values * found)
    by_logits = softmax.mul_(-totals.unsqueeze(-1))
    by_logits.view(-1).index_add_(0, places, words.values)
    return value, by_logits, by_logits.sum(0)
