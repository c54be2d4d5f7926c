"""What codes are like, whatever they find: balance, correlation, how many differ, entropy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Bits, Codes, bit_balance, unpack


class CodeStatistics(NamedTuple):
    """Statistics of the codes of a collection.

    ``balance``
        1 when every bit is on in half of the documents, 0 when none ever changes.
    ``correlation``
        Mean absolute correlation between two bits, over the pairs in which both vary; 0 if none.
    ``distinct``
        How many different codes there are.
    ``entropy``
        Bits of entropy of the codes as they occur: log2 of the number of documents when all differ.
    ``bit_entropy``
        Sum over bits of the entropy of each alone: ``n_bits`` when all are balanced. How far it
        exceeds ``entropy`` says little about long codes, whose ``entropy`` is limited by the
        number of documents.
    """

    balance: float
    correlation: float
    distinct: int
    entropy: float
    bit_entropy: float


def code_statistics(codes: Codes) -> CodeStatistics:
    """Statistics of packed codes, uint8 (n, n_bits / 8).

    >>> codes = np.array([[0], [0], [3], [3]], dtype=np.uint8)
    >>> code_statistics(codes)
    CodeStatistics(balance=0.25, correlation=1.0, distinct=2, entropy=1.0, bit_entropy=2.0)
    """
    if len(codes) == 0:
        raise ValueError("codes must be those of at least one document, got none")
    bits = unpack(codes)
    _, counts = np.unique(codes, axis=0, return_counts=True)
    correlations = np.abs(bit_correlations(bits)[np.triu_indices(bits.shape[1], 1)])
    known = correlations[~np.isnan(correlations)]
    on = bits.mean(axis=0)
    return CodeStatistics(
        balance=bit_balance(bits),
        correlation=float(known.mean()) if len(known) else 0.0,
        distinct=len(counts),
        entropy=_entropy(counts / len(codes)),
        bit_entropy=_entropy(on) + _entropy(1 - on),
    )


def bit_correlations(bits: Bits) -> NDArray[np.float64]:
    """The correlation of every pair of bits over the documents; NaN if one never changes.

    From bits, bool (n, n_bits), to float64 (n_bits, n_bits).

    >>> bits = np.array([[True, False, True], [False, True, True]])
    >>> bit_correlations(bits)
    array([[ 1., -1., nan],
           [-1.,  1., nan],
           [nan, nan, nan]])
    """
    if bits.dtype != np.bool_ or bits.ndim != 2:
        raise TypeError(f"bits must be a bool array (n, n_bits), got {bits.dtype} {bits.shape}")
    centred = bits - bits.mean(axis=0)
    deviation = np.sqrt((centred**2).sum(axis=0))
    deviation[(bits == bits[:1]).all(axis=0)] = np.nan  # 0 except for rounding
    correlations: NDArray[np.float64] = (centred.T @ centred) / np.outer(deviation, deviation)
    return correlations


def _entropy(probabilities: NDArray[np.float64]) -> float:
    """−Σ p log2 p, without the terms with p = 0."""
    positive = probabilities[probabilities > 0]
    return float(-(positive * np.log2(positive)).sum()) + 0.0  # no −0.0
