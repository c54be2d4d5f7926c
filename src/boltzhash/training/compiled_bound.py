"""One step of CorrSH on a CPU, compiled between the network and the decoder.

For the settings that nearly all fits have: the rearranged bound (eq. 24 without its two energies),
couplings of low rank, fair bits as the prior, straight-through gradients. Composed of distributions and
estimators this is dozens of operations on small tensors, which take PyTorch longer to start than to run;
here a document's numbers are read, summed and derived in one pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from boltzhash.training.batches import Batch, Terms
from boltzhash.training.draws import fill_normal, fill_uniform
from boltzhash.training.networks import Autoencoder, InferenceNetwork, WordDecoder
from boltzhash.training.objectives import (
    contrast_of_parts,
    decoded_log_likelihood,
    mean_codes,
    sign_codes,
)
from boltzhash.training.rows import _steps


class Settings(NamedTuple):
    """Settings of the model that a step needs."""

    rank: int
    n_components: int
    n_networks: int
    straight_through: float  # the factor of its gradient
    contrast_weight: float
    temperature: float
    compares_bits: bool  # or their means


def takes(model: Autoencoder, batch: Batch) -> bool:
    """Whether :func:`bound_terms` takes the step: on a CPU, without labels."""
    return (
        _steps is not None
        and batch.progress.device.type == "cpu"
        and type(model.encoder) is InferenceNetwork
        and model.encoder.heads.weight.dtype == torch.float32
        and batch.labels is None
        and type(model.decoder) is WordDecoder
    )


def bound_terms(
    model: Autoencoder, batch: Batch, beta: Tensor | float, noise: float, settings: Settings
) -> Terms:
    """The terms of one step; ``beta`` weighs the divergence, ``noise`` deviates before the decoder."""
    encoder, decoder, n = model.encoder, model.decoder, settings.n_networks
    is_compared = batch.neighbour is not None and settings.contrast_weight > 0
    outputs, beside = encoder.joined(
        batch.inputs, batch.neighbour if is_compared else None, "location", batch.generator
    )
    noisy, divergences, locations, bits = SampledCodes.apply(  # type: ignore[no-untyped-call]
        outputs, noise, settings, batch.generator
    )
    likelihoods = decoded_log_likelihood(noisy, decoder.weight, decoder.bias, batch.targets, n)
    likelihood, divergence = likelihoods.mean(), divergences.mean()
    loss = beta * divergence - likelihood
    if beside is not None:
        codes_of = sign_codes if settings.compares_bits else mean_codes
        pair = (codes_of(locations), codes_of(beside))
        contrast = contrast_of_parts(*pair, n, settings.temperature)
        loss = loss + settings.contrast_weight * contrast
    return Terms(loss, likelihood.detach(), divergence.detach() / n, bits)


class SampledCodes(torch.autograd.Function):
    """Codes drawn from the posterior: ``apply(outputs, noise, settings, generator)``.

    ``outputs`` are those of all heads, as the networks put them out. Returns s + noise (n, bits),
    log h_k(s̃) − log p(s̃) (n,), the locations and which bits are on.
    """

    @staticmethod
    def forward(
        ctx: Any, outputs: Tensor, noise: float, settings: Settings, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        outputs, rank = outputs.contiguous(), settings.rank
        n, n_draws = len(outputs), 1 + settings.n_components
        bits = outputs.shape[1] // (2 + rank)
        ctx.sizes = (n, n_draws, bits, rank, settings.n_networks)
        ctx.scale = settings.straight_through
        normals = fill_normal(outputs.new_empty(n, n_draws * (bits + rank) + bits), generator)
        uniforms = fill_uniform(outputs.new_empty(n, 2 * bits), generator)
        kept = outputs.new_empty(_steps.kept_of_sampling(*ctx.sizes))
        locations, noisy = outputs.new_empty(2, n, bits)
        divergences = outputs.new_empty(n)
        is_on = torch.empty(n, bits, dtype=torch.bool)
        given = (outputs.detach().numpy(), normals.numpy(), uniforms.numpy(), kept.numpy())
        filled = (locations.numpy(), noisy.numpy(), divergences.numpy(), is_on.numpy())
        _steps.sampled_codes(*given, *filled, ctx.sizes, noise, torch.get_num_threads())
        ctx.save_for_backward(outputs, normals, kept)
        ctx.mark_non_differentiable(is_on)
        return noisy, divergences, locations, is_on

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, by_noisy: Tensor, by_divergences: Tensor, by_locations: Tensor, _: None
    ) -> tuple[Tensor, None, None, None]:
        outputs, normals, kept = ctx.saved_tensors
        by_outputs = torch.empty_like(outputs)
        given = (outputs.numpy(), normals.numpy(), kept.numpy())
        gradients = (
            by_noisy.contiguous().numpy(),
            by_divergences.contiguous().numpy(),
            by_locations.contiguous().numpy(),
        )
        how = (ctx.sizes, ctx.scale, torch.get_num_threads())
        _steps.sampled_codes_backward(*given, *gradients, by_outputs.numpy(), *how)
        return by_outputs, None, None, None
