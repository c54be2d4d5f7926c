"""ITQ: rotate latent semantic vectors until they lie near the corners of the cube.

Gong and Lazebnik, "Iterative Quantization: A Procrustean Approach to Learning Binary Codes", CVPR 2011.
docs/models/itq.md maps its symbols to the names used here.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState
from scipy import sparse

from boltzhash.arguments import Constraints, Integer
from boltzhash.hashers.shared.inference import Floats
from boltzhash.hashers.shared.linear import LinearHasher, orthonormal_rows
from boltzhash.hashers.shared.lsa import leading_directions


class ITQ(LinearHasher):
    """Hash documents by latent semantic analysis and a rotation that loses least in rounding.

    tf-idf → truncated SVD to n_bits → rows of length 1 → centred → rotated → sign. The rotation
    minimises ‖B − VR‖², by turns: the nearest codes B for the rotation, the nearest rotation R for
    the codes.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8. If documents or words span fewer directions, R has
        orthonormal rows and maps those up to n_bits.
    n_iterations : int, default=50
        Turns of codes and rotation; 0 leaves the random rotation.
    text : Text or None, default=None
        How texts become tf-idf. Not used when a matrix is given.
    random_state : int, RandomState or None, default=0
        Draws the first rotation. Same seed, same machine, same codes. None draws a new seed.

    Attributes
    ----------
    directions_ : float64 array (n_words, n_bits)
        Singular vectors times rotation.
    offsets_ : float64 array (n_bits,)
        The mean of the training documents, rotated: where each bit changes.
    losses_ : list of float
        ‖B − VR‖² per document, at first and after each turn; it never rises. Not saved.
    tfidf_ : TfIdf or None
        Vocabulary and weights, None when fitted on a matrix.
    n_features_in_ : int

    References
    ----------
    Gong and Lazebnik (2011). Iterative Quantization: A Procrustean Approach to Learning Binary Codes.
    CVPR.

    Examples
    --------
    >>> from boltzhash import ITQ
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> hasher = ITQ(n_bits=16).fit(texts)
    >>> hasher.transform(["the moons of planets"]).shape
    (1, 2)
    """

    losses_: list[float]

    constraints: ClassVar[Constraints] = {"n_iterations": [Integer(0)]}

    def __init__(
        self,
        n_bits: int = 64,
        *,
        n_iterations: int = 50,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, **shared)
        self.n_iterations = n_iterations

    def _learn(self, rows: sparse.csr_matrix, random: RandomState) -> tuple[Floats, Floats]:
        directions = leading_directions(rows, self.n_bits, random, centred=False)
        latent = _unit(np.asarray(rows @ directions))
        mean = latent.mean(axis=0)
        start = orthonormal_rows(directions.shape[1], self.n_bits, random)
        rotation, self.losses_ = quantise(latent - mean, start, self.n_iterations)
        return directions @ rotation, mean @ rotation

    def _margins_of(self, projected: Floats) -> Floats:
        """R's rows are orthonormal, so the rotated row is as long as the row: unit(xV)R = unit(xVR)."""
        return _unit(projected) - self.offsets_

    def _collapse_advice(self) -> str:
        return "They may differ only in length"


def quantise(V: Floats, R: Floats, n_iterations: int) -> tuple[Floats, list[float]]:
    """The rotation after the last turn, and the loss ‖B − VR‖² per row before the first and after each.

    Parameters
    ----------
    V : float64 array (n_documents, d)
        Centred documents.
    R : float64 array (d, n_bits)
        Where to start: orthonormal rows.
    """
    rotated = V @ R
    losses = [_loss(rotated)]
    for _ in range(n_iterations):
        B = np.where(rotated > 0, 1.0, -1.0)
        left, _, right = np.linalg.svd(V.T @ B, full_matrices=False)  # orthogonal Procrustes
        R = left @ right
        rotated = V @ R
        losses.append(_loss(rotated))
    return R, losses


def _loss(rotated: Floats) -> float:
    """‖B − VR‖² per row, where B are the signs of VR."""
    return float(np.square(np.abs(rotated) - 1).sum() / len(rotated))


def _unit(rows: Floats) -> Floats:
    lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    return np.asarray(rows / np.where(lengths == 0, 1, lengths))
