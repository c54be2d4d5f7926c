"""Codes → for each query, how many documents and how many relevant ones are at each place.

Short codes tie massively, so a ranking is a row of *groups* whose documents share a place.
With ``ties="expected"`` a group is all documents at one distance and every order within it is equally
likely; with ``ties="insertion"`` equal distances come in the order of insertion, as the index gives
them, and every group is one document. The measures of ``ranking`` are the same formulas on both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.arguments import check
from boltzhash.codes import Codes, check_codes

Labels = NDArray[np.bool_]
Distances = NDArray[np.uint16]

TIES = ("expected", "insertion")

# Pairs of query and document at a time: 4 M of them need less than 0.15 GB.
_PAIRS = 2**22


class Groups(NamedTuple):
    """Counts of shape (n_queries, n_groups), nearest group first; a group may be empty."""

    documents: NDArray[np.int64]
    relevant: NDArray[np.int64]


class Pairs(NamedTuple):
    """All pairs of some queries with all documents: arrays of shape (n_queries, n)."""

    distances: Distances
    relevant: NDArray[np.bool_]


def pairs(queries: Codes, codes: Codes, query_labels: Labels, labels: Labels) -> Iterator[Pairs]:
    """Distances and relevance, a few queries at a time, so that memory stays bounded.

    Packed codes (n_queries, n_bits / 8) and (n, n_bits / 8), labels (n_queries, n_labels) and
    (n, n_labels).
    """
    _check(queries, codes, query_labels, labels)
    wanted, offered = query_labels.astype(np.float32), labels.astype(np.float32).T
    for rows, found in distances(queries, codes):
        yield Pairs(found, wanted[rows] @ offered > 0)


def distances(queries: Codes, codes: Codes) -> Iterator[tuple[slice, Distances]]:
    """Hamming distances (n_rows, n) of a few queries at a time, with the rows of these queries.

    >>> codes = np.array([[0], [1], [3]], dtype=np.uint8)
    >>> list(distances(codes[:1], codes))
    [(slice(0, 1, None), array([[0, 1, 2]], dtype=uint16))]
    """
    query_words, words = _words(queries), np.ascontiguousarray(_words(codes).T)
    block = max(1, _PAIRS // max(1, len(codes)))
    for start in range(0, len(queries), block):
        rows = slice(start, min(start + block, len(queries)))
        yield rows, _distances(query_words[rows], words)


def group(block: Pairs, n_bits: int, ties: str) -> Groups:
    """The ranking for each query of a block, with ties treated as asked.

    >>> block = Pairs(np.array([[1, 0, 1]], dtype=np.uint16), np.array([[False, True, True]]))
    >>> group(block, 8, "expected").relevant
    array([[1, 1, 0, 0, 0, 0, 0, 0, 0]])
    >>> group(block, 8, "insertion").relevant
    array([[1, 0, 1]])
    """
    check("ties", ties, *TIES)
    if ties == "expected":
        return by_distance(block, n_bits)
    # NumPy sorts 16-bit integers by radix: stable, and linear in the number of documents.
    order = np.argsort(block.distances, axis=1, kind="stable")
    relevant = np.take_along_axis(block.relevant, order, axis=1).astype(np.int64)
    return Groups(np.ones_like(relevant), relevant)


def by_distance(block: Pairs, n_bits: int) -> Groups:
    """One group for each distance from 0 to ``n_bits``."""
    shape = (len(block.distances), n_bits + 1)
    places = block.distances + (np.arange(shape[0]) * shape[1])[:, None]
    documents = np.bincount(places.ravel(), minlength=shape[0] * shape[1])
    relevant = np.bincount(places[block.relevant], minlength=shape[0] * shape[1])
    return Groups(documents.reshape(shape), relevant.reshape(shape))


def _check(queries: Codes, codes: Codes, query_labels: Labels, labels: Labels) -> None:
    for name, array, label_name, rows in (
        ("queries", check_codes(queries), "query_labels", query_labels),
        ("codes", check_codes(codes), "labels", labels),
    ):
        if not isinstance(rows, np.ndarray) or rows.dtype != np.bool_ or rows.ndim != 2:
            came = f"{rows.dtype} {rows.shape}" if isinstance(rows, np.ndarray) else type(rows)
            raise TypeError(f"{label_name} must be a bool array (n, n_labels), got {came}")
        if len(rows) != len(array):
            raise ValueError(f"there are {len(array)} {name} and {len(rows)} rows of {label_name}")
    if queries.shape[1] != codes.shape[1]:
        raise ValueError(
            f"queries have {8 * queries.shape[1]} bits and codes {8 * codes.shape[1]}: "
            "they come from different models"
        )
    if query_labels.shape[1] != labels.shape[1]:
        raise ValueError(
            f"query_labels have {query_labels.shape[1]} columns and labels {labels.shape[1]}: "
            "a column must mean the same label in both"
        )


def _words(codes: Codes) -> NDArray[np.uint64]:
    """Codes as 64-bit words, the last one padded with zeros."""
    filled = np.zeros((len(codes), -(-codes.shape[1] // 8) * 8), dtype=np.uint8)
    filled[:, : codes.shape[1]] = codes
    return filled.view(np.uint64)


def _distances(queries: NDArray[np.uint64], words: NDArray[np.uint64]) -> Distances:
    found = np.zeros((len(queries), words.shape[1]), dtype=np.uint16)
    for number, row in enumerate(words):
        found += np.bitwise_count(queries[:, number, None] ^ row)
    return found
