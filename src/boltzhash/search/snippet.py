"""One line that shows why a document is a hit."""

from __future__ import annotations

import re

from boltzhash.text import tokenize

_SENTENCE_ENDS = re.compile(r"(?<=[.!?。！？])\s+|\n\s*\n")


def snippet(text: str, query: str, width: int = 80) -> str:
    """The sentence with most of the query's words, the first of equals, cut to ``width``.

    >>> snippet("Zip files.\\n\\nOpen an archive for reading. Close it.", "open a zip archive")
    'Open an archive for reading.'
    """
    sought = set(tokenize(query))
    best, most = "", -1
    for sentence in _SENTENCE_ENDS.split(text):
        line = " ".join(sentence.split())
        found = len(sought.intersection(tokenize(line)))
        if line and found > most:
            best, most = line, found
    return best if len(best) <= width else best[: width - 1].rstrip() + "…"
