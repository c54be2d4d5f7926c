"""The words of one generation, ready to be searched, and how they follow the collection.

It is a copy, as the codes in memory are: SQLite is the truth. Most of it is mapped from words.map;
what was written since lies in memory, and when that grows, a new file takes it in. A file that is
damaged, cut short, of another language or too old is made again from the documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from boltzhash.collection.sqlite.database import Database, State
from boltzhash.collection.sqlite.mapped_file import read_mapped, write_mapped
from boltzhash.collection.sqlite.reads import documents_after, documents_at
from boltzhash.collection.store import Places
from boltzhash.corpus import Document
from boltzhash.search.inverted import Segment, WordIndex, merged, segment_of
from boltzhash.text.words import Words
from boltzhash.threads import in_batches

WORDS_FILE = "words.map"

_FORMAT = "boltzhash words map 1"
_AT_ONCE = 4096  # documents of a segment
_MANY = 1_000  # documents in memory before they go into a file
_MOST_SEGMENTS = 16


class WordSnapshot:
    """The inverted index of the collection in ``folder``; :meth:`follow` brings it to a generation."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rules = ""  # how texts became words
        self._generation = -1
        self._last_place = 0
        self._n_fresh = 0  # documents in memory
        self._segments: list[Segment] = []
        self.index = WordIndex([], np.empty(0, dtype=np.int64))

    def follow(
        self, database: Database, state: State, words: Words, all_places: Callable[[], Places]
    ) -> None:
        """Take in what was written up to ``state``; ``all_places`` are those of all documents."""
        if (self._rules, self._generation) == (words.fingerprint(), state.generation):
            return
        if self._rules != words.fingerprint() or self._generation < state.changes_since:
            self._begin(state, words)
        there = all_places()
        changed = [
            place
            for (place,) in database.connection.execute(
                "SELECT DISTINCT place FROM changes WHERE generation > ? AND place <= ?",
                (self._generation, self._last_place),
            )
        ]
        kept = np.intersect1d(np.array(changed, dtype=np.int64), there)
        self._take(zip(kept.tolist(), documents_at(database, kept), strict=True), words)
        self._take(documents_after(database, self._last_place), words)
        self._generation = state.generation
        self._last_place = int(there[-1]) if len(there) else self._last_place
        self.index = WordIndex(self._segments, there)
        if self._n_fresh > max(_MANY, len(there) // 8):
            self._write(there)
        elif len(self._segments) > _MOST_SEGMENTS:
            self._merge(there)

    def _begin(self, state: State, words: Words) -> None:
        """With what words.map has, if that can be brought up to date; else with nothing."""
        self._rules, self._generation, self._last_place = words.fingerprint(), -1, 0
        self._segments, self._n_fresh = [], 0
        found = read_mapped(self._folder / WORDS_FILE, self._header())
        if found is None:
            return
        header, arrays = found
        if state.changes_since <= header["generation"] <= state.generation:
            self._generation, self._last_place = header["generation"], header["last_place"]
            self._segments = [Segment(*arrays)]

    def _header(self) -> dict[str, str]:
        return {"format": _FORMAT, "rules": self._rules}

    def _take(self, documents: Iterable[tuple[int, Document]], words: Words) -> None:
        for some in in_batches(documents, _AT_ONCE):
            counted = {place: words.counts(document) for place, document in some}
            lengths = [words.length(counts) for counts in counted.values()]
            self._segments.append(segment_of(counted, lengths))
            self._n_fresh += len(some)

    def _merge(self, there: Places) -> None:
        self._segments = [merged(self._segments, self.index.latest)]
        self.index = WordIndex(self._segments, there)

    def _write(self, there: Places) -> None:
        """Put everything into a new words.map; if it cannot be written, it stays in memory."""
        self._merge(there)
        self._n_fresh = 0
        at = {"generation": self._generation, "last_place": self._last_place}
        write_mapped(self._folder / WORDS_FILE, {**self._header(), **at}, self._segments[0])
