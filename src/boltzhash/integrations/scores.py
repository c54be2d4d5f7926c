"""One number for a hit, more is better, as other libraries want it."""

from __future__ import annotations

from collections.abc import Iterator

from boltzhash.collection import Answer
from boltzhash.corpus import Document


def with_scores(answer: Answer) -> Iterator[tuple[Document, float]]:
    """The documents of an answer with their scores; by codes alone less distance is more.

    >>> from boltzhash.search.hits import Hit
    >>> found = Document("a", "stars", {})
    >>> [score for _, score in with_scores(Answer([Hit("a", 3, found), Hit("a", 3, found, score=0.5)]))]
    [-3.0, 0.5]
    """
    for hit in answer:
        assert hit.document is not None  # of a collection they always have one
        yield hit.document, hit.score if hit.score is not None else -float(hit.distance or 0)
