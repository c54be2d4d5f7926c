"""How much an approximate index finds, measured with queries that are not in the collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from boltzhash.corpus import Document

N_QUERIES = 200


def held_out_queries(documents: Iterator[Document], seed: int = 0) -> list[str]:
    """Every other word of documents drawn at random: like the collection, but not in it."""
    rng = np.random.default_rng(seed)
    drawn: list[str] = []
    for number, document in enumerate(documents):  # reservoir sampling: one pass, any length
        if number < N_QUERIES:
            drawn.append(document.text)
        elif (place := int(rng.integers(number + 1))) < N_QUERIES:
            drawn[place] = document.text
    return [" ".join(text.split()[::2]) for text in drawn]


def measured_recall(nearest: Callable[[int, bool], list[int]], n_queries: int) -> float:
    """The mean share of the true nearest that is found.

    ``nearest(query, approximate)`` gives the distances of an answer. Any of the documents that
    tie at the cut will do, so what is found counts by its distance.

    >>> measured_recall(lambda query, approximate: [1, 2, 5] if approximate else [1, 2, 2], 1)
    0.6666666666666666
    """
    shares = []
    for query in range(n_queries):
        exact = nearest(query, False)
        if exact:
            found = sum(distance <= exact[-1] for distance in nearest(query, True))
            shares.append(found / len(exact))
    return float(np.mean(shares)) if shares else 1.0


def is_measured(approximate: dict[str, Any] | None) -> bool:
    """Whether there is an approximate index whose recall is known: no other is searched."""
    return approximate is not None and "recall" in approximate
