"""How much an approximate index finds, measured with queries that are not in the collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

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


class Effort(NamedTuple):
    """How much an approximate search looks at, in the engine's own unit, and what it finds then."""

    effort: int
    recall: float


def least_effort(
    nearest: Callable[[int, int | None], list[int]],
    n_queries: int,
    efforts: Sequence[int],
    recall: float,
) -> Effort:
    """The first of the efforts that finds that share of the true nearest, or else the last.

    ``nearest(query, effort)`` gives the distances of an answer, the exact one without an effort. Any of
    the documents that tie at the cut will do, so what is found counts by its distance.

    >>> answers = {None: [1, 2, 2], 10: [1, 2, 5], 20: [1, 2, 2]}
    >>> least_effort(lambda query, effort: answers[effort], 1, [10, 20], 0.9)
    Effort(effort=20, recall=1.0)
    """
    exact = [nearest(query, None) for query in range(n_queries)]
    found = Effort(efforts[0], 1.0)
    for effort in efforts:
        shares = [
            sum(distance <= true[-1] for distance in nearest(query, effort)) / len(true)
            for query, true in enumerate(exact)
            if true
        ]
        found = Effort(effort, float(np.mean(shares)) if shares else 1.0)
        if found.recall >= recall:
            break
    return found
