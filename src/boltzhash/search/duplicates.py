"""Groups of near-duplicates among many texts, exactly, without comparing all pairs.

Two sets of shingles with a Jaccard similarity of t or more share at least t·m shingles of either, m
being its size. So of any m − ⌈t·m⌉ + 1 shingles of one, the other has at least one; and if both choose
these by one order, they choose one in common (Chaudhuri, Ganti and Kaushik, "A Primitive Operator for
Similarity Joins in Data Cleaning", ICDE 2006; Bayardo, Ma and Srikant, "Scaling Up All Pairs Similarity
Search", WWW 2007). Here the rarest come first: what a text has of its own is looked up, not the template
that it shares with many. Texts that choose a shingle in common are candidates; all shingles decide. No
near-duplicate is missed, whatever the threshold.

Groups are not chains. Texts are gone through in the order of preference; one that is near a text already
kept joins the most similar of those, any other is kept. So every member is near the one that is kept,
and no two that are kept are near each other.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.text.shingles import Shingles

Rows = NDArray[np.int64]

_MOST_COUNTER_BITS = 24  # shingles share counters, which costs a few candidates more and no pair
_COUNTED_AT_ONCE = 1 << 22
_NO_ROWS: Rows = np.empty(0, dtype=np.int64)
_ROUNDING = 1e-9  # t·m may come out a little above the integer that it is


class Near(NamedTuple):
    """A row, and how similar it is."""

    row: int
    similarity: float


class RowGroup(NamedTuple):
    """The row that is kept, and those that it makes superfluous, in their order."""

    kept: int
    members: list[Near]


class ShingleSets:
    """The shingles of many texts one after the other, eight bytes each; a text is a row.

    >>> from boltzhash.text.shingles import hashed_shingles
    >>> sets = ShingleSets()
    >>> sets.extend(hashed_shingles(["the cat sat on the mat", "the cat sat on the rug"]))
    >>> len(sets), sets.similarities(0, np.array([0, 1]))
    (2, array([1. , 0.6]))
    """

    def __init__(self) -> None:
        self._numbers = array("Q")
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __iter__(self) -> Iterator[Shingles]:
        numbers, start = self.numbers, 0
        for end in self._ends[1:]:
            yield numbers[start:end]
            start = end

    def extend(self, sets: Iterable[Shingles]) -> None:
        for numbers in sets:
            self._numbers.frombytes(numbers.tobytes())
            self._ends.append(len(self._numbers))

    @property
    def numbers(self) -> Shingles:
        return np.frombuffer(self._numbers, dtype=np.uint64)

    @property
    def ends(self) -> Rows:
        """The shingles of row i are ``numbers[ends[i] : ends[i + 1]]``."""
        return np.frombuffer(self._ends, dtype=np.int64)

    def similarities(self, row: int, others: Rows) -> NDArray[np.float64]:
        """Jaccard's, of one row with each of some others; the row must have a shingle."""
        numbers, ends = self.numbers, self.ends
        own = numbers[ends[row] : ends[row + 1]]
        sizes = ends[others + 1] - ends[others]
        theirs = np.concatenate(
            [numbers[start:end] for start, end in zip(ends[others], ends[others + 1], strict=True)]
        )
        is_shared = own[np.minimum(np.searchsorted(own, theirs), len(own) - 1)] == theirs
        n_shared = np.add.reduceat(is_shared, np.cumsum(sizes) - sizes, dtype=np.int64)
        return np.asarray(n_shared / (len(own) + sizes - n_shared))


class NearIndex:
    """Finds among the rows that were put into it all that are near another.

    >>> from boltzhash.text.shingles import hashed_shingles
    >>> sets = ShingleSets()
    >>> sets.extend(hashed_shingles(["the cat sat on the mat", "a dog", "the cat sat on the rug"]))
    >>> index = NearIndex(sets, 0.5)
    >>> index.put(0)
    >>> index.near(1), index.near(2)
    ([], [Near(row=0, similarity=0.6)])
    """

    def __init__(self, sets: ShingleSets, min_similarity: float) -> None:
        self._sets = sets
        self._sizes = np.diff(sets.ends)
        self._least = min_similarity
        self._signs = _shared_signs(sets, min_similarity)
        self._rows_with: dict[int, list[int]] = {}

    def put(self, row: int) -> None:
        for sign in self._signs.of(row):
            self._rows_with.setdefault(sign, []).append(row)

    def near(self, row: int) -> list[Near]:
        """All rows in the index that are as similar as was asked for, or more, in any order."""
        found = {other for sign in self._signs.of(row) for other in self._rows_with.get(sign, ())}
        others = self._of_like_size(row, found) if found else _NO_ROWS
        if not len(others):
            return []
        similarities = self._sets.similarities(row, others)
        is_near = similarities >= self._least
        return list(map(Near, others[is_near].tolist(), similarities[is_near].tolist()))

    def _of_like_size(self, row: int, found: set[int]) -> Rows:
        """Those that are not too short or too long to be near."""
        others = np.fromiter(found, dtype=np.int64, count=len(found))
        size, sizes = self._sizes[row], self._sizes[others]
        shorter, longer = np.minimum(sizes, size), np.maximum(sizes, size)
        return np.asarray(others[shorter >= self._least * longer - _ROUNDING])


