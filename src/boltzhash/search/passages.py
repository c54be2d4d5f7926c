"""Which passage of a long document to show, if it was found by its words."""

from __future__ import annotations

from collections.abc import Sequence

from boltzhash.text.passages import Span
from boltzhash.text.words import WordQuery, Words


def passage_to_show(
    text: str, spans: Sequence[Span], nearest: int, wanted: WordQuery, words: Words
) -> Span:
    """The passage with most of the words that are wanted; of equals the nearest, else the first.

    >>> words = Words()
    >>> text, spans = "A star. A moon. A moon and a star.", [Span(0, 8), Span(8, 16), Span(16, 34)]
    >>> passage_to_show(text, spans, 0, words.query("a star near the moon"), words)
    Span(start=16, end=34)
    >>> passage_to_show(text, spans, 1, words.query("a moon"), words)
    Span(start=8, end=16)
    """
    if len(spans) == 1:
        return spans[0]
    found = [len(wanted.words.keys() & words.of(text[start:end])) for start, end in spans]
    best = max(range(len(spans)), key=lambda number: (found[number], number == nearest))
    return spans[best]
