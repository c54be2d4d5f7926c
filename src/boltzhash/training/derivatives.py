"""The two layers that touch every word, with derivatives written by hand: for the CPU.

What autograd would do is correct but wasteful there. It sorts the words of a batch for the
gradient of the first layer, and it passes over a matrix of documents × words a dozen times for the
decoder's. Here both are a few passes; tests compare them with autograd's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from scipy import sparse
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag


class SparseProduct(torch.autograd.Function):
    """x W of sparse rows x: ``apply(weight, indices, values, offsets)``, differentiable in W."""

    @staticmethod
    def forward(weight: Tensor, indices: Tensor, values: Tensor, offsets: Tensor) -> Tensor:
        return _weighted_sums(weight, indices, values, offsets)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        weight, indices, values, offsets = inputs
        ctx.n_words = weight.shape[0]
        ctx.save_for_backward(indices, values, offsets)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        """xᵀ G: for each word, the sum of the rows of G in which it occurs."""
        indices, values, offsets = (part.numpy() for part in ctx.saved_tensors)
        shape = (gradient.shape[0], ctx.n_words)
        by_word = sparse.csr_matrix((values, indices, offsets), shape=shape).tocsc()
        parts = (torch.from_numpy(part) for part in (by_word.indices, by_word.data, by_word.indptr))
        return _weighted_sums(gradient.contiguous(), *parts), None, None, None


def _weighted_sums(table: Tensor, indices: Tensor, values: Tensor, offsets: Tensor) -> Tensor:
    """Row i: Σ_j values_j table[indices_j] over the j from offsets_i up to offsets_{i+1}."""
    sums: Tensor = embedding_bag(
        indices,
        table,
        offsets,
        mode="sum",
        per_sample_weights=values,
        include_last_offset=True,
    )
    return sums


class Words(NamedTuple):
    """The words that a batch of documents should be decoded to: how much of word w in row r."""

    rows: Tensor
    places: Tensor  # r · n_words + w
    amounts: Tensor
    totals: Tensor  # Σ of the amounts of each row


class DecodedLogLikelihood(torch.autograd.Function):
    """Σ_w t_w log softmax(sᵀE + b)_w, the mean over groups of bits that each decode by themselves.

    ``apply(codes, weight, bias, words, n_groups)``, differentiable in the first three. The derivatives
    are taken on the way forward, while the logits of a group are at hand, as if every document counted
    once; nothing of the size documents × words is kept. If they count differently, those by weight and
    bias are recomputed.
    """

    @staticmethod
    def forward(
        ctx: Any, codes: Tensor, weight: Tensor, bias: Tensor, words: Words, n_groups: int
    ) -> Tensor:
        total = torch.zeros_like(words.totals)
        by_codes, by_weight, by_bias = [], torch.empty_like(weight), torch.zeros_like(bias)
        readings = _readings(codes, weight, bias, words, n_groups)
        for (s, E, value, by_logits), by_E in zip(
            readings, by_weight.tensor_split(n_groups), strict=True
        ):
            total += value
            if any(ctx.needs_input_grad):
                by_codes.append(by_logits @ E.T)
                torch.mm(s.T, by_logits, out=by_E)
                by_bias += by_logits.sum(0)
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
            for (s, _, _, by_logits), by_E in zip(
                readings, by_weight.tensor_split(ctx.n_groups), strict=True
            ):
                torch.mm((each.unsqueeze(-1) * s).T, by_logits, out=by_E)
                by_bias += each @ by_logits
        return each.unsqueeze(-1) * by_codes, by_weight, by_bias, None, None


def _readings(
    codes: Tensor, weight: Tensor, bias: Tensor, words: Words, n_groups: int
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """For each group of bits s and its part of E: log p(x | s), and its derivative t − (Σt) softmax.

    One matrix holds the logits, their softmax and the derivative, of one group after the other. The
    normaliser is that of the likeliest word, whose logit is log softmax + log Σ exp, so the
    exponentials are computed once.
    """
    logits = codes.new_empty(len(codes), len(bias))
    for s, E in zip(codes.tensor_split(n_groups, -1), weight.tensor_split(n_groups), strict=True):
        torch.addmm(bias, s, E, out=logits)
        found = logits.view(-1).index_select(0, words.places)
        highest = logits.amax(-1)
        softmax = torch.softmax(logits, -1, out=logits)
        value = -words.totals * (highest - softmax.amax(-1).log())
        value.index_add_(0, words.rows, words.amounts * found)
        by_logits = softmax.mul_(-words.totals.unsqueeze(-1))
        by_logits.view(-1).index_add_(0, words.places, words.amounts)
        yield s, E, value, by_logits
