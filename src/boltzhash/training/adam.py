"""Adam on a CPU, compiled: the gradient of the first layer is made as its weights are updated."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from boltzhash.training.rows import _steps
from boltzhash.training.words_gradient import (
    BiasGradient,
    Optimizer,
    PatientAdam,
    WordsGradient,
)


def adam_of(model: nn.Module, device: torch.device) -> Optimizer:
    """Adam with its defaults: compiled if it can be, else PyTorch's own."""
    weights = list(model.parameters())
    if (
        _steps is not None
        and device.type == "cpu"
        and all(p.dtype == torch.float32 and p.is_contiguous() for p in weights)
    ):
        return CompiledAdam(weights)
    return torch.optim.Adam(weights, fused=True)


class CompiledAdam(PatientAdam):
    """torch.optim.Adam with its defaults, for float32 weights on a CPU."""

    @torch.no_grad()
    def step(self) -> None:
        (group,) = self.param_groups
        threads = torch.get_num_threads()
        for p in group["params"]:
            gradient = self.gradient_of(p)
            if gradient is None:
                continue
            state = self.moments_of(p)
            state["step"] += 1
            numbers = _numbers(group, state["step"].item())
            moments = (state["exp_avg"].numpy(), state["exp_avg_sq"].numpy())
            places = (p.detach().numpy(), *moments)
            if isinstance(gradient, WordsGradient):
                words = gradient.by_word(len(p))
                by_output = gradient.by_output.numpy()
                _steps.adam_of_words(*places, by_output, *words, numbers, threads)
            else:
                assert not isinstance(gradient, BiasGradient)  # only layers on a GPU leave those
                _steps.adam_dense(*places, gradient.contiguous().numpy(), numbers, threads)


def _numbers(group: dict[str, Any], step: float) -> tuple[float, float, float, float, float, float]:
    """What the averages, which started at 0, make of the learning rate, and the rest of the settings."""
    beta1, beta2 = group["betas"]
    rate, root = group["lr"] / (1 - beta1**step), (1 - beta2**step) ** -0.5
    return rate, root, 1 - beta1, beta2, 1 - beta2, group["eps"]
