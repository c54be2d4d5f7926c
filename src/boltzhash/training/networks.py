"""The inference network on sparse tf-idf rows, and the linear word decoder."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.parametrize import cached, register_parametrization

from boltzhash.training import derivatives
from boltzhash.training.derivatives import (
    DroppedWords,
    SparseProduct,
    drops_compiled,
    reads_compiled,
)
from boltzhash.training.products import (
    SideBySide,
    multiplies_compiled,
    steady_product,
    sums_are_long,
)
from boltzhash.training.rows import Rows, stacked

PARTS = ("weight", "bias")


def dropped_relu(x: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """relu(x), then inverted dropout with a generator of its own: torch's draws from the global one."""
    if rate == 0:
        return x.relu()
    if drops_compiled(x):
        on_cpu: Tensor = derivatives.DroppedRelu.apply(x, rate, generator)  # type: ignore[no-untyped-call]
        return on_cpu
    u = torch.empty_like(x).uniform_(generator=generator)  # bernoulli_ takes longer
    return x.relu() * u.ge_(rate).div_(1 - rate)


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
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x @ weight + bias, or of layers side by side each part of x with its part of the columns.

    >>> x, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 5.0]])
    >>> linear(x, weight, torch.zeros(2))
    tensor([[ 3., 10.]])
    """
    if multiplies_compiled(x, weight, bias):
        compiled: Tensor = SideBySide.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        return compiled
    n_layers = x.shape[1] // weight.shape[0]
    if n_layers == 1:
        if sums_are_long(x, weight):
            return steady_product(x, weight) + bias
        return torch.addmm(bias, x, weight)
    rows = x.view(len(x), n_layers, -1).transpose(0, 1)
    columns = weight.view(len(weight), n_layers, -1).transpose(0, 1)
    results = torch.baddbmm(bias.view(n_layers, 1, -1), rows, columns)
    return results.transpose(0, 1).flatten(1)


def dropped_layer(layer: Linear, x: Rows, rate: float, generator: torch.Generator) -> Tensor:
    """relu(x W + b), then dropout."""
    if reads_compiled(x, layer.weight, layer.bias, rate):
        on_cpu: Tensor = DroppedWords.apply(layer.weight, layer.bias, x, rate, generator)  # type: ignore[no-untyped-call]
        return on_cpu
    return dropped_relu(layer(x), rate, generator)


class SparseLinear(Linear):
    """The first layer: for sparse rows it reads only the weights of the words that occur."""

    def forward(self, x: Rows) -> Tensor:
        return sparse_linear(x, self.weight, self.bias)


def sparse_linear(x: Rows, weight: Tensor, bias: Tensor) -> Tensor:
    """x @ weight + bias of rows (n, n_inputs) that may be sparse.

    >>> from boltzhash.training.rows import SparseRows
    >>> second = SparseRows(torch.tensor([1]), torch.tensor([2.0]), torch.tensor([0, 1]))
    >>> sparse_linear(second, torch.tensor([[1.0], [3.0]]), torch.tensor([0.5]))
    tensor([[6.5000]])
    """
    if isinstance(x, Tensor):
        return torch.addmm(bias, x, weight)
    product: Tensor = SparseProduct.apply(weight, *x)  # type: ignore[no-untyped-call]
    return product + bias


class ParallelLinear(Linear):
    """Layers side by side, one of each network: each reads and writes its own part of the numbers.

    ``weight`` has the rows of one of them and the columns of all.
    """

    def __init__(
        self, n_inputs: int, n_outputs: int, n_networks: int, generator: torch.Generator
    ) -> None:
        super().__init__(n_inputs, n_outputs * n_networks, generator)
        self.n_networks = n_networks


class Heads(ParallelLinear):
    """Several linear outputs of one layer, computed as one product: a third of the launches on a GPU."""

    def __init__(
        self, n_inputs: int, sizes: dict[str, int], n_networks: int, generator: torch.Generator
    ) -> None:
        self.sizes = {name: size // n_networks for name, size in sizes.items()}
        super().__init__(n_inputs, sum(self.sizes.values()), n_networks, generator)

    def named(self, joined: Tensor) -> dict[str, Tensor]:
        """What belongs to each head, in outputs, weights or biases; those of all networks together."""
        by_network = joined.view(*joined.shape[:-1], self.n_networks, -1)
        parts = by_network.split_with_sizes(list(self.sizes.values()), dim=-1)
        return {name: part.flatten(-2) for name, part in zip(self.sizes, parts, strict=True)}


class InferenceNetwork(nn.Module):
    """Two ReLU layers with dropout, then one linear head for each parameter of the posterior.

    ``n_networks`` of them, side by side, each give an equal part of every head. With ``n_hidden`` 0
    there are no layers: the heads read the documents themselves, and nothing is dropped.
    """

    def __init__(
        self,
        n_words: int,
        n_hidden: int,
        heads: dict[str, int],
        dropout_rate: float,
        generator: torch.Generator,
        n_networks: int = 1,
    ) -> None:
        super().__init__()
        self.dropout_rate = dropout_rate
        self.n_hidden = n_hidden
        if n_hidden:
            self.hidden1 = SparseLinear(n_words, n_networks * n_hidden, generator)
            self.hidden2 = ParallelLinear(n_hidden, n_hidden, n_networks, generator)
        self.heads = Heads(n_hidden or n_words, heads, n_networks, generator)

    @property
    def first_layer(self) -> Linear:
        """What reads the documents."""
        return self.hidden1 if self.n_hidden else self.heads

    def forward(self, x: Rows, generator: torch.Generator) -> dict[str, Tensor]:
        return self.heads.named(self._joined_heads(x, generator))

    def without_dropout(self, x: Rows, head: str) -> Tensor:
        """One head of x as codes are computed from it."""
        if self.n_hidden:
            joined = self.heads(self.hidden2(self.hidden1(x).relu()).relu())
        else:
            joined = sparse_linear(x, self.heads.weight, self.heads.bias)
        return self.heads.named(joined)[head]

    def with_neighbour(
        self, x: Rows, neighbour: Rows, head: str, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        """All heads of x and one of a neighbour of each row."""
        joined, beside = self.joined(x, neighbour, head, generator)
        assert beside is not None
        return self.heads.named(joined), beside

    def joined(
        self, x: Rows, neighbour: Rows | None, head: str, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        """All heads of x side by side, and one of a neighbour of each row, if there is one.

        The layers below the heads see both at once. Rows are (n, n_inputs).
        """
        if neighbour is None:
            return self._joined_heads(x, generator), None
        both = stacked(x, neighbour)
        if not self.n_hidden:
            own, beside = self._joined_heads(both, generator).chunk(2)
            return own, self.heads.named(beside)[head]
        h, beside = self.hidden(both, generator).chunk(2)
        weight, bias = (self.heads.named(getattr(self.heads, part))[head] for part in PARTS)
        return self.heads(h), linear(beside, weight, bias)

    def _joined_heads(self, x: Rows, generator: torch.Generator) -> Tensor:
        if self.n_hidden:
            joined: Tensor = self.heads(self.hidden(x, generator))
            return joined
        return sparse_linear(x, self.heads.weight, self.heads.bias)

    def hidden(self, x: Rows, generator: torch.Generator) -> Tensor:
        """What the heads read."""
        h = dropped_layer(self.hidden1, x, self.dropout_rate, generator)
        return dropped_layer(self.hidden2, h, self.dropout_rate, generator)

    def arrays(self) -> dict[str, Tensor]:
        """The weights by name, those of each head by themselves."""
        layers = {"hidden1": self.hidden1, "hidden2": self.hidden2} if self.n_hidden else {}
        named = {
            f"{n}.{part}": getattr(layer, part) for n, layer in layers.items() for part in PARTS
        }
        for part in PARTS:
            for name, of_head in self.heads.named(getattr(self.heads, part)).items():
                named[f"heads.{name}.{part}"] = of_head
        return named


class Autoencoder(nn.Module):
    """All that is trained together: the network, the decoder and, if they learn, other parts."""

    def __init__(
        self,
        encoder: InferenceNetwork,
        decoder: WordDecoder | TopicDecoder,
        parts: dict[str, Any],
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.parts = parts
        self.learned = nn.ModuleDict({k: v for k, v in parts.items() if isinstance(v, nn.Module)})


def start_within(module: nn.Module, bound: float, generator: torch.Generator) -> None:
    """Draw all weights of linear layers anew, uniform between ±bound, and set their biases to 0.

    >>> layer = Linear(3, 2, torch.Generator())
    >>> start_within(layer, 0.01, torch.Generator())
    >>> bool((layer.weight.abs() <= 0.01).all()), layer.bias.tolist()
    (True, [0.0, 0.0])
    """
    for layer in module.modules():
        if isinstance(layer, Linear):
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
            nn.init.zeros_(layer.bias)


class WordImportance(nn.Module):
    """A learned number for each word, by which its weights are multiplied on the way in and out (RBSH).

    Reading x ⊙ i is reading x with the rows of the weights multiplied, so a trained network needs no
    more than its weights.

    >>> importance = WordImportance(2, torch.Generator())
    >>> decoder = WordDecoder(1, 2, torch.Generator())
    >>> importance.scale_columns(decoder)
    >>> original, scaled = decoder.parametrizations.weight.original, decoder.weight
    >>> torch.equal(scaled, original * importance.of_words)
    True
    """

    def __init__(self, n_words: int, generator: torch.Generator) -> None:
        super().__init__()
        first = torch.empty(n_words).uniform_(0.1, 1, generator=generator)
        self.of_words = nn.Parameter(first)

    @staticmethod
    def scaled_once() -> AbstractContextManager[None]:
        """Within this, weights that are used several times are multiplied once."""
        return cached()

    @classmethod
    def in_model(cls, model: Autoencoder, generator: torch.Generator, *, reads_words: bool) -> None:
        """Scale what the decoder writes and, if it is words that the network reads, what it reads."""
        importance = cls(model.decoder.weight.shape[1], generator)
        importance.scale_columns(model.decoder)
        if reads_words:
            importance.scale_rows(model.encoder.first_layer)

    def scale_rows(self, layer: Linear) -> None:
        """Of a layer that reads words: its weights are (n_words, n_outputs)."""
        register_parametrization(layer, "weight", _Scaled(self, 0))

    def scale_columns(self, layer: nn.Module) -> None:
        """Of a layer that writes words: its weights are (n_inputs, n_words)."""
        register_parametrization(layer, "weight", _Scaled(self, 1))


class _Scaled(nn.Module):
    """Weights times the importance of the words along one of their dimensions."""

    def __init__(self, importance: WordImportance, dimension: int) -> None:
        super().__init__()
        self.importance = importance
        self.dimension = dimension

    def forward(self, weight: Tensor) -> Tensor:
        of_words = self.importance.of_words
        return weight * (of_words.unsqueeze(-1) if self.dimension == 0 else of_words)


class WordDecoder(Linear):
    """Logits of p(w | s): sᵀE + b over the vocabulary (eq. 2), linear, so distances are kept."""

    def start_at_frequencies(self, totals: NDArray[np.floating]) -> None:
        """Set b so that a code of zeros predicts each word as often as in the corpus, (n_words,)."""
        share = (totals + 0.5) / (totals + 0.5).sum()  # half a word: a column may never occur
        with torch.no_grad():
            self.bias.copy_(torch.from_numpy(np.log(share)))


class TopicDecoder(nn.Module):
    """Logits of p(w | s): (sᵀT) W + b, where every bit has a topic vector, a row of T (WISH).

    The vectors of the bits that are on are added up, and words are read from their sum. This is a word
    decoder whose E = TW has at most ``n_dimensions`` ranks.
    """

    def __init__(
        self, n_bits: int, n_dimensions: int, n_words: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        bound = math.sqrt(3 / n_dimensions)  # topic vectors of length 1 on average
        self.topics = _uniform((n_bits, n_dimensions), bound, generator)
        self.words = WordDecoder(n_dimensions, n_words, generator)

    @property
    def weight(self) -> Tensor:
        """E = TW, (n_bits, n_words)."""
        return steady_product(self.topics, self.words.weight)

    @property
    def bias(self) -> Tensor:
        """b, (n_words,)."""
        return self.words.bias

    def start_at_frequencies(self, totals: NDArray[np.floating]) -> None:
        """That of :class:`WordDecoder`."""
        self.words.start_at_frequencies(totals)
