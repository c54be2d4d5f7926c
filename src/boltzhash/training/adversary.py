"""Bits that depend on the few before them: the adversary of AMMI, and what it is asked about.

Stratos and Wiseman (2020), Learning Discrete Structured Representations by Adversarially Maximizing
Mutual Information, ICML. All sums over the 2^m codes are taken by dynamic programming: a chain of order
r only ever looks at r + 1 bits in a row, a *window*. Windows are numbered as binary numbers, the oldest
bit the most significant; bits before the first count as 0.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, pad

from boltzhash.training.networks import SparseLinear

BETAS, EPSILON = (0.9, 0.999), 1e-8  # Adam's usual ones


def mean_window_probabilities(probabilities: Tensor, order: int) -> Tensor:
    """E_x p(z_{i−r} … z_i | x) of independent bits: for each bit, the share of each window.

    Parameters
    ----------
    probabilities : Tensor of shape (n, n_bits)
        P(z_i = 1 | x) of each document.
    order : int
        r, how many bits before it belong to a bit's window.

    Returns
    -------
    Tensor of shape (n_bits, 2^(r + 1)), whose rows sum to 1

    Examples
    --------
    >>> mean_window_probabilities(torch.tensor([[1.0, 0.25]]), 1).tolist()
    [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.75, 0.25]]
    """
    n, n_bits = probabilities.shape
    windows = probabilities.new_ones(n, n_bits, 1)
    for back in range(order, -1, -1):
        on = pad(probabilities, (back, 0))[:, :n_bits]
        either = torch.stack([1 - on, on], -1)
        windows = (windows.unsqueeze(-1) * either.unsqueeze(-2)).flatten(-2)
    return windows.mean(0)


def log_conditionals(logits: Tensor) -> Tensor:
    """log q_i(z_i | z_{i−r} … z_{i−1}) of each window, (n_bits, 2^(r + 1)), from q's logits.

    ``logits`` are (n_bits, 2^r), those of z_i = 1 after each r bits.

    >>> log_conditionals(torch.zeros(1, 1)).exp().tolist()
    [[0.5, 0.5]]
    """
    return torch.stack([logsigmoid(-logits), logsigmoid(logits)], -1).flatten(-2)


def chain_cross_entropy(windows: Tensor, logits: Tensor) -> Tensor:
    """H(p, q) = −Σ_z p(z) log q(z), p known by its windows, q by its logits.

    ``windows`` are (n_bits, 2^(r + 1)), ``logits`` (n_bits, 2^r).

    Never below the entropy H(p), and equal to it for the best q if p is a chain of that order.

    >>> round(chain_cross_entropy(torch.tensor([[0.2, 0.8]]), torch.zeros(1, 1)).item(), 4)  # log 2
    0.6931
    """
    return -(windows * log_conditionals(logits)).sum()


class MarkovChain(nn.Module):
    """q(z) = Π_i q_i(z_i | z_{i−r} … z_{i−1}), each q_i a table of its own.

    Parameters
    ----------
    n_bits : int
    order : int
        r; 0 for independent bits.
    generator : torch.Generator
        Draws the first logits, uniform between −.1 and .1.
    """

    def __init__(self, n_bits: int, order: int, generator: torch.Generator) -> None:
        super().__init__()
        self.order = order
        table = torch.empty(n_bits, 2**order).uniform_(-0.1, 0.1, generator=generator)
        self.logits = nn.Parameter(table)

    def log_prob(self, z: Tensor) -> Tensor:
        """log q(z) of codes (..., n_bits)."""
        windows = torch.zeros_like(z)
        for back in range(self.order + 1):
            windows += 2**back * pad(z, (back, 0))[..., : z.shape[-1]]
        bits = torch.arange(z.shape[-1], device=z.device)
        return log_conditionals(self.logits)[bits, windows.long()].sum(-1)

    def cross_entropy(self, windows: Tensor) -> Tensor:
        """H(p, q) with a gradient for p alone: making it larger is not q's business."""
        return chain_cross_entropy(windows, self.logits.detach())

    def follow(self, windows: Tensor, rate: float, n_steps: int) -> None:
        """Make q more like p: so many steps of Adam, started anew, down the cross entropy.

        Plain arithmetic, so that a CUDA graph can record it; there is nothing to remember but q.
        """
        windows = windows.detach()
        mean, square = torch.zeros_like(self.logits), torch.zeros_like(self.logits)
        for step in range(1, n_steps + 1):
            (slope,) = torch.autograd.grad(chain_cross_entropy(windows, self.logits), self.logits)
            with torch.no_grad():
                mean = torch.lerp(slope, mean, BETAS[0])
                square = torch.lerp(slope.square(), square, BETAS[1])
                root = (square / (1 - BETAS[1] ** step)).sqrt() + EPSILON
                self.logits.sub_(rate / (1 - BETAS[0] ** step) * mean / root)


class Contest(nn.Module):
    """A linear encoder of words, whose first weights are within ±``bound``, and its adversary."""

    def __init__(
        self, n_words: int, n_bits: int, order: int, bound: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.encoder = SparseLinear(n_words, n_bits, generator)
        nn.init.uniform_(self.encoder.weight, -bound, bound, generator=generator)
        nn.init.zeros_(self.encoder.bias)
        self.adversary = MarkovChain(n_bits, order, generator)
