"""LSH: the side of random hyperplanes on which a document lies.

Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002.
docs/models/lsh.md maps its symbols to the names used here.
"""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState
from scipy import sparse

from boltzhash.hashers.shared.inference import Floats
from boltzhash.hashers.shared.linear import LinearHasher


class LSH(LinearHasher):
    """Hash documents by random hyperplanes: a bit differs with probability angle / π.

    Nothing is learned from the documents except their words, so a code never goes out of date. It
    takes many bits to be as good as a learned code.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8.
    text : Text or None, default=None
        How texts become tf-idf. Not used when a matrix is given.
    random_state : int, RandomState or None, default=0
        Draws the hyperplanes. None draws a new seed.

    Attributes
    ----------
    directions_ : float64 array (n_words, n_bits)
        Normals of the hyperplanes.
    offsets_ : float64 array (n_bits,)
        Zeros: the hyperplanes go through the origin.
    tfidf_ : TfIdf or None
        Vocabulary and weights, None when fitted on a matrix.
    n_features_in_ : int

    References
    ----------
    Charikar (2002). Similarity Estimation Techniques from Rounding Algorithms. STOC.

    Examples
    --------
    >>> from boltzhash import LSH
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> hasher = LSH(n_bits=16).fit(texts)
    >>> hasher.transform(["the moons of planets"]).shape
    (1, 2)
    """

    def _learn(self, rows: sparse.csr_matrix, random: RandomState) -> tuple[Floats, Floats]:
        return random.normal(size=(rows.shape[1], self.n_bits)), np.zeros(self.n_bits)

    def _margins_of(self, projected: Floats) -> Floats:
        return projected - self.offsets_

    def _collapse_advice(self) -> str:
        return "Their angles are too small for this many hyperplanes: try more bits"
