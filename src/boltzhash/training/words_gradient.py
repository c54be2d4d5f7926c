"""Gradients that are left in their parts until Adam needs them.

Most of that of a layer that reads words is 0, since a batch has few of all words; still it is the
largest matrix of a step. Adam can make a word's row of it when the weights of that word are at hand, and
it is neither written nor read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
        return weighted_sums(self.by_output, *map(torch.from_numpy, self.by_word(n_words)))


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


def put_off_of(weight: Tensor) -> list[WordsGradient] | None:
    """Where gradients of this weight are to be left; None if it is to get them as ever."""
    return getattr(weight, PUT_OFF, None)
