"""The order of hits: by distance, and by words.

Codes find the topic, words settle the order. Every search puts its hits in order here, so a folder
of codes and a collection of the same documents give the same answer, whichever engine keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.search.hits import Hit, Hits

CANDIDATES = 500  # how many of the nearest are put in the order of their words


def nearest_first(parts: Sequence[Hits], k: int | None = None) -> Hits:
    """The hits of several parts as one, in order of (distance, id): at most k.

    The ids must be numbers in the order of insertion; each part has arrays of one dimension.

    >>> one = Hits(np.array([3, 9]), np.array([0, 2], dtype=np.int32))
    >>> other = Hits(np.array([5, 1]), np.array([1, 2], dtype=np.int32))
    >>> [part.tolist() for part in nearest_first([one, other], k=3)]
    [[3, 5, 1], [0, 1, 2]]
    """
    if not parts:
        return Hits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32))
    ids, distances = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.lexsort((ids, distances))[:k]
    return Hits(ids[order], distances[order])


def by_words(
    query: sparse.csr_matrix,
    nearest: Sequence[Hit],
    tfidf: Callable[[list[str]], sparse.csr_matrix],
    n_candidates: int,
) -> list[Hit]:
    """The first ``n_candidates`` in the order of their words, the rest as they were.

    ``query`` is the tf-idf of the query, one row; ``tfidf`` gives that of texts.
    """
    texts = [hit.text for hit in nearest[:n_candidates]]
    first = rerank(query, tfidf(texts)).tolist() if texts else []
    return [*(nearest[row] for row in first), *nearest[len(first) :]]


def rerank(query: sparse.csr_matrix, candidates: sparse.csr_matrix) -> NDArray[np.int64]:
    """The order of the candidates by tf-idf cosine with the query; equal ones keep their place.

    Parameters
    ----------
    query : csr_matrix (1, n_words)
    candidates : csr_matrix (n_candidates, n_words)
        Rows must have length 1, as :meth:`Hasher.tfidf` gives them, so the product is the cosine.

    >>> query = sparse.csr_matrix([[1.0, 0.0]])
    >>> rerank(query, sparse.csr_matrix([[0.0, 1.0], [0.6, 0.8], [1.0, 0.0]]))
    array([2, 1, 0])
    """
    if query.shape[0] != 1:
        raise ValueError(f"rerank takes one query, got {query.shape[0]}")
    cosine = (candidates @ query.T).toarray().ravel()
    return np.argsort(-cosine, kind="stable")
