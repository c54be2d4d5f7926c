"""Documents found by their best passages: those with the nearest codes."""

from __future__ import annotations

import numpy as np

from boltzhash.codes import Codes, hamming
from boltzhash.collection.sqlite.codes import PackedCodes
from boltzhash.collection.sqlite.schema import PASSAGE_BITS
from boltzhash.collection.store import Mask, Places, Rows
from boltzhash.search.hits import Hits

_AT_FIRST = 4  # passages looked for, for each document that is wanted


class BestPassages:
    """The passages of a collection, asked with one query: each document counts with its nearest.

    It is what a ranking takes for the codes of documents.
    """

    def __init__(self, passages: PackedCodes, query: Codes) -> None:
        self._passages = passages
        self.query = query

    def nearest(self, k: int, allowed: Mask | None) -> Hits:
        """The best passages of the k nearest documents, by their numbers.

        In order of (distance, document), so a document that is not among n passages comes after all
        that are: with k documents among them, these are the k nearest.
        """
        n = _AT_FIRST * k
        while True:
            found = self._passages.top_k(self.query, n, allowed)
            best = _first_of_each_document(found)
            if len(best.ids) >= k or len(found.ids) < n:
                return Hits(best.ids[:k], best.distances[:k])
            n *= 4

    def within(self, radius: int, allowed: Mask | None) -> Hits:
        """The best passage of every document that has one at most ``radius`` away."""
        return _first_of_each_document(self._passages.within(self.query, radius, allowed))

    def top_k(self, query: Codes, k: int, allowed: Mask | None) -> Hits:
        """The k nearest documents, by their places."""
        best = self.nearest(k, allowed)
        return Hits(best.ids >> PASSAGE_BITS, best.distances)

    def codes_at(self, places: Places) -> Codes:
        """The codes of the best passages of documents that are there."""
        codes = np.empty((len(places), len(self.query)), dtype=np.uint8)
        for rows, mask in self._passages.parts(None):
            there, best = _best_rows(rows, mask, places, self.query)
            codes[there] = rows.codes[best]
        return codes


def _first_of_each_document(found: Hits) -> Hits:
    """Nearest first, so the first is the best; of equals the first in the document."""
    _, first = np.unique(found.ids >> PASSAGE_BITS, return_index=True)
    first.sort()
    return Hits(found.ids[first], found.distances[first])


def _best_rows(
    rows: Rows, mask: Mask | None, places: Places, query: Codes
) -> tuple[Places, Places]:
    """Which of the documents have passages in these rows that count, and the best row of each."""
    starts = np.searchsorted(rows.places, places << PASSAGE_BITS)
    lengths = np.searchsorted(rows.places, places + 1 << PASSAGE_BITS) - starts
    there = np.flatnonzero(lengths)
    if mask is not None:  # all passages of a document count, or none does
        there = there[mask[starts[there]]]
    if not len(there):
        return there, there
    starts, lengths = starts[there], lengths[there]
    firsts = np.cumsum(lengths) - lengths
    own = np.arange(lengths.sum()) + np.repeat(starts - firsts, lengths)
    distances = hamming(query[None], rows.codes[own])[0].astype(np.int64)
    nearest = np.minimum.reduceat(distances << PASSAGE_BITS | own, firsts)  # of equals the first
    return there, nearest & (1 << PASSAGE_BITS) - 1
