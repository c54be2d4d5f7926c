"""The nearest documents of each document, before there are codes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.text import unit_rows

BLOCK = 512


def nearest_by_cosine(matrix: sparse.csr_matrix, k: int) -> NDArray[np.int64]:
    """Row numbers of the k documents with the highest tf-idf cosine, itself not among them.

    Blocks of products with all documents: memory grows with their number, not with its square.

    >>> nearest_by_cosine(sparse.csr_matrix([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), 1)
    array([[1],
           [0],
           [1]])
    """
    unit = unit_rows(matrix).astype(np.float32)
    k = min(k, unit.shape[0] - 1)
    columns = unit.T.tocsr()
    rows = []
    for start in range(0, unit.shape[0], BLOCK):
        cosine = (unit[start : start + BLOCK] @ columns).toarray()
        itself = np.arange(len(cosine))
        cosine[itself, start + itself] = -1
        nearest = np.argpartition(-cosine, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(cosine, nearest, 1), axis=1, kind="stable")
        rows.append(np.take_along_axis(nearest, order, 1))
    return np.concatenate(rows).astype(np.int64)
