"""Groups of near-duplicates among many texts, exactly, without comparing all pairs.

Two sets of shingles with a Jaccard similarity of t or more share at least t·m shingles of either, m
being its size. So of any m − ⌈t·m⌉ + 1 shingles of one, the other has at least one; and if both choose
these by one order, they choose one in common (Chaudhuri, Ganti and Kaushik, "A Primitive Operator for
Similarity Joins in Data Cleaning", ICDE 2006; Bayardo, Ma and Srikant, "Scaling Up All Pairs Similarity
Search", WWW 2007). Here the rarest come first: what a text has of its own is looked up, not the template
that it shares with many. Texts that choose a shingle in common are candidates; all shingles decide. No
near-duplicate is missed, whatever the threshold.

Groups are not chains. Texts are gone through in the order of preference; one that is a near-duplicate of
a text already kept joins the most similar of those, any other is kept. So every member is near the one
that is kept. Texts that are as similar but differ in a field are of one template, and both kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.search.segments import ranges
from boltzhash.text.shingles import HashedText, Shingles, differ_in_a_field

Rows = NDArray[np.int64]

_MOST_COUNTER_BITS = 24  # shingles share counters, which costs a few candidates more and no pair
_COUNTED_AT_ONCE = 1 << 22
_COUNT_BITS = 20  # of a count; shingles that occur a million times are equally rare
_HINT_BITS = 24
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


class HashedTexts:
    """The shingles and words of many texts, 8 and 4 bytes each; a text is a row.

    >>> from boltzhash.text.shingles import hashed_texts
    >>> texts = HashedTexts()
    >>> texts.extend(hashed_texts(["the cat sat on the mat", "the cat sat on the rug"]))
    >>> len(texts), texts.similarities(0, np.array([0, 1]))
    (2, array([1. , 0.6]))
    """

    def __init__(self) -> None:
        self.shingles = Runs("Q")
        self._words = Runs("I")

    def __len__(self) -> int:
        return len(self.shingles)

    def extend(self, texts: Sequence[HashedText]) -> None:
        self.shingles.extend([text.shingles for text in texts])
        self._words.extend([text.words for text in texts])

    def similarities(self, row: int, others: Rows) -> NDArray[np.float64]:
        """Jaccard's, of one row with each of some others; the row must have a shingle."""
        own = self.shingles.row(row)
        rows = [self.shingles.row(other) for other in others.tolist()]
        sizes = np.array([len(numbers) for numbers in rows])
        theirs = np.concatenate(rows)
        is_shared = own[np.minimum(np.searchsorted(own, theirs), len(own) - 1)] == theirs
        n_shared = np.add.reduceat(is_shared, np.cumsum(sizes) - sizes, dtype=np.int64)
        return np.asarray(n_shared / (len(own) + sizes - n_shared))

    def differ_in_a_field(self, row: int, other: int) -> bool:
        """Whether two texts that are near each other are of one template, and no copies."""
        return differ_in_a_field(self._words.row(row), self._words.row(other))


class Runs:
    """Many short arrays of numbers one after the other; ``typecode`` as in :mod:`array`.

    >>> runs = Runs("Q")
    >>> runs.extend([np.array([7, 8], dtype=np.uint64)])
    >>> len(runs), runs.row(0)
    (1, array([7, 8], dtype=uint64))
    """

    def __init__(self, typecode: str) -> None:
        self._numbers, self._ends = array(typecode), array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def extend(self, runs: Sequence[NDArray[Any]]) -> None:
        if runs:
            sizes = np.fromiter(map(len, runs), dtype=np.int64, count=len(runs))
            self.extend_by(np.concatenate(runs), sizes)

    def extend_by(self, numbers: NDArray[Any], sizes: Rows) -> None:
        """Append runs of these sizes, which lie one after the other already."""
        self._ends.frombytes((self._ends[-1] + np.cumsum(sizes)).tobytes())
        self._numbers.frombytes(numbers.astype(self._numbers.typecode, copy=False).tobytes())

    def row(self, number: int) -> NDArray[Any]:
        return self.numbers[self._ends[number] : self._ends[number + 1]]

    @property
    def numbers(self) -> NDArray[Any]:
        return np.frombuffer(self._numbers, dtype=self._numbers.typecode)

    @property
    def ends(self) -> Rows:
        """Run i is ``numbers[ends[i] : ends[i + 1]]``."""
        return np.frombuffer(self._ends, dtype=np.int64)


