"""What is asked of a collection, checked before anything is read or written."""

from __future__ import annotations

from typing import NamedTuple

from boltzhash.arguments import check_choice, check_integer, check_number
from boltzhash.collection.filters import Condition, Where, parse_where
from boltzhash.collection.store import Store
from boltzhash.encoding.coding import Query
from boltzhash.search.order import CANDIDATES


class SearchRequest(NamedTuple):
    """What is asked of a search besides the query."""

    k: int
    n_candidates: int  # how many of the nearest are put in another order
    conditions: list[Condition]

    @property
    def n_nearest(self) -> int:
        return max(self.k, self.n_candidates)


def checked_search(k: int, where: Where | None, rerank: bool | int) -> SearchRequest:
    """
    >>> checked_search(10, None, rerank=True)
    SearchRequest(k=10, n_candidates=500, conditions=[])
    >>> checked_search(10, None, rerank=2.5)
    Traceback (most recent call last):
    ...
    ValueError: rerank must be True, False or how many to rerank, got 2.5
    """
    check_integer("k", k, 1, "an integer of 1 or more")
    n_candidates = (CANDIDATES if rerank else 0) if isinstance(rerank, bool) else rerank
    check_integer("rerank", n_candidates, 0, "True, False or how many to rerank")
    return SearchRequest(int(k), int(n_candidates), parse_where(where))


def check_radius(radius: int) -> None:
    check_integer("radius", radius, 0, "an integer of 0 or more")


def check_wait(wait: float) -> None:
    """Up to a day: SQLite and PostgreSQL count milliseconds in 32 bits."""
    check_number("wait", wait, at_least=0, at_most=86_400)


def check_by(store: Store, by: str, query: Query, *, by_codes: bool) -> None:
    """Refuse a way of searching that is not known, or that the store or the query cannot do."""
    check_choice("by", by, ("codes", "words", "both"))
    if by == "codes":
        return
    if not isinstance(query, str):
        raise ValueError(f"by={by!r} compares words: search for a text, not for a code")
    if by_codes:
        raise ValueError(f"by={by!r} needs neither rerank nor approximate: leave them out")
    if not store.keeps_words:
        raise ValueError(f"{store.shown} keeps no index of words: search it by codes")
