"""What is asked of a collection, checked before anything is read or written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from boltzhash.arguments import Integer, Number, check
from boltzhash.collection.filters import Condition, Where, parse_where
from boltzhash.encoding.coding import CodedQuery
from boltzhash.hashers import Hasher
from boltzhash.search.order import DEFAULT_ORDER, check_order
from boltzhash.search.ways import check_way, natural_way
from boltzhash.text.queries import TermQuery


class SearchRequest(NamedTuple):
    """What is asked of a search besides the query."""

    k: int
    by: str
    order: str  # of what is found by codes
    conditions: list[Condition]
    facets: list[str] | None


def checked_search(
    hasher: Hasher,
    query: CodedQuery,
    k: int,
    *,
    by: str | None = None,
    where: Where | None = None,
    order: str | None = None,
    facets: Sequence[str] | None = None,
) -> SearchRequest:
    """Refuse what the query cannot do, and choose how to search where nothing is said."""
    check("k", k, Integer(1))
    if order is not None:
        check_order(order)
    of_codes = order is not None
    if by is None:
        by = natural_way(query, has_words=True, of_codes=of_codes)
    check_way(by, query, hasher, has_words=True)
    if by != "codes" and of_codes:
        raise ValueError(f"order is for by='codes', got by={by!r}")
    if facets is not None:
        if isinstance(facets, str) or not all(isinstance(field, str) for field in facets):
            raise TypeError(f"facets must be a list of the names of fields, got {facets!r}")
        facets = list(dict.fromkeys(facets))
    conditions = parse_where(where)
    return SearchRequest(int(k), by, order or DEFAULT_ORDER, conditions, facets)


def check_wait(wait: float) -> None:
    """Up to a day: SQLite and PostgreSQL count milliseconds in 32 bits."""
    check("wait", wait, Number(at_least=0, at_most=86_400))


def check_wanted(text: str, wanted: TermQuery) -> TermQuery:
    """Refuse a question that asks for no word.

    >>> from boltzhash.text.analyzer import Analyzer
    >>> from boltzhash.text.queries import parsed
    >>> check_wanted("-bread", parsed("-bread", Analyzer()))
    Traceback (most recent call last):
    ...
    ValueError: '-bread' has no word to search for: add one that documents should have
    """
    if wanted.is_empty():
        raise ValueError(
            f"{text[:80]!r} has no word to search for: add one that documents should have"
        )
    return wanted
