"""Measures of a ranking, one value per query, exact in expectation over random tie order.

A document is relevant when it shares a label with the query. All these are 0 for a query that
has no relevant document, and for one whose Hamming ball is empty (as trec_eval and the hashing
literature count), so a mean over queries is over all of them.

The expectations are closed forms in the counts of each group of ties; those of average precision
and NDCG are McSherry & Najork's (2008), "Computing information retrieval performance measures
efficiently in the presence of tied scores".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from boltzhash.arguments import Integer, check
from boltzhash.codes import Codes
from boltzhash.metrics.ties import Groups, Labels, group, pairs

Values = NDArray[np.float64]


def precision(
    queries: Codes,
    codes: Codes,
    *,
    query_labels: Labels,
    labels: Labels,
    k: int = 100,
    ties: str = "expected",
) -> Values:
    """The share of relevant documents among the k nearest of each query.

    Parameters
    ----------
    queries : uint8 array (n_queries, n_bits / 8)
        Packed codes of the queries.
    codes : uint8 array (n, n_bits / 8)
        Packed codes of the documents.
    query_labels : bool array (n_queries, n_labels)
    labels : bool array (n, n_labels)
    k : int, default=100
    ties : {"expected", "insertion"}, default="expected"
        With "expected", documents at the distance of the k-th share the remaining places evenly, so
        nothing depends on the order of the collection; with "insertion", the first added come first.

    Returns
    -------
    float64 array (n_queries,)

    Examples
    --------
    >>> codes = np.array([[0], [1], [1]], dtype=np.uint8)
    >>> labels = np.array([[True], [True], [False]])
    >>> precision(codes[:1], codes, query_labels=labels[:1], labels=labels, k=2)
    array([0.75])
    >>> precision(codes[:1], codes, query_labels=labels[:1], labels=labels, k=2, ties="insertion")
    array([1.])
    """
    if not 1 <= k <= len(codes):
        raise ValueError(f"k must be between 1 and the {len(codes)} documents, got {k}")
    return _measure(queries, codes, query_labels, labels, ties, lambda g: precision_at(g, k))


def recall(
    queries: Codes,
    codes: Codes,
    *,
    query_labels: Labels,
    labels: Labels,
    k: int = 100,
    ties: str = "expected",
) -> Values:
    """The share of a query's relevant documents that are among its k nearest.

    ``queries``, ``codes``, ``query_labels`` and ``labels`` are those of :func:`precision`.

    >>> codes = np.array([[0], [1], [1]], dtype=np.uint8)
    >>> labels = np.array([[True], [True], [False]])
    >>> recall(codes[:1], codes, query_labels=labels[:1], labels=labels, k=1)
    array([0.5])
    """
    check("k", k, Integer(1))
    return _measure(queries, codes, query_labels, labels, ties, lambda g: recall_at(g, k))


def average_precision(
    queries: Codes,
    codes: Codes,
    *,
    query_labels: Labels,
    labels: Labels,
    k: int | None = None,
    ties: str = "expected",
) -> Values:
    """The mean of the precisions at the places of the relevant documents; its mean over queries is MAP.

    Relevant documents beyond the k-th place (None: no limit) count as never found: the sum is
    divided by the number of relevant documents in the whole database, as trec_eval does.
    ``queries``, ``codes``, ``query_labels`` and ``labels`` are those of :func:`precision`.

    >>> codes = np.array([[0], [1], [3]], dtype=np.uint8)
    >>> labels = np.array([[True], [False], [True]])
    >>> average_precision(codes[:1], codes, query_labels=labels[:1], labels=labels)
    array([0.83333333])
    """
    if k is not None:
        check("k", k, Integer(1))
    return _measure(
        queries, codes, query_labels, labels, ties, lambda g: average_precision_at(g, k)
    )


def ndcg(
    queries: Codes,
    codes: Codes,
    *,
    query_labels: Labels,
    labels: Labels,
    k: int = 100,
    ties: str = "expected",
) -> Values:
    """Discounted cumulative gain of the k nearest over that of the best possible order.

    The gain is 1 for a relevant document, the discount of place i is 1 / log2(i + 1).
    ``queries``, ``codes``, ``query_labels`` and ``labels`` are those of :func:`precision`.

    >>> codes = np.array([[1], [0]], dtype=np.uint8)
    >>> labels = np.array([[True], [False]])
    >>> ndcg(codes[1:], codes, query_labels=labels[:1], labels=labels, k=2)
    array([0.63092975])
    """
    check("k", k, Integer(1))
    return _measure(queries, codes, query_labels, labels, ties, lambda g: ndcg_at(g, k))


def precision_within(
    queries: Codes, codes: Codes, *, query_labels: Labels, labels: Labels, radius: int = 2
) -> Values:
    """The share of relevant documents within a Hamming distance; 0 if there is no document.

    ``queries``, ``codes``, ``query_labels`` and ``labels`` are those of :func:`precision`.

    >>> codes = np.array([[0], [1], [255]], dtype=np.uint8)
    >>> labels = np.array([[True], [False], [True]])
    >>> precision_within(codes[:1], codes, query_labels=labels[:1], labels=labels, radius=1)
    array([0.5])
    """
    check("radius", radius, Integer(0))
    within = partial(precision_in_ball, radius=radius)
    return _measure(queries, codes, query_labels, labels, "expected", within)


def _measure(
    queries: Codes,
    codes: Codes,
    query_labels: Labels,
    labels: Labels,
    ties: str,
    measure: Callable[[Groups], Values],
) -> Values:
    n_bits = 8 * codes.shape[1]
    blocks = pairs(queries, codes, query_labels, labels)
    values = [measure(group(block, n_bits, ties)) for block in blocks]
    return np.concatenate(values) if values else np.empty(0)


# The measures of groups of ties. Within a group of n documents, r of them relevant, each place
# holds a relevant document with probability r / n.


def precision_at(groups: Groups, k: int) -> Values:
    return _found(groups, k) / k


def recall_at(groups: Groups, k: int) -> Values:
    share: Values = _found(groups, k) / np.maximum(groups.relevant.sum(axis=1), 1)
    return share


def _found(groups: Groups, k: int) -> Values:
    """How many relevant documents the first k places hold."""
    _, taken = _places(groups, k)
    found: Values = (taken * groups.relevant / np.maximum(groups.documents, 1)).sum(axis=1)
    return found


def average_precision_at(groups: Groups, k: int | None = None) -> Values:
    """Sum over the places of P(relevant there) · E[relevant up to there | relevant there] / place.

    Given that place i of a group holds one of its r relevant documents, the i − 1 before it in
    the group hold (i − 1)(r − 1)/(n − 1) others. The sums of 1/(b + i) and of i/(b + i) over
    the places i of a group that begins after b documents come from harmonic numbers.
    """
    before, taken = _places(groups, k)
    harmonic = _cumulated(1 / np.arange(1, groups.documents.sum(axis=1).max(initial=0) + 1))
    n, r = groups.documents, groups.relevant
    relevant_before = np.cumsum(r, axis=1) - r
    others = np.where(n > 1, (r - 1) / np.maximum(n - 1, 1), 0.0)
    inverse = harmonic[before + taken] - harmonic[before]
    weighted = taken - before * inverse
    sums = (1 + relevant_before - others) * inverse + others * weighted
    mean: Values = (r / np.maximum(n, 1) * sums).sum(axis=1) / np.maximum(r.sum(axis=1), 1)
    return mean


def ndcg_at(groups: Groups, k: int) -> Values:
    before, taken = _places(groups, k)
    largest = groups.documents.sum(axis=1).max(initial=0)
    discounts = _cumulated(1 / np.log2(np.arange(2, largest + 2)))
    gains = groups.relevant / np.maximum(groups.documents, 1)
    reached = (gains * (discounts[before + taken] - discounts[before])).sum(axis=1)
    ideal = discounts[np.minimum(groups.relevant.sum(axis=1), k)]
    gained: Values = np.divide(reached, ideal, out=np.zeros(len(ideal)), where=ideal > 0)
    return gained


def precision_in_ball(groups: Groups, radius: int) -> Values:
    """The share of relevant documents in the groups up to the radius; groups must be distances."""
    documents = groups.documents[:, : radius + 1].sum(axis=1)
    relevant: Values = groups.relevant[:, : radius + 1].sum(axis=1) / np.maximum(documents, 1)
    return relevant


def _places(groups: Groups, k: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many of the first k places lie before each group, and how many of them it takes."""
    reached = np.cumsum(groups.documents, axis=1)
    if k is not None:
        reached = np.minimum(reached, k)
    taken = np.diff(reached, axis=1, prepend=0)
    return reached - taken, taken


def _cumulated(terms: Values) -> Values:
    """0, and the sum of the first 1, 2, ... terms."""
    return np.concatenate([[0.0], np.cumsum(terms)])
