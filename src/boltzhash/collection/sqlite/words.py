"""The words of one generation, ready to be searched, and how they follow the collection.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from boltzhash.collection.sqlite.database import Database, State
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
from boltzhash.collection.store import Places
from boltzhash.corpus import Document
from boltzhash.search.counted import DocumentCounter
from boltzhash.search.inverted import WordIndex
from boltzhash.search.segments import DamagedSegmentError, Segment, merged
from boltzhash.text.words import Words, words_of
from boltzhash.threads import in_batches

_MANY = 1024  # documents in memory before they go into a file
_AT_ONCE = 8192  # documents that are counted at a time
_ALIKE = 8  # segments that become one
_LARGEST = _ALIKE**6  # documents of a segment that is left as it is
_TRIES = 3

_log = logging.getLogger("boltzhash")

T = TypeVar("T")
Added = Sequence[tuple[int, Document]]
Mask = NDArray[np.bool_]


class WordsAheadError(Exception):
    """The files are of a later generation than the transaction: it has to be begun again."""


@dataclass
class _Kept:
    """A segment in memory, in a file, or both."""

    n_documents: int
    name: str | None = None  # of its file
    segment: Segment | None = None  # if it is open


class _Counting(threading.Thread):
    """Counts documents while the next are written: much of it needs no lock of Python's."""

    def __init__(self, counter: DocumentCounter, documents: Added, generation: int) -> None:
        super().__init__(name="words of a collection")
        self.documents, self.generation = documents, generation
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


