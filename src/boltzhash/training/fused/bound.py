"""One step of CorrSH on a GPU in few launches, from what the network puts out to the terms of the bound.

What :class:`CorrSH` composes of distributions, estimators and objectives, written out for the settings
that nearly all fits have: the rearranged bound (eq. 24 without its two energies), couplings of low rank,
fair bits as the prior, straight-through gradients. Each function below is a part of it with its
derivative; tests compare both with what is composed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from boltzhash.training.batches import Batch, Terms
from boltzhash.training.fused import constant, fits, launch, run_blocks
from boltzhash.training.fused.chance import CountedChance
from boltzhash.training.fused.functions import Likelihoods, likelihoods_of, put_derivative
from boltzhash.training.fused.layers import ParallelProduct, by_bias, side_by_side
from boltzhash.training.networks import Autoencoder, WordDecoder

MOST_SHARED = 48 * 1024  # bytes that a block has without asking for more


class Settings(NamedTuple):
    """What a step needs to know of the model."""

    rank: int
    n_components: int
    n_networks: int
    straight_through: float  # the factor of its gradient
    contrast_weight: float
    temperature: float
    compares_bits: bool  # or their means


class Sizes(NamedTuple):
    """As the kernels take them."""

    n_documents: int
    n_draws: int
    bits: int
    rank: int
    networks: int

    def drawn_numbers(self) -> int:
        """Normal and uniform numbers of a document, each kind filled up to fours."""
        normals = self.n_draws * (self.bits + self.rank) + self.bits
        return 4 * (-(-normals // 4) + -(-2 * self.bits // 4))

    def shared_bytes(self) -> int:
        """Of a block of the kernel that needs more."""
        cells = self.bits * (self.rank + self.n_draws + 1) + self.n_draws
        return 4 * (self.drawn_numbers() + cells)


def takes(model: Autoencoder, batch: Batch, n_bits: int, settings: Settings) -> bool:
    """Whether :func:`bound_terms` takes the step: on a GPU, of the whole minibatch, without labels."""
    sizes = Sizes(1, 1 + settings.n_components, n_bits, settings.rank, settings.n_networks)
    return (
        isinstance(batch.generator, CountedChance)
        and isinstance(batch.inputs, Tensor)
        and isinstance(batch.targets, Tensor)
        and fits(batch.inputs, batch.targets)
        and batch.labels is None
        and model.encoder.n_hidden > 0
        and type(model.decoder) is WordDecoder
        and sizes.shared_bytes() <= MOST_SHARED
    )


def bound_terms(
    model: Autoencoder, batch: Batch, beta: Tensor, noise: Tensor, settings: Settings
) -> Terms:
    """The terms of one step; ``beta`` weighs the divergence, ``noise`` deviates before the decoder."""
    assert isinstance(batch.targets, Tensor)
    n = len(batch.targets)
    is_compared = batch.neighbour is not None and settings.contrast_weight > 0
    inputs = batch.with_neighbour() if is_compared else batch.inputs
    hidden = model.encoder.hidden(inputs, batch.generator)
    heads = model.encoder.heads
    outputs = ParallelProduct.apply(hidden, heads.weight)  # type: ignore[no-untyped-call]
    noisy, divergence, locations, bits = SampledCodes.apply(  # type: ignore[no-untyped-call]
        outputs, heads.bias, noise, n, settings, batch.generator
    )
    decoder = model.decoder
    values = DecodedWords.apply(  # type: ignore[no-untyped-call]
        noisy, decoder.weight, decoder.bias, batch.targets, settings.n_networks
    )
    contrasts = None
    if is_compared:
        contrasts = Contrasts.apply(locations, settings)  # type: ignore[no-untyped-call]
    loss, likelihood, kl = MeanTerms.apply(  # type: ignore[no-untyped-call]
        values, divergence, contrasts, beta, settings
    )
    return Terms(loss, likelihood, kl, bits)


class SampledCodes(torch.autograd.Function):
    """Codes drawn from the posterior: ``apply(outputs, bias, noise, n_documents, settings, chance)``.

    ``outputs`` are those of the heads without their bias, of the documents and then, perhaps, of a
    neighbour of each. Returns s + noise (n, bits), log h_k(s̃) − log p(s̃) (n,), the locations of all rows
    and which bits are on.
    """

    @staticmethod
    def forward(
        ctx: Any,
        outputs: Tensor,
        bias: Tensor,
        noise: Tensor,
        n_documents: int,
        settings: Settings,
        chance: CountedChance,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        bits = outputs.shape[1] // (2 + settings.rank)
        k = settings.n_components
        ctx.sizes = Sizes(n_documents, 1 + k, bits, settings.rank, settings.n_networks)
        ctx.drawn = chance.draw()
        ctx.scale = constant(settings.straight_through, outputs.device)
        locations = outputs.new_empty(len(outputs), bits)
        draws = outputs.new_empty(n_documents, 1 + k, bits)
        noisy = outputs.new_empty(n_documents, bits)
        divergence, shares = outputs.new_empty(n_documents), outputs.new_empty(n_documents, k)
        is_on = torch.empty(n_documents, bits, dtype=torch.bool, device=outputs.device)
        results = (locations, draws, noisy, divergence, shares, is_on)
        given = (outputs, bias, noise, *ctx.drawn)
        memory = ctx.sizes.shared_bytes()
        run_blocks("sampled_codes", len(outputs), *given, *results, *ctx.sizes, memory=memory)
        ctx.save_for_backward(outputs, bias, draws, shares)
        ctx.mark_non_differentiable(is_on)
        ctx.set_materialize_grads(False)
        return noisy, divergence, locations, is_on

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, by_noisy: Tensor, by_divergence: Tensor, by_locations: Tensor | None, _: None
    ) -> tuple[Tensor | None, ...]:
        outputs, bias, draws, shares = ctx.saved_tensors
        by_outputs = torch.empty_like(outputs)
        has_locations = by_locations is not None
        gradients = (
            by_noisy.contiguous(),
            by_divergence,
            by_divergence.stride(0),
            by_locations.contiguous() if by_locations is not None else by_noisy,
            int(has_locations),
        )
        given = (outputs, bias, ctx.scale, *ctx.drawn, draws, shares, *gradients, by_outputs)
        memory = 4 * (ctx.sizes.drawn_numbers() + ctx.sizes.n_draws * ctx.sizes.bits)
        name = "sampled_codes_backward"
        run_blocks(name, len(outputs), *given, *ctx.sizes, memory=memory)
        return by_outputs, by_bias(bias, by_outputs), None, None, None, None


class DecodedWords(torch.autograd.Function):
    """Σ_w t_w log softmax(sᵀE + b)_w (eq. 2): ``apply(codes, weight, bias, targets, n_groups)``.

    The bits are read in groups, each of which describes the document by itself: values of all documents
    by the first group, then by the next.
    """

    @staticmethod
    def forward(
        ctx: Any, codes: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, n_groups: int
    ) -> Tensor:
        n_words, targets = len(bias), targets.contiguous()
        logits = torch.bmm(side_by_side(codes, n_groups), weight.view(n_groups, -1, n_words))
        logits = logits.view(-1, n_words)
        found = likelihoods_of(logits, bias, targets)
        ctx.save_for_backward(codes, weight, bias, targets, *found)
        ctx.logits, ctx.n_groups = logits, n_groups
        return found.values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        codes, weight, bias, targets, *found = ctx.saved_tensors
        by_logits, n_words = ctx.logits, len(bias)  # the logits are not needed again
        put_derivative(by_logits, by_logits, bias, targets, Likelihoods(*found), gradient)
        by_codes, by_weight = torch.empty_like(codes), torch.empty_like(weight)
        of_groups = by_logits.view(ctx.n_groups, -1, n_words)
        by_group = weight.view(ctx.n_groups, -1, n_words)
        torch.bmm(of_groups, by_group.mT, out=side_by_side(by_codes, ctx.n_groups))
        read = side_by_side(codes, ctx.n_groups).mT
        torch.bmm(read, of_groups, out=by_weight.view(ctx.n_groups, -1, n_words))
        return by_codes, by_weight, by_bias(bias, by_logits), None, None


class Contrasts(torch.autograd.Function):
    """How hard it is to tell whose neighbour is whose: ``apply(locations, settings)``.

    :func:`objectives.neighbour_contrast` of every part of the code, first of all documents by the first
    part. ``locations`` are those of the documents, then of their neighbours.
    """

    @staticmethod
    def forward(ctx: Any, locations: Tensor, settings: Settings) -> Tensor:
        n_rows, bits = locations.shape
        parts, n = settings.n_networks, n_rows // 2
        units = locations.new_empty(parts, n_rows, bits // parts)
        ctx.how = (n_rows, bits, parts, int(settings.compares_bits))
        launch("contrast_codes", 32 * n_rows * parts, locations, units, *ctx.how)
        cosines = torch.bmm(units[:, :n], units[:, n:].mT)
        ctx.temperature = constant(settings.temperature, locations.device)
        of_rows, of_columns, values = (locations.new_empty(parts * n) for _ in range(3))
        results = (of_rows, of_columns, values)
        launch("contrast_values", 32 * n * parts, cosines, ctx.temperature, *results, n, parts)
        ctx.save_for_backward(locations, units, cosines, of_rows, of_columns)
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        locations, units, cosines, of_rows, of_columns = ctx.saved_tensors
        parts, n, _ = cosines.shape
        by_cosines, by_units = torch.empty_like(cosines), torch.empty_like(units)
        given = (cosines, ctx.temperature, of_rows, of_columns, gradient, gradient.stride(0))
        launch("contrast_values_backward", cosines.numel(), *given, by_cosines, n, parts)
        torch.bmm(by_cosines, units[:, n:], out=by_units[:, :n])
        torch.bmm(by_cosines.mT, units[:, :n], out=by_units[:, n:])
        by_locations = torch.empty_like(locations)
        n_threads = 32 * len(locations) * parts
        launch("contrast_codes_backward", n_threads, locations, by_units, by_locations, *ctx.how)
        return by_locations, None


class MeanTerms(torch.autograd.Function):
    """What is minimised, log p(x | s) and the divergence of a network: ``apply(values, …)``.

    Means over the documents; ``values`` are those of every group of bits, ``contrasts`` of every part of
    the code, and None without any.
    """

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        divergence: Tensor,
        contrasts: Tensor | None,
        beta: Tensor,
        settings: Settings,
    ) -> tuple[Tensor, Tensor, Tensor]:
        n, n_readings = len(divergence), settings.n_networks
        n_contrasts = 0 if contrasts is None else n_readings
        ctx.sizes = (n, n_readings)
        weight = constant(settings.contrast_weight, values.device)
        loss, likelihood, kl = (values.new_empty(()) for _ in range(3))
        given = (values, divergence, values if contrasts is None else contrasts, beta, weight)
        results, by = (loss, likelihood, kl), values.new_empty(3)
        run_blocks("bound_terms", 1, *given, *results, by, *ctx.sizes, n_contrasts)
        ctx.save_for_backward(by)
        ctx.mark_non_differentiable(likelihood, kl)
        ctx.set_materialize_grads(False)
        ctx.n_contrasts = n_contrasts * n
        return results

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: None, __: None) -> tuple[Tensor | None, ...]:
        n, n_readings = ctx.sizes
        (by,) = ctx.saved_tensors
        # A product of PyTorch's: the first kernel of the thread that goes backwards cannot be ours.
        by_values, by_divergence, by_contrasts = (by * gradient).view(3, 1).unbind()
        return (
            by_values.expand(n_readings * n),
            by_divergence.expand(n),
            by_contrasts.expand(ctx.n_contrasts) if ctx.n_contrasts else None,
            None,
            None,
        )
