"""The words of a collection in PostgreSQL: an inverted index that is written with the documents.

Every write adds a segment, in its own transaction: the words of the documents that it put there, and the
places that it overwrote or deleted, which no longer count in earlier segments. When the last segments
are many and small, the same write puts them together; when much was overwritten, it writes all of them
anew. A reader fetches the pages with the words of its question and scores them itself, by the same code
as a collection in a folder. What it remembers of a segment, the places and lengths of its
documents, never changes.
"""

from __future__ import annotations

import copy
import secrets
import threading
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
from boltzhash.text.analyzer import Analyzer
from boltzhash.threads import in_batches

_FEW = 32  # so many segments of a size become one
_LARGEST = 32**4  # words times documents: a segment of that size stays as it is
_AT_MOST = 4 * _LARGEST  # or segments of that size together, since they are joined in memory
_MANY_GONE = 1_000  # places that were overwritten, before all segments are written anew
_AT_ONCE = 1024  # documents of a segment when all are made

_Latest = NDArray[np.int64]


class _Key(NamedTuple):
    """Tells a segment from all others, those of a database that was restored included."""

    number: int
    token: int  # random


class _Written(NamedTuple):
    """What the table says of a segment."""

    key: _Key
    size: int  # words times documents
    n_documents: int
    n_gone: int


class _Known(NamedTuple):
    """The segments of one generation; immutable."""

    documents: dict[_Key, Documents]
    without_words: WordIndex


