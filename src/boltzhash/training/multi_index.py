"""Multi-index hashing: which codes a search has to look at, and pairs of documents that make it look at
more than it should. For MISH.

A code is cut into s substrings, each with a table of its own. The codes within ρ of a query are found by
looking, in the j-th table, at all substrings within ⌊(ρ − j) / s⌋ of the query's: the *candidates*
(Norouzi, Punjani and Fleet, 2014, Fast Exact Search in Hamming Space with Multi-Index Hashing). A
candidate farther than ρ was looked at for nothing. Codes here are bits as numbers, 0 and 1, (n, n_bits).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from boltzhash.training.batches import Matrix, on_device
from boltzhash.training.networks import InferenceNetwork

BLOCK = 4096  # documents whose codes are computed at a time
CELLS = 16_000_000  # distances held at a time


def membership(like: Tensor, n_substrings: int) -> Tensor:
    """1 where a bit belongs to a substring, (n_bits, n_substrings): bits in a row, evenly shared.

    ``like`` is codes, (..., n_bits).

    >>> membership(torch.zeros(5), 2).T.tolist()
    [[1.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0]]
    """
    n_bits = like.shape[-1]
    of_bit = torch.arange(n_bits, device=like.device) * n_substrings // n_bits
    return (of_bit.unsqueeze(-1) == torch.arange(n_substrings, device=like.device)).to(like)


def substring_distances(one: Tensor, other: Tensor, n_substrings: int) -> Tensor:
    """Hamming distances of the substrings of pairs of codes, (n, n_substrings); differentiable.

    >>> one, other = torch.tensor([[0.0, 1, 1, 0]]), torch.tensor([[1.0, 0, 1, 1]])
    >>> substring_distances(one, other, 2).tolist()
    [[2.0, 1.0]]
    """
    return _differ(one, other) @ membership(one, n_substrings)


def search_radii(radius: Tensor, n_substrings: int) -> Tensor:
    """⌊(ρ − j) / s⌋ for each substring j: how far its table is searched, −1 for not at all.

    If a code is within ρ, at least one of its substrings is within its radius: were all beyond, the
    distances would sum to more than ρ.

    >>> search_radii(torch.tensor([0, 4]), 3).tolist()
    [[0, -1, -1], [1, 1, 0]]
    """
    numbers = torch.arange(n_substrings, device=radius.device)
    return (radius.unsqueeze(-1) - numbers).div(n_substrings, rounding_mode="floor").clamp(min=-1)


class Pairs(NamedTuple):
    """For each document, one that a search for it should not look at, and one that widens the search.

    All are (n,). ``substring`` and ``within`` say by which substring, and in which radius of it, the
    false positive is found; ``within`` is −1 if there is none. ``far`` is the document itself if none of
    its nearest is far.
    """

    false_positive: Tensor
    substring: Tensor
    within: Tensor
    far: Tensor


def troublesome_pairs(
    codes: Tensor, n_substrings: int, k: int, generator: torch.Generator
) -> Pairs:
    """Draw a pair of each kind for every document, as it searches for its k nearest.

    The search radius ρ is the distance of the k-th nearest. One of the ρ + 1 (substring, radius) that
    the search goes through is drawn; of the documents at exactly that radius in that substring and
    beyond ρ, the false positive is the farthest. The far one is the farthest of those within ρ, if it is
    beyond 2s − 1, where a radius of 1 in every substring no longer finds it.
    """
    n = len(codes)
    blocks = torch.split(torch.arange(n, device=codes.device), max(1, CELLS // n))
    found = [_pairs_of(rows, codes, n_substrings, k, generator) for rows in blocks]
    return Pairs(*(torch.cat(parts) for parts in zip(*found, strict=True)))


def _pairs_of(
    rows: Tensor, codes: Tensor, n_substrings: int, k: int, generator: torch.Generator
) -> Pairs:
    distances = _distances(codes[rows], codes)
    distances.scatter_(1, rows.unsqueeze(-1), codes.shape[1] + 1)  # not itself
    radius = distances.kthvalue(k, dim=1, keepdim=True).values
    ties = torch.empty_like(distances).uniform_(generator=generator)
    drawn = torch.empty_like(radius).uniform_(generator=generator)
    number = torch.minimum((drawn * (radius + 1)).floor(), radius).long()
    substring, within = number % n_substrings, number // n_substrings

    mask = membership(codes, n_substrings).T[substring.squeeze(-1)]
    inside = _distances(codes[rows], codes, mask)
    beyond = (distances > radius) & (distances <= codes.shape[1])
    farthest = torch.where(beyond & (inside == within), distances + ties, -1.0).max(1)
    none = farthest.values < 0
    near = torch.where((distances <= radius) & (distances > 2 * n_substrings - 1), distances, -1.0)
    widest = torch.where(near >= 0, near + ties, -1.0).max(1)
    return Pairs(
        torch.where(none, rows, farthest.indices),
        substring.squeeze(-1),
        torch.where(none, -1, within.squeeze(-1)),
        torch.where(widest.values < 0, rows, widest.indices),
    )


@torch.no_grad()
def current_codes(encoder: InferenceNetwork, inputs: Matrix) -> Tensor:
    """The codes that a network has for documents (n, n_inputs) as it is, on its device."""
    device = encoder.heads.bias.device
    blocks = (inputs[start : start + BLOCK] for start in range(0, inputs.shape[0], BLOCK))
    locations = [encoder.without_dropout(on_device(b, device), "location") for b in blocks]
    return (torch.cat(locations) > 0).float()


def false_positive_similarity(
    anchor: Tensor, other: Tensor, substring: Tensor, within: Tensor, n_substrings: int
) -> Tensor:
    """Bits that agree less those that differ in a substring, 0 if its distance is beyond ``within``.

    To be minimised: it drives the other code out of the table entries that a search for the first looks
    at. ``substring`` and ``within`` are (n,), as the value.

    >>> anchor, other, first = torch.zeros(1, 6), torch.tensor([[0.0, 0, 1, 1, 1, 1]]), torch.tensor([0])
    >>> [false_positive_similarity(anchor, other, first, torch.tensor([r]), 2).item() for r in (0, 1)]
    [0.0, 1.0]
    """
    distances = substring_distances(anchor, other, n_substrings)
    distance = distances.gather(1, substring.unsqueeze(-1)).squeeze(-1)
    sizes = membership(anchor, n_substrings).sum(0)
    return torch.where(distance <= within, sizes[substring] - 2 * distance, 0.0)


def far_dissimilarity(anchor: Tensor, other: Tensor, n_substrings: int) -> Tensor:
    """Bits that differ less those that agree, 0 unless the codes differ in more than 2s − 1.

    To be minimised, for documents that should be found: it makes the search radius smaller. (n,).
    """
    distance = _differ(anchor, other).sum(-1)
    return torch.where(distance > 2 * n_substrings - 1, 2 * distance - anchor.shape[-1], 0.0)


def _differ(one: Tensor, other: Tensor) -> Tensor:
    """1 where bits differ; linear in each, since a square has no gradient where bits agree."""
    return one + other - 2 * one * other


def _distances(one: Tensor, other: Tensor, mask: Tensor | None = None) -> Tensor:
    """Hamming distances of all pairs; with a mask (n, n_bits), in the bits that it keeps of ``one``."""
    signs, others = 2 * one - 1, 2 * other - 1
    size: Tensor | int = one.shape[1]
    if mask is not None:
        signs, size = signs * mask, mask.sum(-1, keepdim=True)
    return (size - signs @ others.T) / 2
