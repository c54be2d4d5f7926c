"""The codes of one generation, ready to be scanned, and how they follow the collection.

Most codes are mapped from codes.map. What was written since is in memory: codes of new and of
overwritten documents, and which mapped rows no longer count. When that grows, a new file absorbs it.

Passages are kept in the same way as documents, with their numbers for places.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.collection.sqlite.codes_file import (
    CODES_FILE,
    PASSAGES_FILE,
    CodesFile,
    no_rows,
    read_codes_file,
    write_codes_file,
)
from boltzhash.collection.sqlite.database import State
from boltzhash.collection.sqlite.mapped_file import remove_mapped
from boltzhash.collection.sqlite.schema import PASSAGE_BITS, is_whole_code
from boltzhash.collection.store import Places, Rows
from boltzhash.errors import CollectionError
from boltzhash.search import scan
from boltzhash.search.hits import Hits
from boltzhash.search.multi_index import RadiusSearch
from boltzhash.search.order import nearest_first
from boltzhash.threads import available_cpus

Mask = NDArray[np.bool_]

_FETCH = 10_000
_MASKS = 4  # that are kept by place as well
_MANY = 10_000  # codes in memory before they go into a file
_SHARE = 8  # or an eighth of all, if that is more: while many are added the file is seldom written
_AT_START = 10 * _MANY  # a process that has just begun writes it sooner


class Kind(NamedTuple):
    """What the codes of a snapshot are of."""

    name: str
    table: str
    key: str  # its column with the place, or what stands for it
    columns: str  # the others
    file: str
    bits: int  # what stands for a place is the document's, and in so many bits a number in the document
    count: Callable[[State], int]


DOCUMENTS = Kind(
    *("documents", "codes", "place", "code, known, checksum", CODES_FILE, 0),
    lambda state: state.n_documents,
)
PASSAGES = Kind(
    *("passages", "passages", "passage", "code, known, checksum, start, stop", PASSAGES_FILE),
    *(PASSAGE_BITS, lambda state: state.n_passages),
)


class Snapshot:
    """All codes of the collection in ``folder``; :meth:`follow` brings them up to a generation."""

    def __init__(self, folder: Path, kind: Kind = DOCUMENTS) -> None:
        self._folder = folder
        self._kind = kind
        self._file = folder / kind.file
        self.model = ""
        self.generation = -1
        self.last_place = 0
        self._mapped = no_rows(1)
        self._near_mapped = RadiusSearch(self._mapped.codes)
        self._stale: Mask = np.empty(0, dtype=np.bool_)  # mapped rows deleted or overwritten
        self._n_stale = 0
        self._fresh: dict[int, tuple[bytes, bool]] = {}
        self._fresh_rows: Rows | None = None
        self._masks: list[tuple[Mask, Mask]] = []  # the last ones, by place and by row

    def __len__(self) -> int:
        return len(self._mapped.places) - self._n_stale + len(self._fresh)

    def follow(self, connection: sqlite3.Connection, state: State) -> None:
        """Take in what was written up to ``state``, in whose transaction the connection is."""
        if (self.model, self.generation) == (state.model, state.generation):
            return
        self._masks = []
        most = max(_MANY, len(self) // _SHARE)
        if self.model != state.model or self.generation < state.changes_since:
            most = _AT_START  # for those that open it next
            if not self._begin_with_file(state):
                self._begin_with_all(connection, state)
                most = -1 if self._kind.count(state) > _MANY else _MANY
        self._take_changes(connection, state)
        self._take_new(connection, state)
        self.generation = state.generation
        if len(self) != self._kind.count(state):
            raise CollectionError(
                f"{self._folder} is damaged: it counts {self._kind.count(state)} {self._kind.name} and "
                f"has {len(self)} codes"
            )
        if self._n_changed > most:
            self.write()

    def close(self) -> None:
        """Leave little for who opens the collection next."""
        if self._n_changed > _MANY:
            self.write()

    @property
    def _n_changed(self) -> int:
        """What is not as in the file."""
        return len(self._fresh) + self._n_stale

    def write(self) -> None:
        """Put all codes into a new codes.map and map that."""
        contents = CodesFile(self.model, self.generation, self.last_place, self.rows())
        write_codes_file(self._file, contents)
        written = read_codes_file(self._file, self.model, contents.rows.codes.shape[1])
        if written is not None and written[:3] == contents[:3]:
            contents = written  # else keep them in memory
        self._set(contents)

    def rows(self) -> Rows:
        """Everything that counts, in the order of places."""
        counts, fresh = ~self._stale, self._in_memory()
        places = np.concatenate([self._mapped.places[counts], fresh.places])
        codes = np.concatenate([self._mapped.codes[counts], fresh.codes])
        known = np.concatenate([self._mapped.known[counts], fresh.known])
        if self._are_in_order(fresh.places):
            return Rows(places, codes, known)
        order = np.argsort(places)
        return Rows(places[order], codes[order], known[order])

    def places(self) -> Places:
        """The places of all documents, in order."""
        mapped, fresh = self._mapped.places[~self._stale], self._in_memory().places
        places = np.concatenate([mapped, fresh])
        if not self._are_in_order(fresh):
            places.sort()
        return places

    def _are_in_order(self, fresh: Places) -> bool:
        """Whether what is in memory comes after all that is mapped: nothing was overwritten."""
        mapped = self._mapped.places
        return not len(mapped) or not len(fresh) or bool(mapped[-1] < fresh[0])

    def codes_at(self, places: Places) -> Codes:
        """The codes of documents that are there, by their places."""
        rows = self._rows_of(places)
        if len(self._mapped.places):
            codes = np.array(self._mapped.codes[rows])
        else:
            codes = np.empty((len(places), self._mapped.codes.shape[1]), dtype=np.uint8)
        for number, place in enumerate(places.tolist() if self._fresh else ()):
            if place in self._fresh:
                codes[number] = np.frombuffer(self._fresh[place][0], np.uint8)
        return codes

    def _rows_of(self, places: Places) -> Places:
        """Where mapped places stand; anything for others."""
        mapped = self._mapped.places
        if len(mapped) and mapped[-1] - mapped[0] == len(mapped) - 1:  # nothing was ever deleted
            return np.asarray(np.clip(places - mapped[0], 0, len(mapped) - 1))
        rows = np.searchsorted(mapped, places)
        rows[rows == len(mapped)] = 0
        return rows

    def top_k(self, query: Codes, k: int, allowed: Mask | None) -> Hits:
        """The k nearest; ``allowed`` says for each place of a document whether it counts."""
        found = []
        for rows, mask in self.parts(allowed):
            near, distances = scan.top_k(rows.codes, query, k, mask)
            found.append(Hits(rows.places[near], distances))
        return found[0] if len(found) == 1 else nearest_first(found, k)  # one is in order

    def within(self, query: Codes, radius: int, allowed: Mask | None) -> Hits:
        """All that are at most ``radius`` away."""
        found, radius = [], min(radius, 8 * len(query))
        for rows, mask in self.parts(allowed):
            if rows is self._mapped:
                one = np.ascontiguousarray(query[None])
                (hits,) = self._near_mapped.within(one, radius, mask, available_cpus())
            else:
                hits = scan.within(rows.codes, query, radius, mask)
            found.append(Hits(rows.places[hits[0]], hits[1]))
        return nearest_first(found)

    def parts(self, allowed: Mask | None) -> Iterable[tuple[Rows, Mask | None]]:
        """What is mapped, and what is in memory; each with a mask of what counts, if not all does."""
        rows = None if allowed is None else self.by_row(allowed)
        n_mapped = len(self._mapped.places)
        if n_mapped:
            counts = ~self._stale if self._n_stale else None
            yield self._mapped, counts if rows is None else rows[:n_mapped]
        if self._fresh:
            yield self._in_memory(), None if rows is None else rows[n_mapped:]

    # Masks are by place of documents for who asks. Places of deleted documents are not used again, so
    # what is kept of a filter is by row: the mapped codes, then those in memory.

    def live(self) -> Mask:
        """Of each row, whether it counts."""
        return np.concatenate([~self._stale, np.ones(len(self._fresh), dtype=np.bool_)])

    def by_row(self, allowed: Mask) -> Mask:
        """Of each row, whether it counts and its document is allowed."""
        for by_place, by_row in self._masks:
            if by_place is allowed:
                return by_row
        n_missing = (self.last_place >> self._kind.bits) + 1 - len(allowed)
        if n_missing > 0:  # it may end with the last document that was not deleted
            allowed = np.pad(allowed, (0, n_missing))
        mapped = allowed[self._mapped_documents()]
        fresh = allowed[self._in_memory().places >> self._kind.bits]
        if self._n_stale:
            mapped = mapped & ~self._stale
        return np.concatenate([mapped, fresh]) if len(fresh) else mapped

    def by_place(self, rows: Mask) -> Mask:
        """Of each place up to ``last_place``, whether its row is one of ``rows``; for documents."""
        for by_place, by_row in self._masks:
            if by_row is rows:
                return by_place
        allowed, n_mapped = np.zeros(self.last_place + 1, dtype=np.bool_), len(self._mapped.places)
        allowed[self._mapped_documents()] = rows[:n_mapped]
        allowed[self._in_memory().places] = rows[n_mapped:]
        self._masks = [*self._masks[-_MASKS + 1 :], (allowed, rows)]
        return allowed

    def _mapped_documents(self) -> Places | slice:
        """What to index by to have the places of mapped rows' documents.

        If nothing was ever deleted that is a range, which is as good and much faster.
        """
        mapped = self._mapped.places
        if self._kind.bits:
            return mapped >> self._kind.bits
        if len(mapped) and mapped[-1] - mapped[0] == len(mapped) - 1:
            return slice(int(mapped[0]), int(mapped[-1]) + 1)
        return mapped

    def _begin_with_file(self, state: State) -> bool:
        """With what codes.map has; False if that cannot be brought up to date."""
        file = read_codes_file(self._file, state.model, state.n_bits // 8)
        if file is None or file.generation < state.changes_since:
            return False
        if file.generation > state.generation:
            # From the future: the database was put back to an older one, and when it is as far
            # again, this file must not be mistaken for its own.
            remove_mapped(self._file)
            return False
        self._set(file)
        return True

    def _begin_with_all(self, connection: sqlite3.Connection, state: State) -> None:
        """With all codes that the database has, a few thousand at a time."""
        places, codes, known = array("q"), bytearray(), bytearray()
        _, table, key, columns, *_ = self._kind
        cursor = connection.execute(f"SELECT {key}, {columns} FROM {table} ORDER BY {key}")
        while batch := cursor.fetchmany(_FETCH):
            for row in batch:
                if not is_whole_code(*row, n_bits=state.n_bits):
                    raise self._damaged(row[0])
            places.extend(row[0] for row in batch)
            codes += b"".join([row[1] for row in batch])
            known += bytes([row[2] for row in batch])
        rows = Rows(
            np.array(places, dtype=np.int64),
            np.frombuffer(codes, np.uint8).reshape(len(places), state.n_bits // 8),
            np.frombuffer(known, np.bool_),
        )
        last_place = places[-1] if places else 0
        self._set(CodesFile(state.model, state.generation, last_place, rows))

    def _set(self, file: CodesFile) -> None:
        self.model, self.generation, self.last_place, self._mapped = file
        self._near_mapped = RadiusSearch(np.ascontiguousarray(self._mapped.codes))
        self._stale, self._n_stale = np.zeros(len(file.rows.places), dtype=np.bool_), 0
        self._fresh, self._fresh_rows = {}, None

    def _take_changes(self, connection: sqlite3.Connection, state: State) -> None:
        _, table, key, columns, _, bits, _ = self._kind
        changed = connection.execute(
            f"SELECT DISTINCT changes.place, {table}.{key}, {columns} FROM changes LEFT JOIN {table} "
            f"ON {table}.{key} BETWEEN changes.place << {bits} AND (changes.place + 1 << {bits}) - 1 "
            "WHERE generation > ? AND changes.place <= ?",
            (self.generation, self.last_place >> bits),
        )
        dropped: set[int] = set()
        while batch := changed.fetchmany(_FETCH):
            documents = {row[0] for row in batch} - dropped  # one may have rows in several batches
            self._drop(sorted(documents))
            dropped |= documents
            for _, *row in batch:
                if row[0] is not None:
                    self._put(row, state)

    def _take_new(self, connection: sqlite3.Connection, state: State) -> None:
        _, table, key, columns, *_ = self._kind
        cursor = connection.execute(
            f"SELECT {key}, {columns} FROM {table} WHERE {key} > ? ORDER BY {key}",
            (self.last_place,),
        )
        while batch := cursor.fetchmany(_FETCH):
            for row in batch:
                self._put(row, state)
            self.last_place = batch[-1][0]

    def _put(self, row: Sequence[Any], state: State) -> None:
        place, code, known, *_ = row
        if not is_whole_code(*row, n_bits=state.n_bits):
            raise self._damaged(place)
        self._fresh[place] = (code, bool(known))
        self._fresh_rows = None

    def _drop(self, documents: list[int]) -> None:
        """All codes of documents; those of one are there without gaps."""
        bits = self._kind.bits
        for document in documents if self._fresh else ():
            place, end = document << bits, document + 1 << bits
            while place < end and self._fresh.pop(place, None) is not None:
                place += 1
        self._fresh_rows = None
        if len(self._mapped.places):
            rows = self._mapped_rows_of(np.array(documents, dtype=np.int64))
            self._n_stale += len(rows) - int(np.count_nonzero(self._stale[rows]))
            self._stale[rows] = True

    def _mapped_rows_of(self, documents: Places) -> Places:
        mapped, bits = self._mapped.places, self._kind.bits
        if not bits:
            rows = self._rows_of(documents)
            return np.asarray(rows[mapped[rows] == documents])
        starts, stops = np.searchsorted(mapped, [documents << bits, documents + 1 << bits])
        lengths = stops - starts
        before = np.cumsum(lengths) - lengths
        return np.asarray(np.repeat(starts - before, lengths) + np.arange(lengths.sum()))

    def _in_memory(self) -> Rows:
        if self._fresh_rows is None:
            places = np.array(sorted(self._fresh), dtype=np.int64)
            codes = b"".join(self._fresh[place][0] for place in places.tolist())
            known = [self._fresh[place][1] for place in places.tolist()]
            self._fresh_rows = Rows(
                places,
                np.frombuffer(codes, np.uint8).reshape(len(places), self._mapped.codes.shape[1]),
                np.array(known, dtype=np.bool_),
            )
        return self._fresh_rows

    def _damaged(self, place: int) -> CollectionError:
        number = place >> self._kind.bits
        return CollectionError(f"{self._folder} is damaged: the code of document number {number}")
