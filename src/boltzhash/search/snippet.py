"""One line that shows why a document is a hit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from functools import lru_cache

from boltzhash.text.analyzer import Analyzer
from boltzhash.text.tokens import UNSPACED, tokenize

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
Span = tuple[int, int]


def snippet(text: str, query: str, *, width: int = 80) -> str:
    r"""The sentence with the most words of the query, the first of equals, cut to ``width``.

    >>> snippet("Zip files.\n\nOpen an archive for reading. Close it.", "open a zip archive")
    'Open an archive for reading.'
    """
    sought, lines = set(tokenize(query)), list(map(str.split, sentences(text)))
    tokens = set().union(*lines)
    having = {token for token in tokens if not sought.isdisjoint(tokenize(token))}
    return _best_of(lines, having, sought, width, tokenize)


def best_line(text: str, sought: Set[str], width: int, analyzer: Analyzer) -> str:
    """:func:`snippet` for words of the index.

    >>> best_line("Zip files. Reading an archive.", {"read"}, 80, Analyzer())
    'Reading an archive.'
    """
    lines = list(map(str.split, sentences(text)))
    having = analyzer.words_having(sought, set().union(*lines)) if sought else set()
    return _best_of(lines, having, sought, width, analyzer.terms)


def spans(line: str, sought: Set[str], analyzer: Analyzer) -> list[Span]:
    """Where words stand that are sought: parts of a name if they are, else the whole name.

    >>> spans("Reading an archive.", {"read"}, Analyzer())
    [(0, 7)]
    """
    having = analyzer.words_having(sought, set(line.split())) if sought else set()
    return [
        span
        for token in (_TOKENS.finditer(line) if having else ())
        if token.group() in having
        for span in _spans_in(token.group(), token.start(), analyzer.terms, sought)
    ]


def _best_of(
    lines: Sequence[list[str]], having: Set[str], sought: Set[str], width: int, cut: Cut
) -> str:
    """The line with most of the words, of lines as tokens between blanks; ``having`` have one."""
    best, most = next(filter(None, lines), []), 0
    for tokens in lines:
        if not having.isdisjoint(tokens):  # as in few lines
            n = len(sought & set(cut(" ".join(filter(having.__contains__, tokens)))))
            if n > most:
                best, most = tokens, n
            if most == len(sought):
                break
    line, before = " ".join(best), 0
    for token in best if len(line) > width else ():
        if token in having:
            return _window(line, before, sought, width)
        before += len(token) + 1
    return _window(line, -1, sought, width)


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
