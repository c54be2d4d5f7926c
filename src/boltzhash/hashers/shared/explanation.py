"""What each bit stands for: the words that a linear decoder makes likelier or rarer with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from boltzhash.hashers.shared.inference import Floats


class BitWords(NamedTuple):
    """The words that one bit makes likelier when it is on (``up``) and when it is off (``down``)."""

    bit: int
    up: list[tuple[str, float]]
    down: list[tuple[str, float]]


def bit_strengths(embedding: NDArray[np.floating], bias: NDArray[np.floating]) -> Floats:
    """√p_w (E_iw − Σ_v p_v E_iv) for every bit and word; p are the words of a code of halves.

    ``embedding`` is E (n_bits, n_words), ``bias`` (n_words,); the result is (n_bits, n_words).
    """
    E = embedding.astype(np.float64)
    p = softmax(E.sum(axis=0) / 2 + bias)
    return np.asarray(np.sqrt(p) * (E - (E @ p)[:, None]))


def words_of_bits(
    embedding: NDArray[np.floating],
    bias: NDArray[np.floating],
    words: Sequence[str],
    n_words: int,
) -> list[BitWords]:
    """For each bit, the ``n_words`` words that it changes most, either way.

    ``embedding`` (n_bits, len(words)) and ``bias`` (len(words),) are the decoder's.
    """

    def listed(strength: Floats, columns: NDArray[np.intp]) -> list[tuple[str, float]]:
        return [(words[j], float(strength[j])) for j in columns]

    explained = []
    for bit, strength in enumerate(bit_strengths(embedding, bias)):
        order = np.argsort(strength, kind="stable")
        up, down = order[::-1][:n_words], order[:n_words]
        explained.append(BitWords(bit, listed(strength, up), listed(strength, down)))
    return explained
