"""The words of a collection, and how they follow it.

It is a copy, as the codes in memory are: SQLite is the truth. Most of it is mapped from the segments in
the folder ``words``; what was written since lies in memory, until it is enough for a segment. Segments
of like sizes become one, so a document is written a few times as the collection grows, and a change
costs as much as it changes. What is damaged, missing, of another language or too old is made again from
the documents.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from boltzhash.collection.sqlite.database import Database, StateRow
from boltzhash.collection.sqlite.reads import documents_after, documents_at
from boltzhash.collection.sqlite.word_files import (
    Contents,
    n_documents_of,
    read_contents,
    read_segment,
    remove_segments,
    write_contents,
    write_segment,
)
from boltzhash.collection.store import Mask, Places, Version
from boltzhash.corpus import Document
from boltzhash.search.counted import DocumentCounter
from boltzhash.search.segments import DamagedSegmentError, Segment, merged
from boltzhash.text.analyzer import Analyzer, analyzer_of
from boltzhash.threads import in_batches

_MANY = 1024  # documents in memory before they go into a file
_AT_ONCE = 8192  # documents that are counted at a time
_ALIKE = 8  # segments that become one
_LARGEST = _ALIKE**6  # documents of a segment that is left as it is

_log = logging.getLogger("boltzhash")

Added = Sequence[tuple[int, Document]]


class WordsAheadError(Exception):
    """The files are of a later generation than the transaction: it has to be begun again."""


@dataclass(eq=False)
class SegmentFile:
    """A segment in memory, in a file, or both."""

    n_documents: int
    name: str | None = None  # of its file
    segment: Segment | None = None  # if it is open


class WordSegments(NamedTuple):
    """The segments of all documents up to ``last_place`` in a generation; they never change."""

    rules: str = ""  # how texts became words
    version: Version = Version(-1, 0)
    last_place: int = 0
    segments: tuple[SegmentFile, ...] = ()


class _Counting(threading.Thread):
    """Counts documents while the next are written: much of it needs no lock of Python's."""

    def __init__(self, counter: DocumentCounter, documents: Added, version: Version) -> None:
        super().__init__(name="words of a collection")
        self.documents, self.version = documents, version
        self._counter = counter
        self._segment: Segment | BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            places, documents = zip(*self.documents, strict=True)
            self._segment = self._counter.segment(places, documents)
        except BaseException as error:  # raised where the result is wanted
            self._segment = error

    def result(self) -> Segment:
        self.join()
        if not isinstance(self._segment, Segment):
            assert self._segment is not None
            raise self._segment
        return self._segment


