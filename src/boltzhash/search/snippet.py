"""One line that shows why a document is a hit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set

from boltzhash.text.tokens import tokenize

# Sentences end at an empty line or a full stop, but not that of "i.e." or "e.g."; a heading with its
# underline is not a sentence.
_HEADING = r"[^\n]*\n[ \t]*[-=~^*]{3,}[ \t]*(?:\n|\Z)"
_FULL_STOP = r"(?<=[.!?].)(?<!\bi\.e\..)(?<!\be\.g\..)"
_HEADINGS = re.compile(f"(?:{_HEADING})*")
# All begin with a blank, so that re looks for those alone: twice as fast as trying every character.
_BREAKS = re.compile(
    rf"\s(?:{_FULL_STOP}\s*(?:(?<=\n){_HEADING})*|(?<=\n)(?:(?>\s*\n)?+(?:{_HEADING})+|\s*\n))",
    re.DOTALL,
)
_UNSPACED_STOP = re.compile("(?<=[。！？])")
_LEAD = 20

Cut = Callable[[str], Sequence[str]]  # a text into words
Having = Callable[[Set[str]], Set[str]]  # those of some tokens that have a word which is sought


def snippet(text: str, query: str, width: int = 80) -> str:
    r"""The sentence with the most words of the query, the first of equals, cut to ``width``.

    >>> snippet("Zip files.\n\nOpen an archive for reading. Close it.", "open a zip archive")
    'Open an archive for reading.'
    """
    return best_line(text, set(tokenize(query)), width)


def best_line(
    text: str, sought: Set[str], width: int, cut: Cut = tokenize, having: Having | None = None
) -> str:
    """:func:`snippet` for a query that has already been cut into words, as ``cut`` does it.

    A token is what stands between blanks. ``having`` may know faster than ``cut`` which have words.
    """
    lines = [tokens for sentence in sentences(text) if (tokens := sentence.split())]
    if not lines:
        return ""
    if having is None:
        found: Set[str] = {
            token for token in set().union(*lines) if not sought.isdisjoint(cut(token))
        }
    else:
        found = having(set().union(*lines))

    def n_sought(tokens: list[str]) -> int:
        if found.isdisjoint(tokens):  # as in most lines
            return 0
        return len(sought & set(cut(" ".join(token for token in tokens if token in found))))

    return _window(max(lines, key=n_sought), sought, width, found)


def sentences(text: str) -> list[str]:
    r"""
    >>> sentences("Zip\n===\nA zip file, e.g. one.  Is it?\n\nNo")
    ['A zip file, e.g. one.', 'Is it?', 'No']
    """
    heading = _HEADINGS.match(text)
    assert heading is not None  # it may be empty
    found = _BREAKS.split(text[heading.end() :])
    if "。" in text or "！" in text or "？" in text:
        return [part for sentence in found for part in _UNSPACED_STOP.split(sentence)]
    return found


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


def _window(tokens: list[str], sought: Set[str], width: int, found: Set[str]) -> str:
    """At most ``width`` characters of a line, beginning a little before the first sought word.

    ``found`` are the tokens that have one.
    """
    line = " ".join(tokens)
    if len(line) <= width:
        return line
    start, before = 0, 0
    for token in tokens:
        if token in found:
            places = (token.casefold().find(word) for word in sought)
            first = before + min((p for p in places if p >= 0), default=0)
            start = max(0, min(first - _LEAD, len(line) - width))
            break
        before += len(token) + 1
    if start > 0:
        start = line.find(" ", start) + 1 or start
    shown = ("…" if start else "") + line[start:]
    return shown if len(shown) <= width else shown[: width - 1].rstrip() + "…"
