"""The order of hits that were found by their codes: by distance, confidence or words.

Every search by codes puts its hits in order here, so a folder of codes and a collection of the same
documents give the same answer, whichever engine keeps them. What is found by words as well is ranked in
:mod:`boltzhash.search.ranking`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.search.hits import Hit, Hits
from boltzhash.search.relevance import agreement

if TYPE_CHECKING:
    from boltzhash.encoding.coding import CodedQuery
    from boltzhash.hashers import Hasher

CANDIDATES = 500  # how many of the nearest are put in another order


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


class Order(Protocol):
    """Puts the nearest documents in an order that says more than their distances."""

    def __call__(self, query: CodedQuery, nearest: Sequence[Hit], hasher: Hasher) -> list[Hit]:
        """All of ``nearest``, best first; equal ones should keep their place."""


def by_words(query: CodedQuery, nearest: Sequence[Hit], hasher: Hasher) -> list[Hit]:
    """In the order of the tf-idf cosine of their texts, or of their passages, with the query."""
    if query.text is None:
        raise ValueError("order 'words' compares words: search for a text, not for a code")
    if not nearest:
        return []
    order = rerank(hasher.tfidf([query.text]), hasher.tfidf([hit.passage_text for hit in nearest]))
    return [nearest[row] for row in order.tolist()]


def by_confidence(query: CodedQuery, nearest: Sequence[Hit], hasher: Hasher) -> list[Hit]:
    """In the order of Σ w_i b_i: bits that agree, weighted by how sure the model is of the query's."""
    if query.margins is None:
        raise ValueError("order 'confidence' needs a text: a code does not say how sure it is")
    if not nearest:
        return []
    codes = np.array([np.frombuffer(hit.code, np.uint8) for hit in nearest])
    order = np.argsort(-agreement(query.margins, codes), kind="stable")
    return [nearest[row] for row in order.tolist()]


def by_distance(query: CodedQuery, nearest: Sequence[Hit], hasher: Hasher) -> list[Hit]:
    """As they are: in the order of their Hamming distances."""
    return list(nearest)


ORDERS: dict[str, Order] = {
    "distance": by_distance,
    "confidence": by_confidence,
    "words": by_words,
}
DEFAULT_ORDER = "distance"


def n_nearest(order: str, k: int) -> int:
    """How many of the nearest must be found for the first k in an order.

    >>> n_nearest("distance", 10), n_nearest("words", 10)
    (10, 500)
    """
    return k if order == "distance" else max(k, CANDIDATES)


def reordered(order: str, query: CodedQuery, nearest: Sequence[Hit], hasher: Hasher) -> list[Hit]:
    """The first :data:`CANDIDATES` in one of the :data:`ORDERS`, the rest as they were."""
    first = ORDERS[order](query, nearest[:CANDIDATES], hasher)
    return [*first, *nearest[CANDIDATES:]]


def check_order(order: str) -> str:
    """The name of an order, which must be one of :data:`ORDERS`.

    >>> check_order("mood")
    Traceback (most recent call last):
    ...
    ValueError: order must be one of distance, confidence, words, got 'mood'
    """
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")
    return order


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
