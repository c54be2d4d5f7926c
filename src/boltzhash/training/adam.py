"""Adam on a CPU, compiled: the gradient of the first layer is made as its weights are updated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import reduce
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from boltzhash.training.rows import _steps
from boltzhash.training.words_gradient import PUT_OFF, WordsGradient


class Optimizer(Protocol):
    """Takes the steps of a fit, as torch.optim.Adam does."""

    param_groups: list[dict[str, Any]]
    state: Any

    def zero_grad(self) -> None: ...

    def step(self) -> None: ...


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


class CompiledAdam:
    """torch.optim.Adam with its defaults, for float32 weights on a CPU.

    Gives layers a place to leave the parts of their gradients; a weight's own ``grad`` then has what
    others add to it. What is remembered is what torch.optim.Adam remembers, so that either can go on
    from the other. It is no subclass of it: to make one imports torch's compiler, which takes a second.
    """

    def __init__(self, weights: Iterable[Tensor]) -> None:
        settings = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8}
        self.param_groups: list[dict[str, Any]] = [{"params": list(weights), **settings}]
        self.state: defaultdict[Tensor, dict[str, Tensor]] = defaultdict(dict)
        self._put_off: dict[Tensor, list[WordsGradient]] = {}
        for weight in self.param_groups[0]["params"]:
            self._put_off[weight] = []
            setattr(weight, PUT_OFF, self._put_off[weight])

    def zero_grad(self) -> None:
        for weight in self.param_groups[0]["params"]:
            weight.grad = None
        for parts in self._put_off.values():
            parts.clear()

    @torch.no_grad()
    def step(self) -> None:
        (group,) = self.param_groups
        threads = torch.get_num_threads()
        for p in group["params"]:
            gradient = self._gradient_of(p)
            if gradient is None:
                continue
            state = self._moments_of(p)
            state["step"] += 1
            numbers = _numbers(group, state["step"].item())
            moments = (state["exp_avg"].numpy(), state["exp_avg_sq"].numpy())
            places = (p.detach().numpy(), *moments)
            if isinstance(gradient, WordsGradient):
                words = gradient.by_word(len(p))
                by_output = gradient.by_output.numpy()
                _steps.adam_of_words(*places, by_output, *words, numbers, threads)
            else:
                _steps.adam_dense(*places, gradient.contiguous().numpy(), numbers, threads)

    def _moments_of(self, weight: Tensor) -> dict[str, Tensor]:
        """The number of its steps and the averages of its gradient and of its square."""
        state = self.state[weight]
        if not state:
            state["step"] = torch.zeros(())
            for name in ("exp_avg", "exp_avg_sq"):
                state[name] = torch.zeros_like(weight)
        return state

    def _gradient_of(self, weight: Tensor) -> Tensor | WordsGradient | None:
        """Whole, in parts if there is nothing else, or None if there is none."""
        parts = self._put_off.get(weight, [])
        if not parts:
            return weight.grad
        gradient = reduce(lambda some, more: some.plus(more), parts)
        return gradient if weight.grad is None else gradient.whole(len(weight)) + weight.grad


def _numbers(group: dict[str, Any], step: float) -> tuple[float, float, float, float, float, float]:
    """What the averages, which started at 0, make of the learning rate, and the rest of the settings."""
    beta1, beta2 = group["betas"]
    rate, root = group["lr"] / (1 - beta1**step), (1 - beta2**step) ** -0.5
    return rate, root, 1 - beta1, beta2, 1 - beta2, group["eps"]
