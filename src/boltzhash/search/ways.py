"""By what a query is answered: by its words, by its code, or by both in one score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boltzhash.arguments import check

if TYPE_CHECKING:
    from boltzhash.encoding.coding import CodedQuery
    from boltzhash.hashers import Hasher

WAYS = ("both", "words", "codes")


def natural_way(query: CodedQuery, *, has_words: bool, of_codes: bool) -> str:
    """How it is answered if nothing is said: by both, as far as there are words and a code.

    ``has_words`` says whether documents can be found by words, ``of_codes`` whether something is asked
    for that only a search by codes can do.
    """
    if of_codes or not has_words or query.text is None:
        return "codes"
    return "words" if query.code is None else "both"


def check_way(by: str, query: CodedQuery, hasher: Hasher, *, has_words: bool) -> None:
    """Refuse a way that needs words, or a code, which the query does not have."""
    check("by", by, *WAYS)
    if by != "codes" and query.text is None:
        what = "a code" if query.margins is None else "features alone"
        raise ValueError(f"by={by!r} compares words: search for a text, not for {what}")
    if by != "words" and query.code is None:
        instead = "; a text alone is searched for by='words'" if has_words else ""
        raise ValueError(f"{hasher.needs_features()}{instead}")
