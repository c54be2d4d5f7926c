"""Precision of the top k with honest ties."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes, hamming


def expected_precision(
    queries: Codes,
    codes: Codes,
    query_labels: NDArray[np.bool_],
    labels: NDArray[np.bool_],
    k: int = 100,
) -> NDArray[np.float64]:
    """Precision of the k nearest codes of each query, in expectation over random tie order.

    A document is relevant when it shares at least one label with the query. Documents at the distance
    of the k-th share its remaining places evenly, so nothing depends on the order of the collection.

    >>> codes = np.array([[0], [1], [1]], dtype=np.uint8)
    >>> labels = np.array([[True], [True], [False]])
    >>> expected_precision(codes[:1], codes, labels[:1], labels, k=2)
    array([0.75])
    """
    if not 1 <= k <= len(codes):
        raise ValueError(f"k must be between 1 and the {len(codes)} documents, got {k}")
    n_distances = 8 * codes.shape[1] + 1
    precision = np.empty(len(queries))
    documents = labels.astype(np.float32).T
    for row, query in enumerate(queries):
        distances = hamming(query[None], codes)[0]
        relevant = query_labels[row].astype(np.float32) @ documents > 0
        at_distance = np.bincount(distances, minlength=n_distances)
        relevant_at = np.bincount(distances[relevant], minlength=n_distances)
        reached = np.minimum(at_distance.cumsum(), k)
        taken = np.diff(reached, prepend=0)
        precision[row] = (taken * relevant_at / np.maximum(at_distance, 1)).sum() / k
    return precision
