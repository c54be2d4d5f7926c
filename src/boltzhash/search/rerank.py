"""Codes find the topic, words settle the order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def rerank(query: sparse.csr_matrix, candidates: sparse.csr_matrix) -> NDArray[np.int64]:
    """The order of the candidates by tf-idf cosine with the query; equal ones keep their place.

    Rows must have length 1, as :meth:`Hasher.tfidf` gives them, so that the product is the cosine.

    >>> query = sparse.csr_matrix([[1.0, 0.0]])
    >>> rerank(query, sparse.csr_matrix([[0.0, 1.0], [0.6, 0.8], [1.0, 0.0]]))
    array([2, 1, 0])
    """
    if query.shape[0] != 1:
        raise ValueError(f"rerank takes one query, got {query.shape[0]}")
    cosine = (candidates @ query.T).toarray().ravel()
    return np.argsort(-cosine, kind="stable")
