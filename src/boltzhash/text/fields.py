"""The fields of a document that are searched: its text, its id and its titles.

Terms of the id and the titles count several times. The id as a whole is a term of its own, once as
written and once folded, and a question asks for itself in the same two ways: who types an exact name
gets it first, and its case decides between names that differ in nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.tokens import fold

TITLE_FIELDS = ("title", "name", "subject")
NAME_WEIGHT = 3  # how often a term of the id or of a title counts
EXACT_WEIGHT = 30  # the same for the id as a whole: much, since a long text waters it down
_LONGEST_NAME = 1000  # of an exact id
_EXACT = ("=", "~")  # before an id as it is written, and folded
_BLANK = "␣"  # in an id that is one term
_OF_BLANKS = re.compile('[ "]')


def term_counts(document: Document, analyzer: Analyzer) -> Counter[str]:
    """How often each term counts in a document: once in its text, more often in its names.

    >>> document = Document("csv.reader", "Reads rows.", {"title": "Rows"})
    >>> counts = term_counts(document, Analyzer())
    >>> counts["csv.reader"], counts["=csv.reader"], counts["row"]
    (3, 30, 4)
    """
    counts = Counter(analyzer.terms(document.text))
    for name in names_of(document):
        for term in analyzer.terms(name):
            counts[term] += NAME_WEIGHT
    for term in exact_of(document.id):
        counts[term] += EXACT_WEIGHT
    return counts


def names_of(document: Document) -> Iterator[str]:
    """The id and the titles; a number says nothing, also where it is written as a string."""
    if name := name_of(document.id):
        yield name
    yield from titles_of(document)


def name_of(id_: Id) -> str:
    """What of an id says something; nothing of a number.

    >>> name_of("csv.reader"), name_of("7"), name_of(7)
    ('csv.reader', '', '')
    """
    return id_ if isinstance(id_, str) and not id_.isdecimal() else ""


def exact_of(id_: Id) -> list[str]:
    """An id as one term, as it is written and folded; a number has none, unless it is a string.

    >>> exact_of("Moon 7"), exact_of(7)
    (['=Moon␣7', '~moon␣7'], [])
    """
    if not isinstance(id_, str):
        return []
    if id_.isascii() and id_.isprintable() and not _OF_BLANKS.search(id_):  # as most are
        return [_EXACT[0] + id_, _EXACT[1] + id_.lower()] if 0 < len(id_) <= _LONGEST_NAME else []
    return exact_terms(id_)


def titles_of(document: Document) -> Iterator[str]:
    """The titles in its metadata.

    >>> list(titles_of(Document(1, "text", {"title": "A name", "year": 2020})))
    ['A name']
    """
    if document.metadata:
        for field in TITLE_FIELDS:
            title = document.metadata.get(field)
            if isinstance(title, str):
                yield title


def exact_terms(name: str) -> list[str]:
    """A name as one term, as it is written and folded; no other term has their first characters."""
    name = name[: 2 * _LONGEST_NAME].strip().strip('"')
    if not name.isascii():
        name = name.encode(errors="replace").decode()  # half a surrogate pair cannot be stored
    written, folded = [_BLANK.join(spelling.split()) for spelling in (name, fold(name))]
    if not written or len(written) > _LONGEST_NAME:
        return []
    return [_EXACT[0] + written, _EXACT[1] + folded]
