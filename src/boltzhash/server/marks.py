"""Words of a text that a query asks for, in any inflection: to mark and to name them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from boltzhash.corpus import Document
from boltzhash.search.snippet import best_line, spans
from boltzhash.server.answers import Piece
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.queries import like, parsed

_SNIPPET_LENGTH = 240
_SEARCHED = 8_000  # characters of a text in which a snippet is looked for
_BEGINNING = 1_000  # the same if no words were asked for, so that the first line is shown


class Sought(NamedTuple):
    """Words that were asked for, and how texts are cut into such words."""

    words: frozenset[str]
    cut: Analyzer

    @classmethod
    def by_query(cls, cut: Analyzer, text: str) -> Sought:
        """The terms of a question, without its stop words and those that it excludes."""
        return cls(frozenset(parsed(text, cut).terms), cut)

    @classmethod
    def by_document(cls, cut: Analyzer, document: Document) -> Sought:
        """The terms that stand for a document in a search for more like it."""
        return cls(frozenset(like(document, cut).terms), cut)

    def is_in(self, text: str) -> bool:
        return not self.words.isdisjoint(self.cut.terms(text))

    def tokens_of(self, tokens: Iterable[str]) -> Set[str]:
        """Those of some tokens, which hold no blank, that have one of the words."""
        return self.cut.words_having(self.words, set(tokens)) if self.words else frozenset()


def marked_snippet(text: str, sought: Sought) -> list[Piece]:
    """The line of a text with most of the words that were asked for, in pieces, those words marked.

    >>> marked_snippet("Open a zip archive.", Sought.by_query(Analyzer(), "zipped"))
    [{'text': 'Open a '}, {'text': 'zip', 'marked': True}, {'text': ' archive.'}]
    """
    searched = text[: _SEARCHED if sought.words else _BEGINNING]
    line = best_line(searched, sought.words, _SNIPPET_LENGTH, sought.cut)
    pieces: list[Piece] = []
    end = 0
    for start, stop in spans(line, sought.words, sought.cut):
        if start > end:
            pieces.append({"text": line[end:start]})
        pieces.append({"text": line[start:stop], "marked": True})
        end = stop
    if end < len(line):
        pieces.append({"text": line[end:]})
    return pieces


def words_in(text: str, sought: Sought) -> list[str]:
    """The words of a text that were asked for, each in lower case in its first form alone.

    >>> words_in("It reads. Read e-mail!", Sought.by_query(Analyzer(), "reading email"))
    ['reads', 'e-mail']
    """
    forms: dict[frozenset[str], str] = {}
    for start, end in spans(text, sought.words, sought.cut):
        asked_for = sought.words.intersection(sought.cut.terms(text[start:end]))
        forms.setdefault(asked_for, text[start:end].lower())
    return list(forms.values())
