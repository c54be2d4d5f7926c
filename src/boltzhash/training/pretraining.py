"""A stack of restricted Boltzmann machines, trained one after another by contrastive divergence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from scipy import sparse

from boltzhash.errors import TrainingError
from boltzhash.training.batches import minibatches
from boltzhash.training.loop import generator_for
from boltzhash.training.objectives import word_log_likelihood
from boltzhash.training.rbm import (
    RBM,
    Visible,
    binary_log_likelihood,
    binary_mean,
    contrastive_divergence,
    hidden_logits,
    hidden_probabilities,
    start_rbm,
    word_mean,
)
from boltzhash.training.rows import row_sums

# Random streams of pretraining epochs, far from those of fine-tuning, which count from 1.
FIRST_STREAM, STREAMS_A_LAYER = 10**9, 10**6


@dataclass(frozen=True)
class PretrainingRecord:
    """One epoch of one machine: log p(v | h) of its reconstructions, in nats per document."""

    layer: int
    epoch: int
    reconstruction: float


@dataclass(frozen=True)
class Pretraining:
    """How long and how fast each machine is trained, and from which random numbers."""

    epochs: int
    batch_size: int
    learning_rate: float
    seed: int


def pretrain_stack(
    counts: sparse.csr_matrix,
    sizes: Sequence[int],
    settings: Pretraining,
    device: torch.device,
    on_epoch: Callable[[PretrainingRecord], object],
) -> list[RBM]:
    """Train the machines one after another, each on the hidden probabilities of the last.

    Parameters
    ----------
    counts : float32 matrix of shape (n_documents, n_words)
        What the first machine models.
    sizes : sequence of int
        Hidden units of each machine; the last one's are the code units.
    """
    frequencies = np.asarray(counts.sum(axis=0)).ravel() + 0.5  # a column may never occur
    bias = torch.from_numpy(np.log(frequencies / frequencies.sum()))
    weights_generator = generator_for(settings.seed, 0)
    stack: list[RBM] = []
    for n_hidden in sizes:
        try:
            bias = bias.to(device, torch.float32)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"device {str(device)!r} cannot be used: {error}") from error
        rbm = start_rbm(bias, n_hidden, weights_generator)
        _pretrain_one(rbm, stack, counts, settings, on_epoch)
        stack.append(rbm)
        bias = torch.zeros(n_hidden)
    return stack


def _pretrain_one(
    rbm: RBM,
    below: list[RBM],
    counts: sparse.csr_matrix,
    settings: Pretraining,
    on_epoch: Callable[[PretrainingRecord], object],
) -> None:
    """Contrastive divergence on the machine above ``below``; its tensors change in place."""
    device, n = rbm.weight.device, counts.shape[0]
    optimizer = torch.optim.Adam(rbm, lr=settings.learning_rate, maximize=True, fused=True)
    for epoch in range(settings.epochs):
        stream = FIRST_STREAM + len(below) * STREAMS_A_LAYER + epoch
        generator = generator_for(settings.seed, stream, device)
        order = np.random.default_rng([settings.seed, stream]).permutation(n)
        total = torch.zeros((), device=device)
        for (rows,) in minibatches([counts], settings.batch_size, order, device):
            v = _hidden_of(rows, below)
            mean = binary_mean if below else partial(word_mean, totals=row_sums(rows))
            contrast = contrastive_divergence(v, rbm, mean, generator)
            for parameter, gradient in zip(rbm, contrast.gradient, strict=True):
                parameter.grad = gradient
            optimizer.step()
            if below:
                assert isinstance(v, torch.Tensor)
                total += binary_log_likelihood(contrast.visible_logits, v).sum()
            else:
                total += word_log_likelihood(contrast.visible_logits, v).sum()
        record = PretrainingRecord(len(below) + 1, epoch + 1, float(total) / n)
        if not math.isfinite(record.reconstruction):
            rate = settings.learning_rate
            raise TrainingError(
                f"pretraining diverged in epoch {record.epoch} of layer {record.layer} "
                f"(reconstruction {record.reconstruction}): pretraining_rate={rate:g} is too high for "
                f"this corpus, try {rate / 10:g}"
            )
        on_epoch(record)


def _hidden_of(rows: Visible, machines: list[RBM]) -> Visible:
    """Counts passed up through the machines, each reading what the one below it says."""
    for machine in machines:
        rows = hidden_probabilities(rows, machine)
    return rows


def centre_code(
    stack: list[RBM], counts: sparse.csr_matrix, batch_size: int, threshold: float
) -> None:
    """Shift the biases of the code units so that their mean input is at the threshold.

    Otherwise a unit that pretraining left on one side of it for all documents may stay there.

    Parameters
    ----------
    counts : float32 matrix of shape (n_documents, n_words)
    threshold : float
        The input above which a bit is on, a logit.
    """
    bias = stack[-1].hidden_bias
    total = torch.zeros_like(bias)
    order = np.arange(counts.shape[0])
    for (rows,) in minibatches([counts], batch_size, order, bias.device):
        total += hidden_logits(_hidden_of(rows, stack[:-1]), stack[-1]).sum(0)
    bias += threshold - total / counts.shape[0]
