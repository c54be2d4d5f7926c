"""Spectral hashing: waves along the principal directions, the slowest first.

Weiss, Torralba and Fergus, "Spectral Hashing", NIPS 2008.
docs/models/spectral.md maps its symbols to the names used here.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.arguments import Constraints, Integer
from boltzhash.hashers.shared.inference import Floats
from boltzhash.hashers.shared.linear import LinearHasher
from boltzhash.hashers.shared.lsa import leading_directions


class Modes(NamedTuple):
    """One eigenfunction per bit: cos(k π (x − a) / (b − a)) along one principal direction."""

    direction: NDArray[np.int64]
    k: NDArray[np.int64]


class SpectralHashing(LinearHasher):
    """Hash documents by the eigenfunctions of a uniform distribution on their principal directions.

    Long directions give several bits before short ones give one, so there may be more bits than
    directions.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8.
    n_directions : int or None, default=None
        How many principal directions to use at most; None means n_bits, as published.
    text : Text or None, default=None
        How texts become tf-idf. Not used when a matrix is given.
    random_state : int, RandomState or None, default=0
        Starts the search for the principal directions. They depend on it only by rounding.

    Attributes
    ----------
    directions_ : float64 array (n_words, n_bits)
        For each bit, the principal direction it follows, times its frequency ω.
    offsets_ : float64 array (n_bits,)
        Phases: ω times the lower end of the direction.
    modes_ : Modes
        Principal direction and wave number k of each bit. Not saved.
    tfidf_ : TfIdf or None
        Vocabulary and weights, None when fitted on a matrix.
    n_features_in_ : int

    References
    ----------
    Weiss, Torralba and Fergus (2008). Spectral Hashing. NIPS.

    Examples
    --------
    >>> from boltzhash import SpectralHashing
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> hasher = SpectralHashing(n_bits=16).fit(texts)
    >>> hasher.transform(["the moons of planets"]).shape
    (1, 2)
    """

    modes_: Modes

    constraints: ClassVar[Constraints] = {"n_directions": [Integer(1), None]}

    def __init__(
        self,
        n_bits: int = 64,
        *,
        n_directions: int | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, **shared)
        self.n_directions = n_directions

    def _learn(self, rows: sparse.csr_matrix, random: RandomState) -> tuple[Floats, Floats]:
        n = self.n_bits if self.n_directions is None else self.n_directions
        principal = leading_directions(rows, n, random, centred=True)
        if principal.shape[1] == 0:
            raise ValueError(
                f"the {rows.shape[0]} documents that have words differ only in length: "
                "spectral hashing needs at least 2 with different words"
            )
        projected = np.asarray(rows @ principal)
        low, high = projected.min(axis=0), projected.max(axis=0)
        self.modes_ = slowest_modes(high - low, self.n_bits)
        omega = self.modes_.k * np.pi / (high - low)[self.modes_.direction]
        return principal[:, self.modes_.direction] * omega, low[self.modes_.direction] * omega

    def _margins_of(self, projected: Floats) -> Floats:
        """sin(π/2 + ω (x − a))."""
        return np.asarray(np.cos(projected - self.offsets_))


def slowest_modes(ranges: Floats, n: int) -> Modes:
    """The n smallest of all ω = k π / range, k = 1, 2, …; the eigenvalue 1 − exp(−ε²ω²/2) grows with ω.

    >>> slowest_modes(np.array([2.0, 1.0]), 4).k.tolist()
    [1, 2, 1, 3]
    """
    k = np.arange(1, n + 1)
    omega = k * np.pi / ranges[:, None]
    order = np.argsort(omega, axis=None, kind="stable")[:n]
    direction, column = np.unravel_index(order, omega.shape)
    return Modes(direction.astype(np.int64), k[column])
