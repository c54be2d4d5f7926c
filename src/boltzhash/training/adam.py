"""Adam on a CPU, compiled: the gradient of the first layer is made as its weights are updated.

Most of that gradient is 0, since a batch has few of all words; still it is the largest matrix of a step.
Made row by row while the weights of a word are at hand, it is neither written nor read.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from boltzhash.training.derivatives import WordsGradient, put_off_gradients

try:
    from boltzhash.training import _steps as _steps  # tests check whether it is there
except ImportError:  # no compiler when this was installed: PyTorch does it
    _steps = None  # type: ignore[assignment]


def adam_of(model: nn.Module, device: torch.device) -> torch.optim.Adam:
    """Adam with its defaults: compiled if it can be, else PyTorch's own."""
    weights = list(model.parameters())
    if _steps is not None and device.type == "cpu" and all(map(_fits, weights)):
        return CompiledAdam(weights)
    return torch.optim.Adam(weights, fused=True)


def _fits(weight: Tensor) -> bool:
    return weight.dtype == torch.float32 and weight.is_contiguous()


class CompiledAdam(torch.optim.Adam):
    """torch.optim.Adam with its defaults, for float32 weights on a CPU.

    Layers that read sparse rows leave it the parts of their gradient instead of the whole
    (:func:`put_off_gradients`).
    """

    def __init__(self, weights: list[nn.Parameter]) -> None:
        super().__init__(weights)
        self._put_off = {p: put_off_gradients(p) for p in weights if p.dim() == 2}

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        for parts in self._put_off.values():
            parts.clear()

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # no closure is taken
        (group,) = self.param_groups
        threads = torch.get_num_threads()
        for p in group["params"]:
            parts = self._put_off.get(p, [])
            if p.grad is None and not parts:
                continue
            state = self.state[p]
            if not state:
                state["step"] = torch.zeros(())
                state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
            state["step"] += 1
            numbers = _numbers(group, state["step"].item())
            moments = (state["exp_avg"].numpy(), state["exp_avg_sq"].numpy())
            places = (p.detach().numpy(), *moments)
            if p.grad is None:
                gradient = reduce(WordsGradient.plus, parts)
                by_word = (gradient.by_output.numpy(), *gradient.by_word(len(p)))
                _steps.adam_of_words(*places, *by_word, numbers, threads)
            else:
                whole = sum((part.whole(len(p)) for part in parts), p.grad)
                _steps.adam_dense(*places, whole.contiguous().numpy(), numbers, threads)


def _numbers(group: dict[str, Any], step: float) -> tuple[float, float, float, float, float]:
    """What the averages, which started at 0, make of the learning rate, and the rest of the settings."""
    beta1, beta2 = group["betas"]
    rate, root = group["lr"] / (1 - beta1**step), (1 - beta2**step) ** -0.5
    return rate, root, beta1, beta2, group["eps"]
