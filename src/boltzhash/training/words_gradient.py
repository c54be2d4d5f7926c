"""Gradients that are left in their parts until Adam needs them.

Most of that of a layer that reads words is 0, since a batch has few of all words; still it is the
largest matrix of a step. Adam can make a word's row of it when the weights of that word are at hand, and
it is neither written nor read. On a GPU it sums the gradients of biases, too: a launch less for each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from boltzhash.training.rows import Integers, Rows, SparseRows, stacked

PUT_OFF = "put_off_gradients"  # the attribute of a weight


class WordsGradient(NamedTuple):
    """xᵀ G, not multiplied out."""

    x: Rows
    by_output: Tensor  # G, the derivative by what the layer put out

    def plus(self, other: WordsGradient) -> WordsGradient:
        """The sum, which is that of all their rows."""
        return WordsGradient(stacked(self.x, other.x), torch.cat([self.by_output, other.by_output]))

    def by_word(self, n_words: int) -> tuple[Integers, NDArray[Any], Integers]:
        """Word by word, in which sparse rows it occurs, how much of it, and where the words end."""
        assert isinstance(self.x, SparseRows)
        return self.x.by_word(n_words)

    def whole(self, n_words: int) -> Tensor:
        """Multiplied out: for each word, the sum of the rows of G in which it occurs."""
        if isinstance(self.x, Tensor):
            return self.x.T @ self.by_output
        return weighted_sums(self.by_output, *map(torch.from_numpy, self.by_word(n_words)))


class BiasGradient(NamedTuple):
    """1ᵀ G, not summed: what a bias that was added to every row gets."""

    by_output: Tensor

    def plus(self, other: BiasGradient) -> BiasGradient:
        return BiasGradient(torch.cat([self.by_output, other.by_output]))

    def whole(self, n: int) -> Tensor:
        assert self.by_output.shape[1] == n
        return self.by_output.sum(0)


def weighted_sums(table: Tensor, indices: Tensor, values: Tensor, offsets: Tensor) -> Tensor:
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


def put_off_of(weight: Tensor) -> list[Any] | None:
    """Where gradients of this weight are to be left; None if it is to get them as ever."""
    return getattr(weight, PUT_OFF, None)


class Optimizer(Protocol):
    """What takes the steps of a fit; torch.optim.Adam is one."""

    param_groups: list[dict[str, Any]]
    state: Any

    def zero_grad(self) -> None: ...

    def step(self) -> None: ...


class PatientAdam:
    """Gives layers a place to leave the parts of their gradients.

    A weight's own ``grad`` then has what others add to it. Settings are the defaults of torch.optim.Adam
    and what is remembered is what it remembers, so that either can go on from the other. It is no
    subclass of it: to make one imports torch's compiler, which takes a second.
    """

    def __init__(self, weights: Iterable[Tensor], rate: float | Tensor = 1e-3) -> None:
        settings = {"lr": rate, "betas": (0.9, 0.999), "eps": 1e-8}
        self.param_groups: list[dict[str, Any]] = [{"params": list(weights), **settings}]
        self.state: defaultdict[Tensor, dict[str, Tensor]] = defaultdict(dict)
        self._put_off: dict[Tensor, list[Any]] = {}
        for weight in self.param_groups[0]["params"]:
            self._put_off[weight] = []
            setattr(weight, PUT_OFF, self._put_off[weight])

    def zero_grad(self) -> None:
        for weight in self.param_groups[0]["params"]:
            weight.grad = None
        for parts in self._put_off.values():
            parts.clear()

    def moments_of(self, weight: Tensor) -> dict[str, Tensor]:
        """The number of its steps and the averages of its gradient and of its square."""
        state = self.state[weight]
        if not state:
            state["step"] = torch.zeros((), device=weight.device)
            state["exp_avg"], state["exp_avg_sq"] = (
                torch.zeros_like(weight),
                torch.zeros_like(weight),
            )
        return state

    def gradient_of(self, weight: Tensor) -> Tensor | WordsGradient | BiasGradient | None:
        """Whole, in parts if there is nothing else, or None if there is none."""
        parts = self._put_off.get(weight, [])
        if not parts:
            return weight.grad
        gradient: WordsGradient | BiasGradient = reduce(lambda some, more: some.plus(more), parts)
        return gradient if weight.grad is None else gradient.whole(len(weight)) + weight.grad