def groups_of_near(
    sets: ShingleSets, order: Iterable[int], min_similarity: float
) -> list[RowGroup]:
    """Groups around rows that are kept, which are chosen in ``order``; first kept rows first.

    >>> from boltzhash.text.shingles import hashed_shingles
    >>> sets = ShingleSets()
    >>> sets.extend(hashed_shingles(["the cat sat on the mat", "a dog", "the cat sat on the rug"]))
    >>> groups_of_near(sets, [0, 1, 2], 0.5)
    [RowGroup(kept=0, members=[Near(row=2, similarity=0.6)])]
    """
    index = NearIndex(sets, min_similarity)
    members: dict[int, list[Near]] = {}
    turn: dict[int, int] = {}  # of the rows that are kept
    for row in order:
        near = index.near(row)
        if near:
            best = max(near, key=lambda kept: (kept.similarity, -turn[kept.row]))
            members.setdefault(best.row, []).append(Near(row, best.similarity))
        else:
            turn[row] = len(turn)
            index.put(row)
    return [RowGroup(kept, sorted(members[kept])) for kept in sorted(members)]


class _Signs(NamedTuple):
    """Shingles by which rows are looked up, as small numbers, one row after the other."""

    numbers: Rows
    ends: Rows

    def of(self, row: int) -> list[int]:
        signs: list[int] = self.numbers[self.ends[row] : self.ends[row + 1]].tolist()
        return signs


def _shared_signs(sets: ShingleSets, min_similarity: float) -> _Signs:
    """Of each row's rarest shingles those that are another row's too; most rows have none."""
    counters = _counters(sets.numbers)
    rarest = ShingleSets()
    rarest.extend(_rarest(numbers, counters, min_similarity) for numbers in sets)
    ordered = np.sort(rarest.numbers)
    shared = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(shared):
        return _Signs(_NO_ROWS, np.zeros(len(sets) + 1, dtype=np.int64))
    at = np.minimum(np.searchsorted(shared, rarest.numbers), len(shared) - 1)
    is_shared = shared[at] == rarest.numbers
    n_before = np.concatenate([[0], np.cumsum(is_shared)])
    return _Signs(at[is_shared], n_before[rarest.ends])


def _rarest(numbers: Shingles, counters: NDArray[np.uint32], min_similarity: float) -> Shingles:
    """So many of a row's shingles that what is near the row has one of them; rarest first.

    Of those that are equally rare the smaller numbers come first, as in every row.
    """
    size = len(numbers)
    n_chosen = min(size, size - ceil(min_similarity * size - _ROUNDING) + 1)
    counts = counters[_counter_of(numbers, len(counters))]
    return numbers[np.argsort(counts, kind="stable")[:n_chosen]]


def _counters(numbers: Shingles) -> NDArray[np.uint32]:
    """How often shingles occur, in counters that several of them share."""
    n = 1 << min(_MOST_COUNTER_BITS, len(numbers).bit_length())
    counters = np.zeros(n, dtype=np.uint32)
    for start in range(0, len(numbers), _COUNTED_AT_ONCE):
        some = _counter_of(numbers[start : start + _COUNTED_AT_ONCE], n)
        counters += np.bincount(some, minlength=n).astype(np.uint32)
    return counters


def _counter_of(numbers: Shingles, n_counters: int) -> Rows:
    """By the highest bits of a number; ``n_counters`` is a power of two."""
    if n_counters == 1:
        return np.zeros(len(numbers), dtype=np.int64)
    shift = np.uint64(64 - (n_counters.bit_length() - 1))
    return (numbers >> shift).astype(np.int64)
