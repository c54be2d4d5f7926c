"""Spellings of the words of a model, which has one column for "sort", "sorts" and "sorting"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from weakref import WeakKeyDictionary

from boltzhash.text.tfidf import TfIdf
from boltzhash.text.tokens import tokenize

_READ = 8_000  # characters of a text that are looked at

_columns: WeakKeyDictionary[TfIdf, dict[str, int]] = WeakKeyDictionary()


def column_of_spelling(tfidf: TfIdf) -> dict[str, int]:
    """Every spelling that a model knows and the column in which it counts.

    >>> tfidf = TfIdf(stem=True)
    >>> counts = tfidf.fit_transform(["sorted apples", "sorting pears", "a train", "a bus"])
    >>> column_of_spelling(tfidf)["sorted"] == column_of_spelling(tfidf)["sorting"]
    True
    """
    known = _columns.get(tfidf)
    if known is None:
        columns = range(len(tfidf.words_)) if tfidf.columns_ is None else tfidf.columns_.tolist()
        known = _columns[tfidf] = dict(zip(tfidf.spellings_, columns, strict=True))
    return known


def commonest_spellings(
    tfidf: TfIdf, columns: Collection[int], texts: Iterable[str]
) -> dict[int, str]:
    """For some columns the spelling that texts use most, of equals the one that comes first.

    >>> tfidf = TfIdf(stem=True)
    >>> counts = tfidf.fit_transform(["sort apples", "sorting pears", "a train", "a bus"])
    >>> sort = tfidf.words_.index("sort")
    >>> commonest_spellings(tfidf, [sort], ["Sorting, then sorting."])[sort]
    'sorting'
    """
    column_of, wanted = column_of_spelling(tfidf), set(columns)
    counts = Counter(
        token
        for text in texts
        for token in tokenize(text[:_READ])
        if column_of.get(token) in wanted
    )
    spelt: dict[int, str] = {}
    for token, _ in counts.most_common():  # of equals the first that was met
        spelt.setdefault(column_of[token], token)
    return {column: spelt.get(column, tfidf.words_[column]) for column in wanted}
