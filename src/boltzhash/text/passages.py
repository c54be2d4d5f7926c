"""A long text cut into passages of about equal length, each to be hashed by itself.

The passages cover the text, and none overlaps another. Cuts are made where the text itself makes one: so
a sentence is whole in one passage, and need not be in two to be found.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from boltzhash.arguments import Integer, check
from boltzhash.text.tokens import UNSPACED

FEWEST_WORDS = 20  # of a passage: fewer say too little for a code

# In a script without spaces two characters are a word.
_WORDS = re.compile(f"[{UNSPACED}]{{1,2}}|[^\\s{UNSPACED}]+")
_BREAKS = (  # where to cut, best first
    re.compile(r"\n\s*\n\s*"),  # an empty line
    re.compile(r"(?<=[.!?])\s+|(?<=[。！？])"),  # the end of a sentence
)
_LEEWAY = 4  # a cut may be moved by one in so many words of a passage


class Span(NamedTuple):
    """Where a passage is in its text: ``text[start:end]``, in characters."""

    start: int
    end: int


def check_passages(words: object) -> None:
    """
    >>> check_passages(5)
    Traceback (most recent call last):
    ...
    ValueError: passages must be an integer of 20 or more, got 5
    """
    check("passages", words, Integer(FEWEST_WORDS))


def cut(text: str, words: int) -> list[Span]:
    """The passages of a text, as few as have at most ``words`` words if they are equally long.

    Each cut is then moved to the nearest empty line, or else to the nearest end of a sentence, if there
    is one within a quarter of a passage. A text of no more words is one passage.

    >>> text = "A star is born. It shines.\\n\\nBread needs an oven. It needs flour."
    >>> [text[start:end] for start, end in cut(text, 8)]
    ['A star is born. It shines.\\n\\n', 'Bread needs an oven. It needs flour.']
    >>> cut("A star is born.", 8)
    [Span(start=0, end=15)]
    """
    if len(text) <= words:
        return [Span(0, len(text))]
    starts = [word.start() for word in _WORDS.finditer(text)]
    n = max(1, -(-len(starts) // words))
    each = len(starts) / n
    cuts = [_cut_near(text, starts, round(each * i), int(each / _LEEWAY)) for i in range(1, n)]
    return [Span(*ends) for ends in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def _cut_near(text: str, starts: list[int], word: int, leeway: int) -> int:
    """Where to cut before a word, or before one that is at most ``leeway`` words away."""
    ideal = starts[word]
    first, last = starts[word - leeway], starts[min(word + leeway, len(starts) - 1)]
    for pattern in _BREAKS:
        found = [
            match.end()
            for match in pattern.finditer(text, first, last)
            if first < match.end() <= last
        ]
        if found:
            return min(found, key=lambda at: abs(at - ideal))
    return ideal
