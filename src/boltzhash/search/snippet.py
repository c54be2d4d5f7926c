"""One line that shows why a document is a hit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set

from boltzhash.text.tokens import tokenize

# Sentences end at an empty line or a full stop, but not that of "i.e." or "e.g."; a heading with its
# underline is not a sentence.
_BREAKS = re.compile(
    r"(?m)^[^\n]*\n[ \t]*[-=~^*]{3,}[ \t]*(?:\n|$)"
    r"|(?<=[.!?])(?<!\bi\.e\.)(?<!\be\.g\.)\s+|(?<=[。！？])|\n\s*\n"
)
_LEAD = 20

Cut = Callable[[str], Sequence[str]]  # a text into words


def snippet(text: str, query: str, width: int = 80) -> str:
    r"""The sentence with the most words of the query, the first of equals, cut to ``width``.

    >>> snippet("Zip files.\n\nOpen an archive for reading. Close it.", "open a zip archive")
    'Open an archive for reading.'
    """
    return best_line(text, set(tokenize(query)), width)


def best_line(text: str, sought: Set[str], width: int, cut: Cut = tokenize) -> str:
    """:func:`snippet` for a query that has already been cut into words, as ``cut`` does it."""
    lines = [" ".join(sentence.split()) for sentence in _BREAKS.split(text)]
    lines = [line for line in lines if line]
    if not lines:
        return ""
    best = max(lines, key=lambda line: len(sought & set(cut(line))))
    return _window(best, sought, width, cut)


def without_title(text: str, title: str) -> str:
    """A text without a first paragraph that only repeats the title.

    >>> without_title("str title\\n\\nReturn a version.", "str.title")
    'Return a version.'
    >>> without_title("zipfile Zip File open\\n\\nOpen it.", "zipfile.ZipFile.open")
    'Open it.'
    """
    first, _, rest = text.partition("\n\n")
    is_short = len(first) <= 2 * len(title)
    is_title = is_short and (
        set(tokenize(first)) <= set(tokenize(title)) or _letters(first) == _letters(title)
    )
    return rest if is_title and rest.strip() else text


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def _window(line: str, sought: Set[str], width: int, cut: Cut) -> str:
    """At most ``width`` characters of a line, beginning a little before the first sought word."""
    if len(line) <= width:
        return line
    start = 0
    for word in re.finditer(r"\S+", line):
        if not sought.isdisjoint(cut(word.group())):
            places = (word.group().casefold().find(token) for token in sought)
            first = word.start() + min((p for p in places if p >= 0), default=0)
            start = max(0, min(first - _LEAD, len(line) - width))
            break
    if start > 0:
        start = line.find(" ", start) + 1 or start
    shown = ("…" if start else "") + line[start:]
    return shown if len(shown) <= width else shown[: width - 1].rstrip() + "…"
