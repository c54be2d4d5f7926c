"""One line that shows why a document is a hit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from functools import lru_cache
from typing import Protocol

from boltzhash.text.tokens import UNSPACED, tokenize
from boltzhash.text.words import Words

try:
    from boltzhash.text import _lines
except ImportError:  # no compiler: PythonLines does it
    _lines = None  # type: ignore[assignment]

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

_TOKENS = re.compile(r"\S+")
_RUNS = re.compile(f"([{UNSPACED}]+)|(?:(?![{UNSPACED}])[^\\W_])+")
_CORE = re.compile(r"\w(?:.*\w)?")

Cut = Callable[[str], Sequence[str]]  # a text into words
Having = Callable[[Set[str]], Set[str]]  # those of some tokens that have a word which is sought
Span = tuple[int, int]


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

    return _window(*_joined(max(lines, key=n_sought), found), sought, width)


class Lines(Protocol):
    """Finds lines that show why texts are hits, and where in them the words stand."""

    def best(self, text: str, sought: Set[str], width: int) -> str:
        """The sentence with most of the words, the first of equals, cut to ``width``."""

    def spans(self, line: str, sought: Set[str]) -> list[Span]:
        """Where words stand that are sought: parts of a name if they are, else the whole name."""


@lru_cache(maxsize=32)  # one for each language: it remembers the words of tokens
def lines_of(words: Words) -> Lines:
    """The fastest there is.

    >>> lines = lines_of(Words())
    >>> lines.best("Zip files. Reading an archive.", {"read"}, 80)
    'Reading an archive.'
    >>> lines.spans("Reading an archive.", {"read"})
    [(0, 7)]
    """
    return PythonLines(words) if _lines is None else CompiledLines(words)


class CompiledLines:
    """The same in C. It may be used from several threads."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._lines = _lines.Lines(lambda token: words.of_tokens([token])[0])

    def best(self, text: str, sought: Set[str], width: int) -> str:
        return _window(*self._lines.best(text, list(sought)), sought, width)

    def spans(self, line: str, sought: Set[str]) -> list[Span]:
        return self._lines.spans(
            line, list(sought), lambda token: _spans_in(token, 0, self._words.of, sought)
        )


class PythonLines:
    """The plain twin of :class:`CompiledLines`."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def best(self, text: str, sought: Set[str], width: int) -> str:
        return best_line(text, sought, width, self._words.of, lambda t: self._having(t, sought))

    def spans(self, line: str, sought: Set[str]) -> list[Span]:
        having = self._having(set(line.split()), sought)
        return [
            span
            for token in (_TOKENS.finditer(line) if having else ())
            if token.group() in having
            for span in _spans_in(token.group(), token.start(), self._words.of, sought)
        ]

    def _having(self, tokens: Set[str], sought: Set[str]) -> Set[str]:
        return self._words.tokens_having(sought, set(tokens)) if sought else frozenset()


def _spans_in(token: str, start: int, cut: Cut, sought: Set[str]) -> list[Span]:
    """In a token that has a word and begins at ``start``."""
    parts = [span for run in _RUNS.finditer(token) for span in _spans_in_run(run, cut, sought)]
    core = _CORE.search(token)
    found = parts or [core.span() if core else (0, len(token))]
    return [(start + first, start + last) for first, last in found]


def _spans_in_run(run: re.Match[str], cut: Cut, sought: Set[str]) -> list[Span]:
    """In a script without spaces, the pairs of characters that were asked for; else all or nothing."""
    text, start = run.group(), run.start()
    if run.group(1) is None or len(text) == 1:
        return [run.span()] if not sought.isdisjoint(cut(text)) else []
    spans: list[Span] = []
    for i in range(len(text) - 1):
        if text[i : i + 2] in sought:
            begin = spans.pop()[0] if spans and spans[-1][1] > start + i else start + i
            spans.append((begin, start + i + 2))
    return spans


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
    is_title = len(first) <= 2 * len(title) and _repeats(first, title)
    return rest if is_title and rest.strip() else text


@lru_cache(maxsize=4096)  # documents that are found are found again
def _repeats(first: str, title: str) -> bool:
    return set(tokenize(first)) <= set(tokenize(title)) or _letters(first) == _letters(title)


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def _joined(tokens: list[str], found: Set[str]) -> tuple[str, int]:
    """A line, and how many characters stand before its first token that was found; −1: none was."""
    before = 0
    for token in tokens:
        if token in found:
            return " ".join(tokens), before
        before += len(token) + 1
    return " ".join(tokens), -1


def _window(line: str, before: int, sought: Set[str], width: int) -> str:
    """At most ``width`` characters of a line, beginning a little before the first sought word.

    It is in the token that has ``before`` characters before it, if that is not negative.
    """
    if len(line) <= width:
        return line
    start = 0
    if before >= 0:
        token = line[before:].partition(" ")[0].casefold()
        places = (token.find(word) for word in sought)
        first = before + min((p for p in places if p >= 0), default=0)
        start = max(0, min(first - _LEAD, len(line) - width))
    if start > 0:
        start = line.find(" ", start) + 1 or start
    shown = ("…" if start else "") + line[start:]
    return shown if len(shown) <= width else shown[: width - 1].rstrip() + "…"
