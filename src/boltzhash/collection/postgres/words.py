"""The words of a collection in PostgreSQL: an inverted index that is written with the documents.

Every write adds a segment, in its own transaction: the words of the documents that it put there, and the
places that it overwrote or deleted, which no longer count in earlier segments. When the last segments
are many and small, the same write puts them together; when much was overwritten, it writes all of them
anew. A reader fetches the pages with the words of its question and scores them itself, by the same code
as a collection in a folder. What it remembers are places and lengths of documents by segment: a segment
never changes, and its number is never used again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.collection.postgres.connection import PostgresConnection
from boltzhash.collection.postgres.pages import (
    Documents,
    number_of,
    packed,
    pages_of,
    unpacked,
    with_words,
)
from boltzhash.collection.store import Places
from boltzhash.corpus import Document
from boltzhash.errors import CollectionError
from boltzhash.hashers import Hasher
from boltzhash.search.counted import DocumentCounter
from boltzhash.search.inverted import WordIndex
from boltzhash.search.segments import Segment, digests_of, merged
from boltzhash.text.words import Words
from boltzhash.threads import in_batches

_FEW = 32  # so many segments of a size become one
_LARGEST = 32**4  # words times documents: a segment of that size stays as it is
_AT_MOST = 4 * _LARGEST  # or segments of that size together, since they are joined in memory
_MANY_GONE = 1_000  # places that were overwritten, before all segments are written anew
_AT_ONCE = 1024  # documents of a segment when all are made

_Latest = NDArray[np.int64]


class _Written(NamedTuple):
    """What the table says of a segment."""

    number: int
    size: int  # words times documents
    n_documents: int
    n_gone: int


class PostgresWords:
    """The inverted index behind a connection."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._run = connection.run
        self._rules = Words("none")  # how texts become words
        self._counter = DocumentCounter(self._rules)
        self._documents: dict[int, Documents] = {}  # by segment
        self._index = WordIndex([], np.empty(0, dtype=np.int64))

    # Writing, inside a transaction

    def put(self, documents: Mapping[int, Document], gone: Sequence[int] = ()) -> None:
        """Index documents, given by place, after the words ``gone`` from some places are forgotten."""
        if not documents and not gone:
            return
        language, rules, written = self._standing()
        self._check_rules(self._words_of(language), rules)
        places = sorted(documents)
        segment = self._counter.segment(places, [documents[place] for place in places])
        written.append(self._write(segment, np.array(gone, dtype=np.uint32)))
        self._tidy(written)

    def make(self, language: str, documents: Iterable[tuple[int, Document]]) -> None:
        """Index all documents, given with their places, in a language."""
        self._run("DELETE FROM word_pages")
        self._run("DELETE FROM word_segments")
        rules = self._words_of(language).fingerprint()
        self._run("UPDATE state SET language = %s, word_rules = %s", [language, rules])
        for some in in_batches(documents, _AT_ONCE):
            self.put(dict(some))

    def language(self) -> str:
        """Whose words they are."""
        return self._standing()[0]

    def are_ours(self) -> bool:
        """Whether they were made by the rules that this process has."""
        language, rules = self._run("SELECT language, word_rules FROM state").fetchone()
        return bool(rules) and rules == self._words_of(language).fingerprint()

    def _words_of(self, language: str) -> Words:
        """The rules of a language, by which documents are counted from now on."""
        if self._rules.language != language:
            self._rules = Words(language)
            self._counter = DocumentCounter(self._rules)
        return self._rules

    def _standing(self) -> tuple[str, str, list[_Written]]:
        """The language, the rules and the segments, asked for at once: every question takes time."""
        rows = self._run(
            "SELECT language, word_rules, number, size, word_segments.n_documents, n_gone FROM state "
            "LEFT JOIN word_segments ON TRUE ORDER BY number"
        ).fetchall()
        written = [_Written(*row[2:]) for row in rows if row[2] is not None]
        return rows[0][0], rows[0][1], written

    def _check_rules(self, words: Words, rules: str) -> None:
        if rules != words.fingerprint():
            raise CollectionError(
                f"{self._connection.shown}: its words were made by other rules ({rules}; here "
                f"{words.fingerprint()}): open the collection again, and with the same versions of "
                "boltzhash and PyStemmer everywhere"
            )

    def _write(self, segment: Segment, gone: NDArray[np.uint32]) -> _Written:
        sizes = len(segment.counts), len(segment.places), len(gone)
        (number,) = self._run(
            "INSERT INTO word_segments (size, n_documents, n_gone, places, lengths, gone) "
            "VALUES (%s, %s, %s, %s, %s, %s) RETURNING number",
            [*sizes, packed(segment.places), packed(segment.lengths), packed(gone)],
        ).fetchone()
        self._connection.copy_rows(
            "word_pages (segment, first, contents)",
            ((number, first, contents) for first, contents in pages_of(segment)),
            types=("int8", "int8", "bytea"),
        )
        return _Written(number, *sizes)

    def _tidy(self, written: list[_Written]) -> None:
        while n := _n_to_join(written):
            joined = self._join(written[-n:], is_all=n == len(written))
            written = [*written[:-n], joined]
        n_gone = sum(one.n_gone for one in written)
        if n_gone > max(_MANY_GONE, sum(one.n_documents for one in written) // 8):
            self._write_anew(written)

    def _join(self, written: Sequence[_Written], *, is_all: bool) -> _Written:
        """Put the last segments together; what they overwrote before them still is."""
        documents = self._documents_of([one.number for one in written])
        segments = [self._whole(one.number, documents[one.number]) for one in written]
        gone = np.unique(np.concatenate([one.gone for one in documents.values()]))
        latest = _latest(list(documents.values()))
        joined = merged(segments, gone[latest[gone] < 0].astype(np.int64))
        self._remove([one.number for one in written])
        return self._write(joined, gone[:0] if is_all else gone)

    def _write_anew(self, written: Sequence[_Written]) -> None:
        """Every segment without the documents that are gone, one after the other."""
        documents = self._documents_of([one.number for one in written])
        latest = _latest(list(documents.values()))
        for row, (number, about) in enumerate(documents.items()):
            segment = self._counting(number, about, latest, row)
            self._remove([number])
            self._write(segment, about.gone[:0])

    def _counting(self, number: int, about: Documents, latest: _Latest, row: int) -> Segment:
        """A segment without documents whose words are in a later one, or in none."""
        gone = about.places[latest[about.places] != row]
        return merged([self._whole(number, about)], gone.astype(np.int64))

    def _whole(self, number: int, about: Documents) -> Segment:
        rows = self._run(
            "SELECT contents FROM word_pages WHERE segment = %s ORDER BY first",
            [number],
            binary=True,
        )
        return with_words(about, [contents for (contents,) in rows])

    def _remove(self, numbers: list[int]) -> None:
        self._run("DELETE FROM word_pages WHERE segment = ANY (%s)", [numbers])
        self._run("DELETE FROM word_segments WHERE number = ANY (%s)", [numbers])

    # Reading

    def index(self, words: Words, asked: Iterable[str]) -> WordIndex:
        """The index of the generation that is being read, with the words asked for alone."""
        _, rules, written = self._standing()
        self._check_rules(words, rules)
        numbers = [one.number for one in written]
        self._follow(numbers)
        pages: dict[int, dict[int, bytes]] = {number: {} for number in self._documents}
        digests = [number_of(digest) for digest in digests_of(list(asked)).tolist()]
        for number, first, contents in self._run(
            "SELECT number, first, contents FROM unnest(%s::bigint[]) AS asked (word), "
            "unnest(%s::bigint[]) AS segments (number), LATERAL (SELECT first, contents FROM "
            "word_pages WHERE segment = number AND first <= word ORDER BY first DESC LIMIT 1) AS page "
            "ORDER BY number, first",
            [digests, numbers],
            binary=True,
        ):
            pages[number][first] = contents
        index = copy.copy(self._index)
        index.segments = [
            with_words(self._documents[number], list(found.values()))
            for number, found in pages.items()
        ]
        return index

    def check(self, n_documents: int, documents_at: Callable[[Places], list[Document]]) -> None:
        """Cut every document into words again; raises if the index has others."""
        language, _, written = self._standing()
        self._words_of(language)
        documents = self._documents_of([one.number for one in written])
        latest = _latest(list(documents.values()))
        if (n := int(np.sum(latest >= 0))) != n_documents:
            raise self._damaged(f"it counts {n_documents} documents and has words of {n}")
        for row, (number, about) in enumerate(documents.items()):
            kept = self._counting(number, about, latest, row)
            places = np.sort(kept.places).astype(np.int64)
            parts = [
                self._counter.segment(some, documents_at(np.array(some)))
                for some in in_batches(places.tolist(), _AT_ONCE)
            ]
            if parts and not _same(kept, merged(parts)):
                raise self._damaged("the words of some documents are not those of their texts")

    def _damaged(self, how: str) -> CollectionError:
        return CollectionError(f"{self._connection.shown} is damaged: {how}")

    def _follow(self, numbers: list[int]) -> None:
        """Know the documents of these segments, and of no others."""
        if numbers == list(self._documents):
            return
        new = self._documents_of([number for number in numbers if number not in self._documents])
        self._documents = {n: self._documents.get(n) or new[n] for n in numbers}
        documents = list(self._documents.values())
        there = np.flatnonzero(_latest(documents) >= 0)
        self._index = WordIndex([with_words(one, []) for one in documents], there)

    def _documents_of(self, numbers: list[int]) -> dict[int, Documents]:
        rows = self._run(
            "SELECT number, places, lengths, gone FROM word_segments WHERE number = ANY (%s) "
            "ORDER BY number",
            [numbers],
            binary=True,
        )
        return {number: Documents(*map(unpacked, arrays)) for number, *arrays in rows}


def language_of(hasher: Hasher) -> str:
    """Whose words are cut for a hasher's collection."""
    return hasher.language if hasher.language is not None else "none"


def _same(one: Segment, other: Segment) -> bool:
    """Whether two segments say the same, in whatever order."""

    def sorted_postings(segment: Segment) -> list[NDArray[Any]]:
        sizes = np.diff(segment.ends, prepend=np.uint64(0)).astype(np.int64)
        words = np.repeat(segment.words, sizes)
        order, documents = np.lexsort((segment.places_of_words, words)), np.argsort(segment.places)
        return [
            *(words[order], segment.places_of_words[order], segment.counts[order]),
            *(segment.places[documents], segment.lengths[documents]),
        ]

    pairs = zip(sorted_postings(one), sorted_postings(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def _n_to_join(written: Sequence[_Written]) -> int:
    """How many of the last segments should become one: the small ones first, if they are many.

    >>> _n_to_join([_Written(0, 32**4, 1, 0), *(_Written(n, 40, 1, 0) for n in range(32))])
    32
    >>> _n_to_join([_Written(n, 40, 1, 0) for n in range(31)])
    0
    """
    for level in range(_level(_LARGEST)):
        n = total = 0
        while n < len(written) and _level(written[-1 - n].size) <= level:
            total += written[-1 - n].size
            n += 1
        if n >= _FEW or (n > 1 and total >= _AT_MOST):
            return n
    return 0


def _level(size: int) -> int:
    """How many times a size is 32.

    >>> [_level(size) for size in (0, 31, 32, 1023, 1024)]
    [0, 0, 1, 1, 2]
    """
    return max(0, (size.bit_length() - 1) // 5)


def _latest(documents: Sequence[Documents]) -> _Latest:
    """By place, which of the segments has the words that count; −1 for none."""
    arrays = [array for one in documents for array in (one.places, one.gone)]
    size = 1 + max((int(array.max()) for array in arrays if len(array)), default=0)
    latest = np.full(size, -1, dtype=np.int64)
    for row, one in enumerate(documents):
        latest[one.gone] = -1
        latest[one.places] = row
    return latest
