"""What the classical hashers share: one sparse product with learned directions decides the bits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Self

import numpy as np
from numpy.random import RandomState
from scipy import sparse

from boltzhash.hashers.shared.base import Hasher
from boltzhash.hashers.shared.estimator import check_random_state
from boltzhash.hashers.shared.features import Features
from boltzhash.hashers.shared.inference import Floats
from boltzhash.hashers.shared.labels import Labels
from boltzhash.hashers.shared.weights import Shapes
from boltzhash.storage.folders import Arrays
from boltzhash.text.tfidf import unit_rows


class LinearHasher(Hasher):
    """tf-idf rows of length 1 → one number per bit, linear in the row → bits.

    A subclass learns ``directions_`` and ``offsets_`` in ``_learn`` and turns the products into margins
    in ``_margins_of``. The product is sparse and taken row by row, so that the code of a document does
    not depend on the batch it came in.
    """

    directions_: Floats
    offsets_: Floats

    @abstractmethod
    def _learn(self, rows: sparse.csr_matrix, random: RandomState) -> tuple[Floats, Floats]:
        """Directions (n_words, n_bits) and offsets (n_bits,) from rows of length 1."""

    @abstractmethod
    def _margins_of(self, projected: Floats) -> Floats:
        """The margins of rows @ directions_: above 0 a bit is on."""

    def _margins(self, matrix: sparse.csr_matrix) -> Floats:
        return self._margins_of(np.asarray(unit_rows(matrix) @ self.directions_))

    def _fit_matrix(
        self,
        matrix: sparse.csr_matrix,
        features: Features | None,
        labels: Labels | None,
        checkpoint: Path | None,
        on_epoch: Callable[[Self], object] | None,
    ) -> None:
        if matrix.shape[1] < 2:
            raise ValueError(
                "at least 2 different words are needed, since documents are compared by their angle; "
                f"got n_features={matrix.shape[1]}"
            )
        random = check_random_state(self.random_state)
        self.directions_, self.offsets_ = self._learn(unit_rows(matrix), random)

    def _arrays(self) -> Arrays:
        return {"directions": self.directions_, "offsets": self.offsets_}

    def _shapes(self) -> Shapes:
        return {"directions": (self.n_features_in_, self.n_bits), "offsets": (self.n_bits,)}

    def _keep_arrays(self, arrays: Arrays) -> None:
        self.directions_ = np.asarray(arrays["directions"], dtype=np.float64)
        self.offsets_ = np.asarray(arrays["offsets"], dtype=np.float64)


def orthonormal_rows(n_rows: int, n_columns: int, random: RandomState) -> Floats:
    """A random matrix whose rows are orthonormal: a rotation, or a way up to more dimensions.

    >>> R = orthonormal_rows(2, 3, RandomState(0))
    >>> (R @ R.T).round(12).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    q, r = np.linalg.qr(random.normal(size=(n_columns, n_rows)))
    return np.ascontiguousarray((q * np.sign(np.diag(r))).T)
