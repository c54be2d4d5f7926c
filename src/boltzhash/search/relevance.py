"""One score for words and codes: BM25 in units of its own spread, plus the agreement of the bits.

score(d) = BM25(q, d) / σ(q) + λ · Σ_i w_i b_i(d) / ‖w‖

- BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
  with the idf of Lucene, which is never negative.
- σ(q)² = Σ_t (n_t idf_t)² p_t (1 − p_t) is about the variance of BM25 over all documents, if the words
  of the question occur independently, each in a share p_t of them. So a match of rare words counts for
  more than codes ever can; a match of common ones does not.
- b_i(d) is +1 or −1, bit i of the document's code, and w_i how sure the model is of the question's bit,
  with its sign. w / ‖w‖ has length 1, so over codes with random bits the second part has spread 1.

It is computed from the question and the candidate alone, so a document's score does not depend on which
others are candidates. λ is the hasher's ``weight_beside_words``: 0.3 for codes that were trained, 0.15
for those of linear methods, chosen on four collections of judged questions (docs/retrieval.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes

Floats = NDArray[np.float64]

K1 = 1.5  # how soon a word that occurs again stops counting
B = 0.75  # how much of a document's length is held against it
BESIDE_WEIGHT = 0.5  # of a word of the question that is the whole or a part of another


def inverse_document_frequency(n_documents: int, n_having: NDArray[np.int64]) -> Floats:
    """ln(1 + (N − n + ½) / (n + ½)): how rare terms are that n documents have, shape (n_terms,).

    >>> inverse_document_frequency(1000, np.array([10])).round(3)
    array([4.557])
    """
    return np.log1p((n_documents - n_having + 0.5) / (n_having + 0.5))


def length_norms(lengths: NDArray[np.float32]) -> NDArray[np.float32]:
    """k₁ (1 − b + b · length / mean length), for documents of these lengths, shape (n,).

    >>> length_norms(np.array([10.0, 30.0], dtype=np.float32)).tolist()
    [0.9375, 2.0625]
    """
    mean = lengths.mean() if len(lengths) else 1.0
    return np.asarray(K1 * (1 - B + B * lengths / max(mean, 1e-9)), dtype=np.float32)


def saturated(counts: NDArray[np.uint8], norms: NDArray[np.float32]) -> NDArray[np.float32]:
    """tf / (tf + norm): what a word gives that occurs tf times, between 0 and 1.

    >>> saturated(np.array([1, 3], dtype=np.uint8), np.array([1, 1], dtype=np.float32)).tolist()
    [0.5, 0.75]
    """
    return np.asarray(counts / (counts + norms), dtype=np.float32)


def words_deviation(weights: Floats, shares: Floats) -> float:
    """σ(q) of words with weights n_t idf_t, each in a share of the documents: arrays (n_words,).

    >>> round(words_deviation(np.array([2.0, 4.0]), np.array([0.5, 0.1])), 3)
    1.562
    """
    return float(np.sqrt(np.sum(np.square(weights) * shares * (1 - shares))))


def agreement(weights: Floats, codes: Codes) -> Floats:
    """Σ_i w_i b_i / ‖w‖ for each code: packed codes (n, n_bits / 8), weights (n_bits,).

    >>> agreement(np.array([3.0, -4.0] + [0.0] * 6), np.array([[0b1000_0000], [0]], dtype=np.uint8))
    array([1.4, 0.2])
    """
    signs = np.unpackbits(codes, axis=1).astype(np.float64)
    signs *= 2
    signs -= 1
    return np.asarray(signs @ weights / max(float(np.linalg.norm(weights)), 1e-12))