class WordsReader:
    """The inverted index, read on any connection; threads share what it remembers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known = _Known({}, WordIndex([], np.empty(0, dtype=np.int64)))

    def index(
        self, connection: PostgresConnection, words: Analyzer, asked: Iterable[str]
    ) -> WordIndex:
        """The index of the generation that is being read, with the words asked for alone."""
        _, rules, written = _standing(connection)
        _check_rules(connection, words, rules)
        keys = [one.key for one in written]
        known = self._known
        if keys != list(known.documents):
            with self._lock:
                known = self._followed(connection, keys)
        pages: dict[int, dict[int, bytes]] = {key.number: {} for key in keys}
        digests = [number_of(digest) for digest in digests_of(list(asked)).tolist()]
        for number, first, contents in connection.run(
            "SELECT number, first, contents FROM unnest(%s::bigint[]) AS asked (word), "
            "unnest(%s::bigint[]) AS segments (number), LATERAL (SELECT first, contents FROM "
            "word_pages WHERE segment = number AND first <= word ORDER BY first DESC LIMIT 1) AS page "
            "ORDER BY number, first",
            [digests, list(pages)],
            binary=True,
        ):
            pages[number][first] = contents
        index = copy.copy(known.without_words)
        index.segments = [
            with_words(documents, list(pages[key.number].values()))
            for key, documents in known.documents.items()
        ]
        return index

    def _followed(self, connection: PostgresConnection, keys: list[_Key]) -> _Known:
        """The documents of these segments, and of no others."""
        before = self._known.documents
        if keys != list(before):
            new = _documents_of(connection, [key for key in keys if key not in before])
            documents = {key: before.get(key) or new[key] for key in keys}
            there = np.flatnonzero(_latest(list(documents.values())) >= 0)
            segments = [with_words(one, []) for one in documents.values()]
            self._known = _Known(documents, WordIndex(segments, there))
        return self._known


class WordsWriter:
    """The inverted index behind a connection, changed inside its transaction."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._run = connection.run
        self._rules = Analyzer("none")  # how texts become words
        self._counter = DocumentCounter(self._rules)

    def put(self, documents: Mapping[int, Document], gone: Sequence[int] = ()) -> None:
        """Index documents, given by place, after the words ``gone`` from some places are forgotten."""
        if not documents and not gone:
            return
        language, rules, written = _standing(self._connection)
        _check_rules(self._connection, self._words_of(language), rules)
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
        return _standing(self._connection)[0]

    def are_ours(self) -> bool:
        """Whether they were made by the rules that this process has."""
        language, rules = self._run("SELECT language, word_rules FROM state").fetchone()
        return bool(rules) and rules == self._words_of(language).fingerprint()

    def _words_of(self, language: str) -> Analyzer:
        """The rules of a language, by which documents are counted from now on."""
        if self._rules.language != language:
            self._rules = Analyzer(language)
            self._counter = DocumentCounter(self._rules)
        return self._rules

    def _write(self, segment: Segment, gone: NDArray[np.uint32]) -> _Written:
        sizes = len(segment.counts), len(segment.places), len(gone)
        (number,) = self._run(
            "INSERT INTO word_segments (token, size, n_documents, n_gone, places, lengths, gone) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s) RETURNING number",
            [
                token := secrets.randbits(63),
                *sizes,
                packed(segment.places),
                packed(segment.lengths),
                packed(gone),
            ],
        ).fetchone()
        self._connection.copy_rows(
            "word_pages (segment, first, contents)",
            ((number, first, contents) for first, contents in pages_of(segment)),
            types=("int8", "int8", "bytea"),
        )
        return _Written(_Key(number, token), *sizes)

    def _tidy(self, written: list[_Written]) -> None:
        while n := _n_to_join(written):
            joined = self._join(written[-n:], is_all=n == len(written))
            written = [*written[:-n], joined]
        n_gone = sum(one.n_gone for one in written)
        if n_gone > max(_MANY_GONE, sum(one.n_documents for one in written) // 8):
            self._write_anew(written)

    def _join(self, written: Sequence[_Written], *, is_all: bool) -> _Written:
        """Put the last segments together; what they overwrote before them still is."""
        documents = _documents_of(self._connection, [one.key for one in written])
        segments = [self._whole(one.key, documents[one.key]) for one in written]
        gone = np.unique(np.concatenate([one.gone for one in documents.values()]))
        latest = _latest(list(documents.values()))
        joined = merged(segments, gone[latest[gone] < 0].astype(np.int64))
        self._remove([one.key for one in written])
        return self._write(joined, gone[:0] if is_all else gone)

    def _write_anew(self, written: Sequence[_Written]) -> None:
        """Every segment without the documents that are gone, one after the other."""
        documents = _documents_of(self._connection, [one.key for one in written])
        latest = _latest(list(documents.values()))
        for row, (key, about) in enumerate(documents.items()):
            segment = self._counting(key, about, latest, row)
            self._remove([key])
            self._write(segment, about.gone[:0])

    def _counting(self, key: _Key, about: Documents, latest: _Latest, row: int) -> Segment:
        """A segment without documents whose words are in a later one, or in none."""
        gone = about.places[latest[about.places] != row]
        return merged([self._whole(key, about)], gone.astype(np.int64))

    def _whole(self, key: _Key, about: Documents) -> Segment:
        rows = self._run(
            "SELECT contents FROM word_pages WHERE segment = %s ORDER BY first",
            [key.number],
            binary=True,
        )
        return with_words(about, [contents for (contents,) in rows])

    def _remove(self, keys: list[_Key]) -> None:
        numbers = [key.number for key in keys]
        self._run("DELETE FROM word_pages WHERE segment = ANY (%s)", [numbers])
        self._run("DELETE FROM word_segments WHERE number = ANY (%s)", [numbers])

    def check(self, n_documents: int, documents_at: Callable[[Places], list[Document]]) -> None:
        """Cut every document into words again; raises if the index has others."""
        language, _, written = _standing(self._connection)
        self._words_of(language)
        documents = _documents_of(self._connection, [one.key for one in written])
        latest = _latest(list(documents.values()))
        if (n := int(np.sum(latest >= 0))) != n_documents:
            raise self._damaged(f"it counts {n_documents} documents and has words of {n}")
        for row, (key, about) in enumerate(documents.items()):
            kept = self._counting(key, about, latest, row)
            places = np.sort(kept.places).astype(np.int64)
            parts = [
                self._counter.segment(some, documents_at(np.array(some)))
                for some in in_batches(places.tolist(), _AT_ONCE)
            ]
            if parts and not _same(kept, merged(parts)):
                raise self._damaged("the words of some documents are not those of their texts")

    def _damaged(self, how: str) -> CollectionError:
        return CollectionError(f"{self._connection.shown} is damaged: {how}")


def _standing(connection: PostgresConnection) -> tuple[str, str, list[_Written]]:
    """The language, the rules and the segments, asked for at once: every question takes time."""
    rows = connection.run(
        "SELECT language, word_rules, number, word_segments.token, size, word_segments.n_documents, "
        "n_gone FROM state LEFT JOIN word_segments ON TRUE ORDER BY number"
    ).fetchall()
    written = [_Written(_Key(*row[2:4]), *row[4:]) for row in rows if row[2] is not None]
    return rows[0][0], rows[0][1], written


def _check_rules(connection: PostgresConnection, words: Analyzer, rules: str) -> None:
    if rules != words.fingerprint():
        raise CollectionError(
            f"{connection.shown}: its words were made by other rules ({rules}; here "
            f"{words.fingerprint()}): open the collection again, and with the same versions of "
            "boltzhash and PyStemmer everywhere"
        )


def _documents_of(connection: PostgresConnection, keys: Sequence[_Key]) -> dict[_Key, Documents]:
    rows = connection.run(
        "SELECT number, token, places, lengths, gone FROM word_segments WHERE number = ANY (%s) "
        "ORDER BY number",
        [[key.number for key in keys]],
        binary=True,
    )
    return {
        _Key(number, token): Documents(*map(unpacked, arrays)) for number, token, *arrays in rows
    }


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

    >>> small = _Written(_Key(1, 0), 40, 1, 0)
    >>> _n_to_join([_Written(_Key(0, 0), 32**4, 1, 0), *[small] * 32])
    32
    >>> _n_to_join([small] * 31)
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
