"""Exact answers in order of (distance, insertion) from an engine that cuts ties, and all at 16,384."""

from __future__ import annotations

from boltzhash.codes import Codes
from boltzhash.collection.milvus.client import MOST_HITS, Milvus, Near
from boltzhash.collection.milvus.rows import CODED

_MOST_WITH_TEXTS = 256  # in one answer, which must not be over 100 MB


class Searcher:
    """One query among the rows of a table for which all ``expressions`` hold.

    Milvus cuts ties anywhere. So the ties of the last distance are fetched whole, within a radius; and
    what is more than Milvus gives at once is fetched by ranges of places, halved until they fit.
    """

    def __init__(
        self,
        milvus: Milvus,
        table: str,
        code: Codes,
        expressions: list[str],
        last_place: int,
        n_probe: int,
        most_hits: int = MOST_HITS,
    ) -> None:
        self._milvus = milvus
        self._table = table
        self._code = code
        self._expressions = expressions
        self._last_place = last_place
        self._n_probe = n_probe
        self._most = most_hits

    def nearest(self, k: int) -> list[Near]:
        """What Milvus says, in our order; among ties at the cut it chooses."""
        return sorted(self._search(min(k, self._most), fields=self._fields(k)))

    def _fields(self, k: int) -> list[str] | None:
        """What comes with the hits, if they are few; milvus-lite does not give vectors with them."""
        return CODED if k <= _MOST_WITH_TEXTS and not self._milvus.is_lite else None

    def top_k(self, k: int) -> list[Near]:
        if k > self._most:
            return sorted(self._everything(0, self._last_place))[:k]
        limit = min(self._most, k + 64)
        hits = sorted(self._search(limit, fields=self._fields(k)))
        if len(hits) < limit or hits[-1].distance > hits[k - 1].distance:
            return hits[:k]  # nothing that could be among them is missing
        last = hits[k - 1].distance
        nearer = self.within(last - 1) if last else []
        ties = self._first_ties(last, 0, self._last_place, k - len(nearer))
        return [*nearer, *sorted(ties)][:k]

    def within(self, radius: int) -> list[Near]:
        return sorted(self._within(radius, 0, self._last_place))

    def _within(self, radius: int, low: int, high: int) -> list[Near]:
        hits = self._search(self._most, (low, high), radius)
        if self._is_whole(hits, low, high):
            return hits
        middle = (low + high) // 2
        return self._within(radius, low, middle) + self._within(radius, middle, high)

    def _first_ties(self, distance: int, low: int, high: int, n: int) -> list[Near]:
        """The first n of those at exactly this distance, and perhaps more."""
        hits = self._search(self._most, (low, high), distance)
        if self._is_whole(hits, low, high):
            return [hit for hit in hits if hit.distance == distance]
        middle = (low + high) // 2
        ties = self._first_ties(distance, low, middle, n)
        if len(ties) < n:
            ties += self._first_ties(distance, middle, high, n - len(ties))
        return ties

    def _everything(self, low: int, high: int) -> list[Near]:
        hits = self._search(self._most, (low, high))
        if self._is_whole(hits, low, high):
            return hits
        middle = (low + high) // 2
        return self._everything(low, middle) + self._everything(middle, high)

    def _is_whole(self, hits: list[Near], low: int, high: int) -> bool:
        return len(hits) < self._most or high - low <= self._most

    def _search(
        self,
        limit: int,
        places: tuple[int, int] | None = None,
        radius: int | None = None,
        fields: list[str] | None = None,
    ) -> list[Near]:
        terms = self._expressions
        if places is not None and places != (0, self._last_place):
            terms = [f"place > {places[0]}", f"place <= {places[1]}", *terms]
        return self._milvus.search(
            self._table,
            self._code,
            " and ".join(terms),
            limit,
            radius=radius,
            n_probe=self._n_probe,
            fields=fields,
        )
