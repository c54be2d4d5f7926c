"""The inference network on sparse tf-idf rows, and the linear word decoder."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from boltzhash.derivatives import SparseProduct

PARTS = ("weight", "bias")


class SparseRows(NamedTuple):
    """A batch of sparse rows: row i holds values[offsets[i]:offsets[i+1]] at those indices."""

    indices: Tensor
    values: Tensor
    offsets: Tensor

    @property
    def n_rows(self) -> int:
        return self.offsets.shape[0] - 1

    def row_numbers(self) -> Tensor:
        """The row of each value."""
        rows = torch.arange(self.n_rows, device=self.offsets.device)
        return rows.repeat_interleave(self.offsets.diff(), output_size=self.values.shape[0])

    def dense(self, n_columns: int) -> Tensor:
        """The rows as a matrix; a column may stand only once in a row."""
        matrix = self.values.new_zeros(self.n_rows, n_columns)
        matrix[self.row_numbers(), self.indices] = self.values
        return matrix


Rows = SparseRows | Tensor  # sparse on a CPU; dense on a GPU, where a batch is small and faster so


def stacked(above: Rows, below: Rows) -> Rows:
    """Both, one under the other."""
    if isinstance(above, Tensor) and isinstance(below, Tensor):
        return torch.cat([above, below])
    assert isinstance(above, SparseRows)
    assert isinstance(below, SparseRows)
    return SparseRows(
        torch.cat([above.indices, below.indices]),
        torch.cat([above.values, below.values]),
        torch.cat([above.offsets, above.offsets[-1] + below.offsets[1:]]),
    )


def row_sums(rows: Rows) -> Tensor:
    """The sum of each row."""
    if isinstance(rows, Tensor):
        return rows.sum(-1)
    zeros = rows.values.new_zeros(rows.n_rows)
    return zeros.index_add(0, rows.row_numbers(), rows.values)


def dropout(x: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Inverted dropout with a generator of its own: torch's draws from the global one."""
    if rate == 0:
        return x
    kept = torch.empty_like(x).uniform_(generator=generator).ge_(rate)  # bernoulli_ takes longer
    return x * kept.div_(1 - rate)


def _uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))


class Linear(nn.Module):
    """x @ weight + bias, initialised as torch's Linear is, from a generator of its own."""

    def __init__(self, n_inputs: int, n_outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1 / math.sqrt(n_inputs)
        self.weight = _uniform((n_inputs, n_outputs), bound, generator)
        self.bias = _uniform((n_outputs,), bound, generator)

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)


class SparseLinear(Linear):
    """The first layer: of sparse rows it reads only the weights of the words that occur."""

    def forward(self, x: Rows) -> Tensor:
        if isinstance(x, Tensor):
            return super().forward(x)
        product: Tensor = SparseProduct.apply(self.weight, x.indices, x.values, x.offsets)  # type: ignore[no-untyped-call]
        return product + self.bias


class Heads(Linear):
    """Several linear outputs of one layer, computed as one product: a GPU then launches a third."""

    def __init__(self, n_inputs: int, sizes: dict[str, int], generator: torch.Generator) -> None:
        super().__init__(n_inputs, sum(sizes.values()), generator)
        self.sizes = sizes

    def named(self, joined: Tensor) -> dict[str, Tensor]:
        """What belongs to each head, of outputs, weights or biases: a view."""
        parts = joined.split_with_sizes(list(self.sizes.values()), dim=-1)
        return dict(zip(self.sizes, parts, strict=True))


class InferenceNetwork(nn.Module):
    """Two ReLU layers with dropout, then one linear head for each parameter of the posterior."""

    def __init__(
        self,
        n_words: int,
        n_hidden: int,
        heads: dict[str, int],
        dropout_rate: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.dropout_rate = dropout_rate
        self.hidden1 = SparseLinear(n_words, n_hidden, generator)
        self.hidden2 = Linear(n_hidden, n_hidden, generator)
        self.heads = Heads(n_hidden, heads, generator)

    def forward(self, x: Rows, generator: torch.Generator) -> dict[str, Tensor]:
        return self.heads.named(self.heads(self._hidden(x, generator)))

    def with_neighbour(
        self, x: Rows, neighbour: Rows, head: str, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        """All heads of x and one of a neighbour of each row: the layers below see both at once."""
        h, beside = self._hidden(stacked(x, neighbour), generator).chunk(2)
        weight, bias = (self.heads.named(getattr(self.heads, part))[head] for part in PARTS)
        return self.heads.named(self.heads(h)), torch.addmm(bias, beside, weight)

    def _hidden(self, x: Rows, generator: torch.Generator) -> Tensor:
        h = dropout(self.hidden1(x).relu(), self.dropout_rate, generator)
        return dropout(self.hidden2(h).relu(), self.dropout_rate, generator)

    def arrays(self) -> dict[str, Tensor]:
        """The weights by name, those of each head by themselves."""
        layers = {"hidden1": self.hidden1, "hidden2": self.hidden2}
        named = {
            f"{n}.{part}": getattr(layer, part) for n, layer in layers.items() for part in PARTS
        }
        for part in PARTS:
            for name, of_head in self.heads.named(getattr(self.heads, part)).items():
                named[f"heads.{name}.{part}"] = of_head
        return named


class Autoencoder(nn.Module):
    """All that is trained together: the network, the decoder and, where they learn, other parts."""

    def __init__(
        self, encoder: InferenceNetwork, decoder: WordDecoder, parts: dict[str, Any]
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.parts = parts
        self.learned = nn.ModuleDict({k: v for k, v in parts.items() if isinstance(v, nn.Module)})


class WordDecoder(Linear):
    """Logits of p(w | s): sᵀE + b over the vocabulary (eq. 2), linear so that distances keep."""

    def start_at_frequencies(self, totals: NDArray[np.floating]) -> None:
        """Set b so that a code of zeros says each word as often as the corpus does."""
        share = (totals + 0.5) / (totals + 0.5).sum()  # half a word: a column may never occur
        with torch.no_grad():
            self.bias.copy_(torch.from_numpy(np.log(share)))
