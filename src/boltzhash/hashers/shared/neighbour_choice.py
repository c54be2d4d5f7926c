"""Which documents count as neighbours: by words alone, or by the codes of a first training as well.

Codes that were learned with the neighbours that words find tell better still which documents are near,
on most corpora: then a second training with the neighbours by both has better codes. On some, titles
of a few words for instance, words know better. Labels would tell; without them it is asked how well the
two halves of documents agree (:mod:`boltzhash.hashers.shared.halves`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse

from boltzhash.hashers.shared.halves import Halved, cut_documents
from boltzhash.hashers.shared.neighbours import (
    LatentSemantics,
    RowNumbers,
    Vectors,
    nearest_by_cosine,
)

DOCUMENTS_A_NEIGHBOUR = 200  # in so many documents one is counted as a neighbour,
FEWEST, MOST = 20, 100  # within these bounds
FEWEST_DOCUMENTS = 2000  # with fewer a second training takes as long as the first and adds nothing
SOFTNESS = 4.0  # of the step from −1 to 1 by which locations count

Locations = Callable[[sparse.csr_matrix], Vectors]  # tf-idf → logits of the bits of codes


class FirstTraining(Protocol):
    """Learns codes from tf-idf and neighbours; asks on the way, and gives up (None) if told to."""

    def __call__(
        self,
        matrix: sparse.csr_matrix,
        near: RowNumbers,
        is_worth_it: Callable[[Locations], bool],
    ) -> Locations | None: ...


class NeighbourChoice(NamedTuple):
    """Which neighbours a fit took, and why.

    Agreements are those of :func:`boltzhash.hashers.shared.halves.agreement_of_halves`: between 0 and
    1, the more the better; None if nothing was compared.

    >>> print(NeighbourChoice(56, 0.28, 0.55, True))
    56 neighbours of each document, by words and codes: on what is near to a document its halves agree \
to 28% by words and 55% by codes
    """

    neighbours: int  # of each document
    agreement_by_words: float | None = None  # of neighbours by latent semantics
    agreement_by_codes: float | None = None  # of those by the codes of a first training
    second_training: bool = False  # whether codes had a say

    def __str__(self) -> str:
        by = "words and codes" if self.second_training else "words"
        said = f"{self.neighbours} neighbours of each document, by {by}"
        if self.agreement_by_words is None or self.agreement_by_codes is None:
            return said
        return (
            f"{said}: on what is near to a document its halves agree to {self.agreement_by_words:.0%} "
            f"by words and {self.agreement_by_codes:.0%} by codes"
        )


def n_neighbours(n_documents: int) -> int:
    """One in 200 documents, at least 20 and at most 100; of few documents no more than a tenth.

    >>> [n_neighbours(n) for n in (50, 1000, 10_000, 1_000_000)]
    [5, 20, 50, 100]
    """
    wanted = min(MOST, max(FEWEST, n_documents // DOCUMENTS_A_NEIGHBOUR))
    return min(wanted, n_documents // 10)


def choose_neighbours(
    matrix: sparse.csr_matrix,
    k: int,
    scales: tuple[int, ...],
    second_training: bool | None,
    first_training: FirstTraining,
    seed: int,
) -> tuple[RowNumbers, NeighbourChoice]:
    """Row numbers (n, k) of the neighbours of each document, and what was chosen.

    If ``second_training`` is None, the corpus chooses: a tenth of the documents, at most 1,000, are
    held out of the first training, and their halves are asked for. So many documents as are too few
    for that get neighbours by words.
    """
    n = matrix.shape[0]
    halved = None
    if second_training is None and n >= FEWEST_DOCUMENTS:
        halved = cut_documents(matrix, np.random.default_rng(seed))
    taught = np.arange(n) if halved is None else halved.others
    latent = LatentSemantics(matrix[taught], scales, np.random.RandomState(seed))
    by_words = latent(matrix)
    if halved is None and not second_training:
        return nearest_by_cosine(by_words, k), NeighbourChoice(k)
    choice = NeighbourChoice(k, second_training=True)

    def is_worth_it(locations: Locations) -> bool:
        nonlocal choice
        if halved is not None:
            choice = _compared(k, halved, latent, locations, matrix[taught])
        return choice.second_training

    near = nearest_by_cosine(by_words[taught], k)
    locations = first_training(matrix[taught], near, is_worth_it)
    if locations is None:
        return nearest_by_cosine(by_words, k), choice
    return nearest_by_cosine(side_by_side(by_words, locations(matrix)), k), choice


def _compared(
    k: int,
    halved: Halved,
    latent: LatentSemantics,
    locations: Locations,
    taught: sparse.csr_matrix,
) -> NeighbourChoice:
    def signs(matrix: sparse.csr_matrix) -> Vectors:
        return np.where(locations(matrix) > 0, np.float32(1), np.float32(-1))

    by_words = halved.agreement(latent, latent(taught))
    by_codes = halved.agreement(signs, signs(taught))
    return NeighbourChoice(k, by_words, by_codes, by_codes > by_words)


def side_by_side(by_words: Vectors, locations: Vectors) -> Vectors:
    """Vectors whose product is the sum of the cosines of both; locations count up to a limit.

    >>> side_by_side(np.ones((1, 1), np.float32), np.array([[40.0, -40.0]], np.float32))
    array([[ 1.        ,  0.70710677, -0.70710677]], dtype=float32)
    """
    soft = np.tanh(locations / SOFTNESS)
    lengths = np.linalg.norm(soft, axis=1, keepdims=True)
    return np.hstack([by_words, soft / np.maximum(lengths, np.finfo(np.float32).tiny)])