class NearIndex:
    """Finds among the rows that were put into it all that are near another.

    >>> from boltzhash.text.shingles import hashed_texts
    >>> texts = HashedTexts()
    >>> texts.extend(hashed_texts(["the cat sat on the mat", "a dog", "the cat sat on the rug"]))
    >>> index = NearIndex(texts, 0.5)
    >>> index.put(0)
    >>> index.near(1), index.near(2)
    ([], [Near(row=0, similarity=0.6)])
    """

    def __init__(self, texts: HashedTexts, min_similarity: float) -> None:
        self._texts = texts
        self._sizes = np.diff(texts.shingles.ends)
        self._least = min_similarity
        self._signs = _shared_signs(texts.shingles, min_similarity)
        self._rows_with: dict[int, list[int]] = {}
        self._has_signs = (np.diff(self._signs.ends) > 0).tobytes()

    def may_be_near_others(self, row: int) -> bool:
        """Whether the row has anything to be looked up by; most have not."""
        return self._has_signs[row] != 0

    def put(self, row: int) -> None:
        for sign in self._signs.of(row):
            self._rows_with.setdefault(sign, []).append(row)

    def near(self, row: int) -> list[Near]:
        """All rows in the index that are as similar as was asked for, or more, in any order."""
        found = {other for sign in self._signs.of(row) for other in self._rows_with.get(sign, ())}
        others = self._of_like_size(row, found) if found else _NO_ROWS
        if not len(others):
            return []
        similarities = self._texts.similarities(row, others)
        is_near = similarities >= self._least
        return list(map(Near, others[is_near].tolist(), similarities[is_near].tolist()))

    def _of_like_size(self, row: int, found: set[int]) -> Rows:
        """Those that are not too short or too long to be near."""
        others = np.fromiter(found, dtype=np.int64, count=len(found))
        size, sizes = self._sizes[row], self._sizes[others]
        shorter, longer = np.minimum(sizes, size), np.maximum(sizes, size)
        return np.asarray(others[shorter >= self._least * longer - _ROUNDING])


def groups_of_near(
    texts: HashedTexts, order: Iterable[int], min_similarity: float
) -> list[RowGroup]:
    """Groups around rows that are kept, which are chosen in ``order``; first kept rows first.

    >>> from boltzhash.text.shingles import hashed_texts
    >>> texts = HashedTexts()
    >>> texts.extend(hashed_texts(["the cat sat on the mat", "a dog", "the cat sat on the rug"]))
    >>> groups_of_near(texts, [0, 1, 2], 0.5)
    [RowGroup(kept=0, members=[Near(row=2, similarity=0.6)])]
    """
    index = NearIndex(texts, min_similarity)
    members: dict[int, list[Near]] = {}
    turn: dict[int, int] = {}  # of the rows that are kept and may have members
    for row in order:
        if not index.may_be_near_others(row):
            continue
        best_first = sorted(index.near(row), key=lambda near: (-near.similarity, turn[near.row]))
        for near in best_first:
            if not texts.differ_in_a_field(row, near.row):
                members.setdefault(near.row, []).append(Near(row, near.similarity))
                break
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


def _shared_signs(sets: Runs, min_similarity: float) -> _Signs:
    """Of each row's rarest shingles those that are another row's too; most rows have none."""
    rarest = _rarest(sets, _counters(sets.numbers), min_similarity)
    shared = _occurring_twice(rarest.numbers)
    if not len(shared):
        return _Signs(_NO_ROWS, np.zeros(len(sets) + 1, dtype=np.int64))
    hints = np.zeros(1 << _HINT_BITS, dtype=np.bool_)  # spares most shingles a search
    hints[_counter_of(shared, len(hints))] = True
    signs, positions = [], []
    for start in range(0, len(rarest.numbers), _COUNTED_AT_ONCE):
        some = rarest.numbers[start : start + _COUNTED_AT_ONCE]
        hinted = np.flatnonzero(hints[_counter_of(some, len(hints))])
        at = np.minimum(np.searchsorted(shared, some[hinted]), len(shared) - 1)
        is_shared = shared[at] == some[hinted]
        signs.append(at[is_shared])
        positions.append(start + hinted[is_shared])
    ends = np.searchsorted(np.concatenate(positions), rarest.ends)
    return _Signs(np.concatenate(signs), ends)


def _rarest(sets: Runs, counters: NDArray[np.uint32], min_similarity: float) -> Runs:
    """So many of each row's shingles that what is near the row has one of them; rarest first.

    Of those that are equally rare the smaller numbers come first, as in every row.
    """
    rarest = Runs("Q")
    for first, last in _blocks(sets.ends):
        ends = sets.ends[first : last + 1]
        numbers, sizes = sets.numbers[ends[0] : ends[-1]], np.diff(ends)
        starts = ends[:-1] - ends[0]
        n_chosen = sizes - np.ceil(min_similarity * sizes - _ROUNDING).astype(np.int64) + 1
        n_chosen = np.minimum(sizes, n_chosen)
        # One number says which row, how often the shingle occurs, and where it stands in the row.
        counts = counters[_counter_of(numbers, len(counters))]
        keys = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes) << np.uint64(_COUNT_BITS)
        keys |= np.minimum(counts, (1 << _COUNT_BITS) - 1)
        position_bits = np.uint64(int(sizes.max(initial=0)).bit_length())
        keys <<= position_bits
        keys |= (np.arange(len(numbers)) - np.repeat(starts, sizes)).astype(np.uint64)
        keys.sort()
        chosen = keys[ranges(starts, n_chosen)] & ((np.uint64(1) << position_bits) - np.uint64(1))
        rarest.extend_by(numbers[chosen.astype(np.int64) + np.repeat(starts, n_chosen)], n_chosen)
    return rarest


def _blocks(ends: Rows) -> Iterator[tuple[int, int]]:
    """Rows from one to before another that have some million numbers together, at least one row."""
    first, n = 0, len(ends) - 1
    while first < n:
        last = int(np.searchsorted(ends, ends[first] + _COUNTED_AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), first + _COUNTED_AT_ONCE, n)
        yield first, last
        first = last


def _occurring_twice(numbers: Shingles) -> Shingles:
    """Those that occur more than once, in order."""
    ordered = np.sort(numbers)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


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
