"""The kernels as functions that autograd knows."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from boltzhash.training.fused import THREADS, kernel, launch, run_blocks


class LowRankDraws(torch.autograd.Function):
    """μ + D^½ ε₁ + U ε₂ (eq. 26): ``apply(location, deviation, factor, epsilon)``.

    ``epsilon`` has shape (documents, draws, bits + rank), the result (draws, documents, bits).
    """

    @staticmethod
    def forward(
        ctx: Any, location: Tensor, deviation: Tensor, factor: Tensor, epsilon: Tensor
    ) -> Tensor:
        n_documents, bits, rank = factor.shape
        n_draws = epsilon.shape[1]
        draws = epsilon.new_empty(n_draws, n_documents, bits)
        ctx.shape = (n_documents, n_draws, bits, rank)
        parts = (location, location.stride(0), deviation.contiguous(), factor.contiguous())
        launch("low_rank_draws", draws.numel(), *parts, epsilon, draws, *ctx.shape)
        ctx.save_for_backward(epsilon)
        return draws

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        (epsilon,) = ctx.saved_tensors
        n_documents, _, bits, rank = ctx.shape
        by_location, by_deviation = epsilon.new_empty(2, n_documents, bits)
        by_factor = epsilon.new_empty(n_documents, bits, rank)
        results = (by_location, by_deviation, by_factor)
        n_threads = n_documents * bits * (rank + 2)
        name = "low_rank_draws_backward"
        launch(name, n_threads, gradient.contiguous(), epsilon, *results, *ctx.shape)
        return by_location, by_deviation, by_factor, None


class MixtureLogProb(torch.autograd.Function):
    """log h_k(s) (eq. 21): ``apply(logits, s)`` of shapes (k, documents, bits), (documents, bits)."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, s: Tensor) -> Tensor:
        logits, s = logits.contiguous(), s.contiguous()
        n_components, n_documents, _ = ctx.shape = logits.shape
        value, shares = logits.new_empty(n_documents), logits.new_empty(logits.shape[:2])
        kernel("mixture_log_prob")(
            grid=(n_documents, 1, 1),
            block=(32 * min(n_components, 16), 1, 1),
            args=[logits, s, value, shares, *logits.shape],
            shared_mem=4 * n_components,
        )
        ctx.save_for_backward(logits, s, shares)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        logits, s, shares = ctx.saved_tensors
        by_logits, by_s = torch.empty_like(logits), torch.empty_like(s)
        given = (logits, s, shares, gradient, gradient.stride(0))
        name = "mixture_log_prob_backward"
        launch(name, s.numel(), *given, by_logits, by_s, *ctx.shape)
        return by_logits, by_s


class Likelihoods(NamedTuple):
    """Σ_w t_w log softmax(logits + b)_w (eq. 2) of every row, and what its derivative needs."""

    values: Tensor
    log_normalizers: Tensor
    totals: Tensor


def likelihoods_of(logits: Tensor, bias: Tensor, targets: Tensor) -> Likelihoods:
    """Rows of logits are as many as the targets, or several readings of all of these in turn."""
    found = Likelihoods(*(logits.new_empty(len(logits)) for _ in range(3)))
    given = (logits, bias, targets, *found, *targets.shape)
    run_blocks("word_log_likelihood", len(logits), *given, threads=1024)
    return found


def put_derivative(
    out: Tensor,
    logits: Tensor,
    bias: Tensor,
    targets: Tensor,
    found: Likelihoods,
    gradient: Tensor,
) -> None:
    """The derivative by the logits, t − (Σt) softmax, which may take their place."""
    given = (logits, bias, targets, *found[1:], gradient, gradient.stride(0), out)
    kernel("word_log_likelihood_backward")(
        grid=(-(-len(bias) // THREADS), len(logits), 1),
        block=(THREADS, 1, 1),
        args=[*given, *targets.shape],
    )


class WordLogLikelihood(torch.autograd.Function):
    """Σ_w t_w log softmax(logits)_w (eq. 2): ``apply(logits, targets)``, differentiable in the first."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        logits, targets = logits.contiguous(), targets.contiguous()
        bias = logits.new_zeros(logits.shape[1])
        found = likelihoods_of(logits, bias, targets)
        ctx.save_for_backward(logits, bias, targets, *found)
        return found.values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        logits, bias, targets, *found = ctx.saved_tensors
        by_logits = torch.empty_like(logits)
        put_derivative(by_logits, logits, bias, targets, Likelihoods(*found), gradient)
        return by_logits, None
