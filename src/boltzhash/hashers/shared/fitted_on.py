"""What a model remembers of the documents it was fitted on, so that others can be compared with them."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes, unpack
from boltzhash.storage.folders import Arrays

PREFIX = "fitted_on."  # of its arrays in a model's file; they have no part in its codes


class FittedOn(NamedTuple):
    """The documents of a fit, as far as drift is measured by them.

    ``unknown_words`` is which share of the words of a further document like them the model would not
    know (:attr:`boltzhash.text.tfidf.TfIdf.unseen_`), None if they came as a matrix; ``bit_means`` is
    which share of them has each bit on, float64 (n_bits,).
    """

    documents: int
    unknown_words: float | None
    bit_means: NDArray[np.float64]

    @classmethod
    def of(cls, codes: Codes, unknown_words: float | None) -> Self:
        """
        >>> FittedOn.of(np.array([[255], [15]], dtype=np.uint8), 0.1).bit_means
        array([0.5, 0.5, 0.5, 0.5, 1. , 1. , 1. , 1. ])
        """
        return cls(len(codes), unknown_words, unpack(codes).mean(axis=0))

    def arrays(self) -> Arrays:
        """As a model keeps them; NaN is None."""
        unknown = math.nan if self.unknown_words is None else self.unknown_words
        return {
            f"{PREFIX}documents": np.array([self.documents], dtype=np.int64),
            f"{PREFIX}unknown_words": np.array([unknown]),
            f"{PREFIX}bit_means": self.bit_means,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_bits: int) -> Self:
        """
        >>> FittedOn.from_arrays(FittedOn(2, None, np.zeros(8)).arrays(), 8).documents
        2
        """
        means = arrays[f"{PREFIX}bit_means"]
        if means.shape != (n_bits,):
            raise ValueError(f"{PREFIX}bit_means should have shape ({n_bits},), got {means.shape}")
        unknown = float(arrays[f"{PREFIX}unknown_words"][0])
        documents = int(arrays[f"{PREFIX}documents"][0])
        return cls(documents, None if math.isnan(unknown) else unknown, means)