class WordFollower:
    """Keeps the segments of the collection in ``folder`` up to date.

    One thread at a time calls it. What it gives out never changes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._latest = WordSegments()
        self._on_disk: Contents | None = None  # what segments.map said when it was last read
        self._damaged: Contents | None = None  # a segments.map that must not be used again
        self._restored: Contents | None = None  # one that seemed to be of a later generation
        self._is_overtaken = False  # another process has replaced segments.map
        self._counting: _Counting | None = None
        self._counter = "", DocumentCounter(analyzer_of("none"))  # by which rules

    def base(self, database: Database, row: StateRow) -> WordSegments:
        """The segments that the generation ``row`` can begin with, all open.

        They stay readable whatever others write. Raises :class:`WordsAheadError` if the files are of a
        later generation.
        """
        self._collect()
        self._look(database, row)
        try:
            for one in self._latest.segments:
                self._opened(one)
        except DamagedSegmentError as error:
            self.forget(error)
        return self._latest

    def follow(
        self, base: WordSegments, database: Database, row: StateRow, words: Analyzer
    ) -> WordSegments:
        """The segments of the generation ``row``, made from ``base`` or the latest, all open.

        May raise :class:`boltzhash.search.segments.DamagedSegmentError`.
        """
        self._collect()
        rules = words.fingerprint()
        latest = self._latest
        fits = latest.rules == rules and database.is_past(row, latest.version)
        start = latest if fits else base
        if start.rules != rules:
            start = WordSegments(rules)
        if start.version != row.version or not fits:
            is_newest = fits or latest.version.generation <= row.generation
            start = self._taken(start, database, row, words, file=is_newest)
            if is_newest:
                self._latest = start
        for one in start.segments:
            self._opened(one)
        return start

    def catch_up(self, database: Database, row: StateRow, words: Analyzer, added: Added) -> None:
        """Called by writers, so that readers do not wait.

        ``added`` are the documents of the last transaction, if all it did was to add them.
        """
        # Whoever searches finds damage too; another process that writes does the same as this one.
        with contextlib.suppress(DamagedSegmentError, WordsAheadError):
            self._collect()
            rules = words.fingerprint()
            if self._is_overtaken or not database.is_past(row, self._latest.version):
                self._look(database, row)
            if self._latest.rules != rules:
                self._latest = WordSegments(rules)
            latest = self._latest
            is_next = (
                bool(added)
                and added[0][0] == latest.last_place + 1
                and row.generation == latest.version.generation + 1
            )
            if is_next and len(added) >= _MANY:
                self._counting = _Counting(self._counter_of(words), added, row.version)
            elif _n_pending(latest, database) >= _MANY:
                self._look(database, row)  # another process may have done it
                self.follow(self._latest, database, row, words)

    def forget_all_but(self, n_documents: int, there: Places) -> None:
        """If most documents of all segments are gone, make those anew of which that is true."""
        with contextlib.suppress(DamagedSegmentError):  # whoever searches finds it too
            self._collect()
            latest = self._latest
            if sum(one.n_documents for one in latest.segments) <= max(2 * n_documents, _AT_ONCE):
                return
            is_there = np.zeros(
                1 + max(latest.last_place, int(there.max(initial=0))), dtype=np.bool_
            )
            is_there[there] = True
            kept = [self._without_gone(one, is_there) for one in latest.segments]
            whole = tuple(one for one in kept if one.n_documents)
            self._latest = self._filed(latest._replace(segments=whole))

    def forget(self, error: DamagedSegmentError) -> None:
        """Do not believe the files again, or what came from them."""
        _log.warning("%s: made again from the collection", error)
        self._damaged, self._latest = self._on_disk, WordSegments()

    def close(self) -> None:
        """File what is being counted."""
        with contextlib.suppress(DamagedSegmentError):  # whoever searches finds it too
            self._collect()

    # Which segments there are

    def _look(self, database: Database, row: StateRow) -> None:
        """Begin with the files if they go further than what is in memory."""
        latest = self._latest
        if latest.version == row.version and not self._is_overtaken:
            return
        is_past = database.is_past(row, latest.version)
        found = read_contents(self._folder)
        if found is not None and found != self._damaged and (found != self._on_disk or not is_past):
            further = found.version.generation > latest.version.generation
            if database.is_past(row, found.version):
                if further or not is_past:
                    self._begin_with(found)
                    is_past = True
            elif found.version.generation > row.generation and found != self._restored:
                self._restored = (
                    found  # if it is not of a later transaction, the database was put back
                )
                raise WordsAheadError
        self._on_disk, self._is_overtaken = found, False
        if not is_past:
            self._latest = WordSegments()

    def _begin_with(self, found: Contents) -> None:
        open_ones = {one.name: one for one in self._latest.segments}
        segments = tuple(
            open_ones.get(name) or SegmentFile(n_documents_of(name), name) for name in found.names
        )
        self._latest = WordSegments(found.rules, found.version, found.last_place, segments)

    def _collect(self) -> None:
        """Take in what was counted meanwhile."""
        counting, self._counting = self._counting, None
        if counting is not None:
            one = SegmentFile(len(counting.documents), segment=counting.result())
            self._latest = self._settled(
                self._latest._replace(
                    version=counting.version,
                    last_place=counting.documents[-1][0],
                    segments=(*self._latest.segments, one),
                ),
                file=True,
            )

    # Taking in

    def _taken(
        self, base: WordSegments, database: Database, row: StateRow, words: Analyzer, *, file: bool
    ) -> WordSegments:
        """With what was written since; a generation that is not the newest is not filed."""
        counter, segments = self._counter_of(words), list(base.segments)
        for batch in in_batches(_changed(base, database), _AT_ONCE):
            segments.append(_counted(counter, batch))
        found = base._replace(version=row.version, segments=tuple(segments))
        for batch in in_batches(documents_after(database, base.last_place), _AT_ONCE):
            one = _counted(counter, batch)
            found = found._replace(last_place=batch[-1][0], segments=(*found.segments, one))
            found = self._settled(found, file=file)
        return self._settled(found, file=file)

    def _counter_of(self, words: Analyzer) -> DocumentCounter:
        if self._counter[0] != words.fingerprint():
            self._counter = words.fingerprint(), DocumentCounter(words)
        return self._counter[1]

    # Keeping

    def _settled(self, words: WordSegments, *, file: bool) -> WordSegments:
        """With one segment for those of like sizes, and files for what is enough for one."""
        segments = list(words.segments)
        while (first := first_alike([one.n_documents for one in segments])) is not None:
            one = merged([self._opened(one) for one in segments[first:]])
            segments[first:] = [SegmentFile(len(one.places), segment=one)]
        words = words._replace(segments=tuple(segments))
        if file and sum(one.n_documents for one in segments if one.name is None) >= _MANY:
            return self._filed(words)
        return words

    def _filed(self, words: WordSegments) -> WordSegments:
        """If that is not possible, what is in memory stays there."""
        before = read_contents(self._folder)
        if before != self._on_disk:
            self._is_overtaken = True  # the next time we begin with what is there now
            return words
        segments = []
        for one in words.segments:
            if one.name is None:
                name = write_segment(self._folder, words.rules, self._opened(one))
                if name is None:
                    return words
                is_large = one.n_documents > _AT_ONCE  # to be mapped when it is needed
                one = SegmentFile(one.n_documents, name, None if is_large else one.segment)
            segments.append(one)
        names = tuple(one.name for one in segments if one.name is not None)
        contents = Contents(words.rules, words.version, words.last_place, names)
        if write_contents(self._folder, contents):
            superseded = before.names if before is not None else ()
            gone = [name for name in superseded if name not in names]
            remove_segments(self._folder, gone, contents)
            self._on_disk = contents
        return words._replace(segments=tuple(segments))

    def _without_gone(self, one: SegmentFile, is_there: Mask) -> SegmentFile:
        segment = self._opened(one)
        alive = is_there[segment.places]
        if 2 * np.count_nonzero(alive) >= len(alive):
            return one
        left = merged([segment], segment.places[~alive].astype(np.int64))
        return SegmentFile(len(left.places), segment=left)

    def _opened(self, one: SegmentFile) -> Segment:
        if one.segment is None:
            assert one.name is not None  # it is in memory or in a file
            one.segment = read_segment(self._folder, one.name)
        if one.segment is None:
            raise DamagedSegmentError(f"{self._folder}: {one.name} is not there, or not whole")
        return one.segment


def _n_pending(words: WordSegments, database: Database) -> int:
    """How many documents were written since, at most."""
    ((last,),) = database.rows("SELECT max(place) FROM documents")
    ((n_changed,),) = database.rows(
        "SELECT count(DISTINCT place) FROM changes WHERE generation > ? AND place <= ?",
        (words.version.generation, words.last_place),
    )
    return max((last or 0) - words.last_place, 0) + int(n_changed)


def _changed(words: WordSegments, database: Database) -> Iterator[tuple[int, Document]]:
    """Documents that were overwritten since."""
    places = database.rows(
        "SELECT DISTINCT changes.place FROM changes JOIN documents USING (place) "
        "WHERE generation > ? AND changes.place <= ? ORDER BY changes.place",
        (words.version.generation, words.last_place),
    )
    for some in in_batches((place for (place,) in places), _AT_ONCE):
        yield from zip(some, documents_at(database, np.array(some)), strict=True)


def _counted(counter: DocumentCounter, documents: Added) -> SegmentFile:
    places, texts = zip(*documents, strict=True)
    return SegmentFile(len(places), segment=counter.segment(places, texts))


def first_alike(sizes: Sequence[int]) -> int | None:
    """From where on segments should become one: if eight are alike, and none after the first is larger.

    >>> first_alike([9000] + [1024] * 8), first_alike([9000] + [1024] * 7)
    (1, None)
    """
    limit = _ALIKE
    while limit <= _LARGEST:
        first = len(sizes)
        while first > 0 and sizes[first - 1] < limit:
            first -= 1
        if sum(_ALIKE * size >= limit for size in sizes[first:]) >= _ALIKE:
            return first
        limit *= _ALIKE
    return None
