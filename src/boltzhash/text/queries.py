"""A question → what it asks for, in terms of an index."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from boltzhash.corpus import Document
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.fields import exact_terms, names_of

_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»＂", '"'))
_QUOTED = re.compile(r'((?<!\S)-)?(?<![0-9])"([^"]*)"')  # after a digit it is an inch
_OPERATORS = '-" '
_MOST_TYPED = 32  # words of a question that may have operators


class TermQuery(NamedTuple):
    """What a question asks for, in terms of an :class:`Analyzer`."""

    terms: Counter[str]  # wanted, by how often they were asked for
    phrases: list[list[str]]  # each must occur, its terms one after the other
    excluded: frozenset[str]  # must not occur
    excluded_phrases: Sequence[Sequence[str]] = ()  # must not occur one after the other
    beside: frozenset[str] = frozenset()  # of the terms, those that stand for several or for a part

    def is_empty(self) -> bool:
        """Whether nothing is wanted, so that there is nothing to search for.

        >>> [parsed(text, Analyzer()).is_empty() for text in ("bread", "-bread", '- ""')]
        [False, True, True]
        """
        return not self.terms and not self.phrases


@functools.lru_cache(maxsize=16)  # who searches asks again, to mark what was found
def parsed(text: str, analyzer: Analyzer) -> TermQuery:
    """What a question asks for.

    Words in quotes must occur as they stand there, a word or quotes with a minus before them must
    not; all else is wanted. A minus is one only before a word of two letters or more: ``ls -l`` and
    ``-5`` have none. A quote without its counterpart is a blank. In more than 32 words quotes and
    minuses are punctuation: nobody types that many to search, people paste prose.

    >>> query = parsed('read a "csv file" -pandas', Analyzer())
    >>> query.phrases, query.excluded
    ([['csv', 'file']], frozenset({'panda'}))
    >>> sorted(query.terms)[1:-1]
    ['csv', 'file', 'read']
    """
    plain = text.translate(_QUOTES)
    is_prose = len(plain.split()) > _MOST_TYPED
    if is_prose:
        plain = plain.replace('"', " ")
    wanted, phrases, unwanted = [], [], []
    for minus, quoted in _QUOTED.findall(plain):
        if minus:
            unwanted.append(quoted)
        else:
            wanted.append(quoted)
            phrases.append(analyzer.terms_in_order(quoted))
    for word in _QUOTED.sub(" ", plain).replace('"', " ").split():
        if not is_prose and word[0] == "-" and _can_be_excluded(word[1:], analyzer):
            unwanted.append(word[1:])
        else:
            wanted.append(word)
    in_order, beside = analyzer.terms_asked_for(" ".join(wanted))
    terms = Counter(in_order + beside)
    if any(c.isprintable() and c not in _OPERATORS for word in wanted for c in word):
        terms.update(exact_terms(text))
    excluded, excluded_phrases = _excluded(unwanted, analyzer)
    phrases = [phrase for phrase in phrases if phrase]
    only_beside = frozenset(beside).difference(in_order)
    return TermQuery(terms, phrases, excluded, excluded_phrases, only_beside)


def like(document: Document, analyzer: Analyzer) -> TermQuery:
    """Return the query for documents like this one: its words, whatever signs stand around them.

    >>> sorted(like(Document("csv.reader", 'Reads "all the" rows -fast'), Analyzer()).terms)
    ['csv', 'csv.reader', 'fast', 'read', 'reader', 'row']
    """
    in_order, beside = analyzer.terms_asked_for(" ".join([document.text, *names_of(document)]))
    only_beside = frozenset(beside).difference(in_order)
    return TermQuery(Counter(in_order + beside), [], frozenset(), beside=only_beside)


def has_phrase(document: Document, phrase: Sequence[str], analyzer: Analyzer) -> bool:
    """Whether a phrase of a query occurs in the text or in a name of a document.

    >>> document, analyzer = Document(1, "The cat's toys", {"title": "Of cats"}), Analyzer()
    >>> query = parsed('"cat toy" "of cat"', analyzer)
    >>> [has_phrase(document, phrase, analyzer) for phrase in query.phrases]
    [True, True]
    """
    texts = (document.text, *names_of(document))
    return any(are_in_order(analyzer.terms_in_order(text), phrase) for text in texts)


def are_in_order(terms: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether terms have those of a phrase one after the other.

    >>> are_in_order(["a", "csv", "file"], ["csv", "file"])
    True
    """
    length = len(phrase)
    wanted = list(phrase)
    return not wanted or any(
        term == wanted[0] and list(terms[start : start + length]) == wanted
        for start, term in enumerate(terms)
    )


def _can_be_excluded(word: str, analyzer: Analyzer) -> bool:
    return word[:1].isalpha() and any(
        len(term) > 1 or not term.isascii() for term in analyzer.terms_in_order(word)
    )


def _excluded(texts: list[str], analyzer: Analyzer) -> tuple[frozenset[str], list[list[str]]]:
    """A name is excluded as a whole; what has no whole, as a phrase."""
    terms, phrases = set(), []
    for text in texts:
        in_order = analyzer.terms_in_order(text)
        whole = next(iter(analyzer.terms(text)[len(in_order) :]), None)
        if len(in_order) == 1:
            terms.add(in_order[0])
        elif whole is not None and not re.search(r"\s", text):
            terms.add(whole)
        elif in_order:
            phrases.append(in_order)
    return frozenset(terms), phrases