class WordSnapshot:
    """The inverted index of the collection in ``folder``.

    :meth:`ask` brings it to a generation. :meth:`catch_up` is for who has written, so that who searches
    finds the work done.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rules = ""  # how texts became words
        self._counter = DocumentCounter(words_of("none"))
        self._generation, self._last_place = -1, 0  # up to where the segments go
        self._kept: list[_Kept] = []
        self._on_disk: Contents | None = None  # what segments.map said when it was last read
        self._is_overtaken = False  # another process has replaced segments.map
        self._damaged: Contents | None = None  # a segments.map that must not be used again
        self._n_ahead = 0
        self._counting: _Counting | None = None
        self._index: WordIndex | None = None
        self._index_at = ("", -1)

    def ask(
        self,
        database: Database,
        state: State,
        words: Words,
        all_places: Callable[[], Places],
        question: Callable[[WordIndex], T],
    ) -> T:
        """What ``question`` says of the index of ``state``; ``all_places`` are those of all documents.

        May raise :class:`WordsAheadError`.
        """

        def answer() -> T:
            at = words.fingerprint(), state.generation
            if self._index is None or self._index_at != at:
                self._index = self._followed(database, state, words, all_places())
                self._index_at = at
            return question(self._index)

        return self._again_if_damaged(answer)

    def catch_up(self, database: Database, state: State, words: Words, added: Added) -> None:
        """Put what was written into a file, if it is enough for one.

        ``added`` are the documents of the last transaction, if all it did was to add them.
        """
        with contextlib.suppress(WordsAheadError):  # then another process writes, and does the same
            self._again_if_damaged(lambda: self._caught_up(database, state, words, added))

    def forget_all_but(self, n_documents: int, all_places: Callable[[], Places]) -> None:
        """If most documents of all segments are gone, make those anew of which that is true."""
        with contextlib.suppress(DamagedSegmentError):  # whoever searches finds it too
            self._collect()
            if sum(kept.n_documents for kept in self._kept) <= max(2 * n_documents, _AT_ONCE):
                return
            there = all_places()
            is_there = np.zeros(
                1 + max(self._last_place, int(there.max(initial=0))), dtype=np.bool_
            )
            is_there[there] = True
            kept = [self._without_gone(one, is_there) for one in self._kept]
            self._kept = [one for one in kept if one.n_documents]
            self._file()

    def _without_gone(self, kept: _Kept, is_there: Mask) -> _Kept:
        segment = self._opened(kept)
        alive = is_there[segment.places]
        if 2 * np.count_nonzero(alive) >= len(alive):
            return kept
        one = merged([segment], segment.places[~alive].astype(np.int64))
        return _Kept(len(one.places), segment=one)

    def _start_over(self, error: DamagedSegmentError) -> None:
        """Forget everything, and do not believe the files again."""
        _log.warning("%s: made again from the collection", error)
        self._damaged = self._on_disk
        self._start(None)

    def _again_if_damaged(self, work: Callable[[], T]) -> T:
        for _ in range(_TRIES):
            try:
                return work()
            except DamagedSegmentError as error:
                self._index = None
                if read_contents(self._folder, self._rules) != self._on_disk:
                    self._is_overtaken = True  # and what is gone was replaced
                else:
                    self._start_over(error)
        return work()

    def _followed(self, database: Database, state: State, words: Words, there: Places) -> WordIndex:
        self._begin(state, words)
        if self._n_pending(database) >= _MANY:
            self._begin(state, words, look=True)  # another process may have done it
        self._take_all(database, state)
        return WordIndex([self._opened(kept) for kept in self._kept], there)

    def _caught_up(self, database: Database, state: State, words: Words, added: Added) -> None:
        self._begin(state, words)
        is_next = (self._last_place + 1, self._generation + 1) == (
            added[0][0] if added else 0,
            state.generation,
        )
        if is_next and len(added) >= _MANY:
            self._counting = _Counting(self._counter, added, state.generation)
        elif self._n_pending(database) >= _MANY:
            self._begin(state, words, look=True)
            self._take_all(database, state)

    def close(self) -> None:
        """File what is being counted."""
        with contextlib.suppress(DamagedSegmentError):  # whoever searches finds it too
            self._collect()

    def _collect(self) -> None:
        """Take in what was counted meanwhile."""
        counting, self._counting = self._counting, None
        if counting is not None:
            self._kept.append(_Kept(len(counting.documents), segment=counting.result()))
            self._generation = counting.generation
            self._last_place = counting.documents[-1][0]
            self._settle()

    # Beginning

    def _begin(self, state: State, words: Words, *, look: bool = False) -> None:
        """With what we have, if that can be brought up to date; or with the files; or with nothing."""
        self._collect()
        rules = words.fingerprint()
        fits = self._rules == rules and self._generation >= state.changes_since
        if fits and not look and not self._is_overtaken:
            return
        found = read_contents(self._folder, rules)
        if fits and found == self._on_disk:
            return
        if found is not None and found.generation > state.generation and found != self._damaged:
            self._wait_for(found)
        self._on_disk, self._is_overtaken = found, False
        if self._rules != rules:
            self._rules, self._counter = rules, DocumentCounter(words)
        if (
            found is not None
            and found != self._damaged
            and state.changes_since <= found.generation <= state.generation
        ):
            self._start(found)
        elif not fits:
            self._start(None)

    def _wait_for(self, found: Contents) -> None:
        """The next transaction should be as far; if it never is, the database was put back."""
        self._n_ahead += 1
        if self._n_ahead <= _TRIES:
            raise WordsAheadError
        self._n_ahead, self._damaged = 0, found

    def _start(self, contents: Contents | None) -> None:
        if contents is None:
            self._generation, self._last_place, self._kept = -1, 0, []
            return
        open_ones = {kept.name: kept for kept in self._kept}
        self._generation, self._last_place = contents.generation, contents.last_place
        self._kept = [
            open_ones.get(name) or _Kept(n_documents_of(name), name) for name in contents.names
        ]

    # Taking in

    def _n_pending(self, database: Database) -> int:
        """How many documents were written since, at most."""
        (last,) = database.connection.execute("SELECT max(place) FROM documents").fetchone()
        (n_changed,) = database.connection.execute(
            "SELECT count(DISTINCT place) FROM changes WHERE generation > ? AND place <= ?",
            (self._generation, self._last_place),
        ).fetchone()
        return max((last or 0) - self._last_place, 0) + int(n_changed)

    def _take_all(self, database: Database, state: State) -> None:
        for batch in in_batches(self._changed(database), _AT_ONCE):
            self._take(batch)
        self._generation = state.generation
        for batch in in_batches(documents_after(database, self._last_place), _AT_ONCE):
            self._take(batch)
            self._last_place = batch[-1][0]
            self._settle()
        self._settle()

    def _changed(self, database: Database) -> Iterator[tuple[int, Document]]:
        """Documents that were overwritten since."""
        places = database.connection.execute(
            "SELECT DISTINCT changes.place FROM changes JOIN documents USING (place) "
            "WHERE generation > ? AND changes.place <= ? ORDER BY changes.place",
            (self._generation, self._last_place),
        ).fetchall()
        for some in in_batches((place for (place,) in places), _AT_ONCE):
            yield from zip(some, documents_at(database, np.array(some)), strict=True)

    def _take(self, documents: Added) -> None:
        places, texts = zip(*documents, strict=True)
        self._kept.append(_Kept(len(places), segment=self._counter.segment(places, texts)))

    # Keeping

    def _settle(self) -> None:
        """Make one of segments of like sizes, and file what is enough for a file."""
        while (first := first_alike([kept.n_documents for kept in self._kept])) is not None:
            one = merged([self._opened(kept) for kept in self._kept[first:]])
            self._kept[first:] = [_Kept(len(one.places), segment=one)]
        if sum(kept.n_documents for kept in self._kept if kept.name is None) >= _MANY:
            self._file()

    def _file(self) -> None:
        """If that is not possible, what is in memory stays there."""
        if read_contents(self._folder, self._rules) != self._on_disk:
            self._is_overtaken = True  # the next time we begin with what is there now
            return
        for kept in self._kept:
            if kept.name is None:
                kept.name = write_segment(self._folder, self._rules, self._opened(kept))
            if kept.name is None:
                return
            if kept.n_documents > _AT_ONCE:
                kept.segment = None  # to be mapped when it is needed
        names = tuple(kept.name for kept in self._kept if kept.name is not None)
        contents = Contents(self._rules, self._generation, self._last_place, names)
        if write_contents(self._folder, contents):
            before = self._on_disk.names if self._on_disk is not None else ()
            remove_segments(self._folder, [name for name in before if name not in names], contents)
            self._on_disk = contents

    def _opened(self, kept: _Kept) -> Segment:
        if kept.segment is None:
            assert kept.name is not None  # it is in memory or in a file
            kept.segment = read_segment(self._folder, self._rules, kept.name)
        if kept.segment is None:
            raise DamagedSegmentError(f"{self._folder}: {kept.name} is not there, or not whole")
        return kept.segment


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
