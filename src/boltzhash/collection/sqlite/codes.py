"""The packed codes of one generation, which never change, ready to be scanned.

Most codes are mapped from codes.map; those of documents that were written since are in memory. A mask
says which mapped rows were deleted or overwritten. Passages are kept in the same way, with their
numbers for places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection.sqlite.codes_file import CODES_FILE, PASSAGES_FILE, no_rows
from boltzhash.collection.sqlite.database import StateRow
from boltzhash.collection.sqlite.schema import PASSAGE_BITS
from boltzhash.collection.store import Mask, Places, Rows, Version
from boltzhash.search import scan
from boltzhash.search.hits import Hits
from boltzhash.search.multi_index import RadiusSearch
from boltzhash.search.order import nearest_first
from boltzhash.threads import available_cpus

_MASKS = 4  # that are kept by row


class Kind(NamedTuple):
    """A table of codes: those of documents, or those of passages."""

    name: str
    table: str
    key: str  # its column with the place, or the number of a passage
    columns: str  # the others
    file: str
    bits: int  # of a key that number the passages of a document
    count: Callable[[StateRow], int]


DOCUMENTS = Kind(
    *("documents", "codes", "place", "code, known, checksum", CODES_FILE, 0),
    lambda row: row.n_documents,
)
PASSAGES = Kind(
    *("passages", "passages", "passage", "code, known, checksum, start, stop", PASSAGES_FILE),
    *(PASSAGE_BITS, lambda row: row.n_passages),
)


class PackedCodes:
    """The codes of ``model`` in one generation, whose last key is ``last``.

    ``stale`` are the mapped rows that do not count; None if all do. Those ``in_memory`` are in order.
    """

    def __init__(
        self,
        kind: Kind,
        model: str,
        version: Version,
        last: int,
        mapped: Rows,
        stale: Mask | None = None,
        in_memory: Rows | None = None,
        near: RadiusSearch | None = None,
    ) -> None:
        self.kind, self.model, self.version, self.last = kind, model, version, last
        self.mapped, self.stale = mapped, stale
        self.in_memory = no_rows(mapped.codes.shape[1]) if in_memory is None else in_memory
        self.near = RadiusSearch(np.ascontiguousarray(mapped.codes)) if near is None else near
        self.n_stale = 0 if stale is None else int(np.count_nonzero(stale))
        places = mapped.places  # without a gap if nothing was ever deleted
        self._has_no_gap = bool(len(places) and places[-1] - places[0] == len(places) - 1)
        self._masks: list[tuple[Mask, Mask]] = []  # the last ones, by document and by row

    def __len__(self) -> int:
        return len(self.mapped.places) - self.n_stale + len(self.in_memory.places)

    @property
    def n_changed(self) -> int:
        """The number of codes that differ from the file."""
        return len(self.in_memory.places) + self.n_stale

    def rows(self) -> Rows:
        """All codes, in the order of their keys."""
        mapped = self.mapped
        if self.stale is not None:
            counts = ~self.stale
            mapped = Rows(mapped.places[counts], mapped.codes[counts], mapped.known[counts])
        rows = joined(mapped, self.in_memory)
        return rows if self._are_in_order() else in_order(rows)

    def places(self) -> Places:
        """The keys of all rows, in order."""
        mapped = self.mapped.places if self.stale is None else self.mapped.places[~self.stale]
        places = np.concatenate([mapped, self.in_memory.places])
        if not self._are_in_order():
            places.sort()
        return places

    def codes_at(self, places: Places) -> Codes:
        """The codes of documents that exist."""
        fresh = self.in_memory
        if not len(self.mapped.places):
            return np.asarray(fresh.codes[np.searchsorted(fresh.places, places)])
        codes = np.array(self.mapped.codes[self._rows_of(places)])
        if len(fresh.places):
            rows = np.searchsorted(fresh.places, places)
            rows[rows == len(fresh.places)] = 0
            are_fresh = fresh.places[rows] == places
            codes[are_fresh] = fresh.codes[rows[are_fresh]]
        return codes

    def top_k(self, query: Codes, k: int, allowed: Mask | None) -> Hits:
        """The k nearest of the documents that are allowed."""
        found = []
        for rows, mask in self.parts(allowed):
            near, distances = scan.top_k(rows.codes, query, k, mask)
            found.append(Hits(rows.places[near], distances))
        return found[0] if len(found) == 1 else nearest_first(found, k)  # one is in order

    def within(self, query: Codes, radius: int, allowed: Mask | None) -> Hits:
        """All that are at most ``radius`` away."""
        found, radius = [], min(radius, 8 * len(query))
        for rows, mask in self.parts(allowed):
            if rows is self.mapped:
                one = np.ascontiguousarray(query[None])
                (hits,) = self.near.within(one, radius, mask, available_cpus())
            else:
                hits = scan.within(rows.codes, query, radius, mask)
            found.append(Hits(rows.places[hits[0]], hits[1]))
        return nearest_first(found)

    def parts(self, allowed: Mask | None) -> Iterable[tuple[Rows, Mask | None]]:
        """The mapped rows and those in memory, each with a mask, if not all count."""
        rows = None if allowed is None else self._by_row(allowed)
        n_mapped = len(self.mapped.places)
        if n_mapped:
            counts = None if self.stale is None else ~self.stale
            yield self.mapped, counts if rows is None else rows[:n_mapped]
        if len(self.in_memory.places):
            yield self.in_memory, None if rows is None else rows[n_mapped:]

    def mapped_rows_of(self, documents: Places) -> Places:
        """All mapped rows of some documents."""
        mapped, bits = self.mapped.places, self.kind.bits
        if not bits:
            rows = self._rows_of(documents)
            return np.asarray(rows[mapped[rows] == documents])
        starts, stops = np.searchsorted(mapped, [documents << bits, documents + 1 << bits])
        lengths = stops - starts
        before = np.cumsum(lengths) - lengths
        return np.asarray(np.repeat(starts - before, lengths) + np.arange(lengths.sum()))

    def _by_row(self, allowed: Mask) -> Mask:
        """Return a mask of the rows that count and whose documents are allowed."""
        for by_document, by_row in self._masks:
            if by_document is allowed:
                return by_row
        n_missing = (self.last >> self.kind.bits) + 1 - len(allowed)
        given = allowed
        if n_missing > 0:  # it may end with the last document that was not deleted
            allowed = np.pad(allowed, (0, n_missing))
        rows = allowed[self._mapped_documents()]
        if self.stale is not None:
            rows = rows & ~self.stale
        if len(self.in_memory.places):
            rows = np.concatenate([rows, allowed[self.in_memory.places >> self.kind.bits]])
        self._masks = [*self._masks[1 - _MASKS :], (given, rows)]
        return rows

    def _rows_of(self, places: Places) -> Places:
        """The mapped rows with these keys; any row for others."""
        mapped = self.mapped.places
        if self._has_no_gap:
            return np.asarray(np.clip(places - mapped[0], 0, len(mapped) - 1))
        rows = np.searchsorted(mapped, places)
        rows[rows == len(mapped)] = 0
        return rows

    def _mapped_documents(self) -> Places | slice:
        """The documents of mapped rows; as a range, which is much faster to index by, if it is one."""
        mapped = self.mapped.places
        if self.kind.bits:
            return mapped >> self.kind.bits
        if self._has_no_gap:
            return slice(int(mapped[0]), int(mapped[-1]) + 1)
        return mapped

    def _are_in_order(self) -> bool:
        """Whether all in memory come after all that are mapped: nothing was overwritten."""
        mapped, fresh = self.mapped.places, self.in_memory.places
        return not len(mapped) or not len(fresh) or bool(mapped[-1] < fresh[0])


def joined(*parts: Rows) -> Rows:
    return Rows(
        np.concatenate([part.places for part in parts]),
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.known for part in parts]),
    )


def in_order(rows: Rows) -> Rows:
    order = np.argsort(rows.places, kind="stable")
    return Rows(rows.places[order], rows.codes[order], rows.known[order])
