"""Documents made up as they are needed: topics over a vocabulary whose words are as common as Zipf says.

Half of a document's words come from all words, half from the words of its topic. The same seed gives the
same documents, so that a corpus too large for memory or disk can be read twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

N_TOPICS = 50
BLOCK = 10_000


def word_numbers(
    n_documents: int, n_words: int, length: int, seed: int = 0
) -> Iterator[NDArray[np.int64]]:
    """Blocks of documents: rows of ``length`` numbers of words, the commonest word 0."""
    rng = np.random.default_rng(seed)
    cumulative = np.cumsum(1 / np.arange(1, n_words + 1))
    shifts = rng.integers(n_words, size=N_TOPICS)
    for start in range(0, n_documents, BLOCK):
        shape = (min(BLOCK, n_documents - start), length)
        ranks = np.searchsorted(cumulative, rng.random(shape) * cumulative[-1])
        shift = shifts[rng.integers(N_TOPICS, size=len(ranks))][:, None]
        yield np.where(rng.random(shape) < 0.5, ranks, (ranks + shift) % n_words)


def texts(n_documents: int, n_words: int = 50_000, length: int = 25) -> Iterator[str]:
    words = np.array([f"w{number:x}q" for number in range(n_words)], dtype=object)
    for block in word_numbers(n_documents, n_words, length):
        for row in words[block].tolist():
            yield " ".join(row)


def counts(n_documents: int, n_words: int, length: int) -> sparse.csr_matrix:
    """The same documents as a matrix of word counts."""
    blocks = []
    for block in word_numbers(n_documents, n_words, length):
        rows = np.repeat(np.arange(len(block)), length)
        ones = np.ones(block.size, dtype=np.float64)
        blocks.append(sparse.csr_matrix((ones, (rows, block.ravel())), shape=(len(block), n_words)))
    return sparse.csr_matrix(sparse.vstack(blocks))
