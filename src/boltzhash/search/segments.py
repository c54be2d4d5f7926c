"""Segments of an inverted index: which of some documents have a word, and how often.

A segment is never changed. A document that was overwritten is in a later segment too, and the latest
counts; one that was deleted counts in none. Words are known by 64 bits of their digest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

try:
    from boltzhash.search import _postings
except ImportError:  # no compiler
    _postings = None  # type: ignore[assignment]

Ints = NDArray[np.int64]

MOST = 255  # a word that occurs more often counts as if it occurred that often
_AT_ONCE = 4_000_000  # postings that are merged at a time: memory does not grow with segments
_64_BITS = (1 << 64) - 1


class DamagedSegmentError(Exception):
    """A segment is not as it was written, so it has to be made again."""


class Segment(NamedTuple):
    """An inverted index of some documents, as arrays.

    ``places`` (n,) and ``lengths`` (n,) are of the documents; ``words`` (m,) are sorted digests, and the
    documents of word i are ``places_of_words[ends[i - 1] : ends[i]]``, in any order, with how often
    they have it in ``counts``. ``check`` is called before postings are read, with the first and the
    last, and raises :class:`DamagedSegmentError` if they are not as they were written.
    """

    words: NDArray[np.uint64]
    ends: NDArray[np.uint64]
    places: NDArray[np.uint32]
    lengths: NDArray[np.uint32]
    places_of_words: NDArray[np.uint32]
    counts: NDArray[np.uint8]
    check: Callable[[int, int], None] | None = None

    def ranges(self, words: NDArray[np.uint64]) -> tuple[Ints, Ints]:
        """Where the postings of words begin and end; an empty range for a word that nobody has."""
        rows = np.searchsorted(self.words, words)
        if not len(self.words):
            return rows, rows
        found = rows < len(self.words)
        rows[~found] = 0
        found &= self.words[rows] == words
        ends = np.where(found, self.ends[rows], 0).astype(np.int64)
        starts = np.where(found & (rows > 0), self.ends[rows - 1], 0).astype(np.int64)
        if self.check is not None:
            for start, end in zip(starts[found].tolist(), ends[found].tolist(), strict=True):
                self.check(start, end)
        return starts, ends


def digests_of(words: list[str]) -> NDArray[np.uint64]:
    """64 bits that stand for each word.

    >>> [f"{digest:x}" for digest in digests_of(["moon", "encyclopaedia"]).tolist()]
    ['5f3c37df6785a568', 'dda35c924d9da3d0']
    """
    if _postings is not None:
        return np.frombuffer(_postings.digests(words), dtype=np.uint64)
    return np.array([_digest_of(word) for word in words], dtype=np.uint64)


@functools.lru_cache(maxsize=1 << 18)
def _digest_of(word: str) -> int:
    """Of eight bytes of UTF-8 at a time, each mixed into what came before."""
    encoded = word.encode()
    digest = len(encoded) * 0x9E3779B97F4A7C15 & _64_BITS
    for start in range(0, len(encoded), 8):
        digest ^= int.from_bytes(encoded[start : start + 8], "little")
        for _ in range(2):
            digest ^= digest >> 32
            digest = digest * 0xD6E8FEB86659FD93 & _64_BITS
        digest ^= digest >> 32
    return digest


def segment_of(
    places: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
    words: NDArray[np.uint64],
    numbers: Ints,
    rows: Ints,
    times: Ints,
) -> Segment:
    """The index of documents at ``places`` with ``lengths``, which have some of the different ``words``.

    The word ``numbers[i]`` occurs ``times[i]`` in the document ``rows[i]``, and may come again.

    >>> words = digests_of(["moon", "sun", "unheard"])
    >>> segment = segment_of(
    ...     np.array([7, 9], np.uint32), np.array([2, 2], np.uint32), words,
    ...     np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]), np.ones(4, np.int64),
    ... )
    >>> starts, ends = segment.ranges(words)
    >>> segment.places_of_words[starts[1] : ends[1]], segment.counts[starts[1] : ends[1]]
    (array([7, 9], dtype=uint32), array([1, 2], dtype=uint8))
    """
    ends, rows, counts = _inverted(numbers, rows, times, len(words), len(places))
    sizes = np.diff(ends, prepend=0)
    used = np.flatnonzero(sizes)
    used = used[np.argsort(words[used])]
    order = ranges(ends[used] - sizes[used], sizes[used])
    return Segment(
        words[used],
        np.cumsum(sizes[used]).astype(np.uint64),
        places,
        lengths,
        places[rows[order]],
        counts[order],
    )


def _inverted(
    numbers: Ints, rows: Ints, times: Ints, n_words: int, n_rows: int
) -> tuple[Ints, Ints, NDArray[np.uint8]]:
    """Where the postings of each word end, their rows, and how often each has the word."""
    if _postings is not None:
        ends, found, counts = _postings.invert(numbers, rows, times, n_words, n_rows)
        return (
            np.frombuffer(ends, np.int64),
            np.frombuffer(found, np.int64),
            np.frombuffer(counts, np.uint8),
        )
    postings, inverse = np.unique(numbers * n_rows + rows, return_inverse=True)
    summed = np.bincount(inverse, times, len(postings))
    ends = np.cumsum(np.bincount(postings // max(n_rows, 1), minlength=n_words))
    return ends, postings % max(n_rows, 1), np.minimum(summed, MOST).astype(np.uint8)


def expanded(
    tokens: NDArray[np.int32],
    n_tokens: Ints,
    rows: Ints,
    times: Ints,
    of_tokens: tuple[Ints, Ints, Ints],
) -> Ints:
    """Tokens of texts → words of documents: numbers of words, rows and times, shape (3, n).

    Text i has ``n_tokens[i]`` tokens, is of the document ``rows[i]``, and counts ``times[i]``; the words
    of token t are ``words[starts[t]]`` and the ``sizes[t] - 1`` after it, for (starts, sizes, words) =
    ``of_tokens``.

    >>> of_tokens = np.array([0, 2]), np.array([2, 1]), np.array([7, 8, 9])
    >>> tokens, one = np.array([1, 0], dtype=np.int32), np.array([1])
    >>> expanded(tokens, 2 * one, 5 * one, 3 * one, of_tokens).tolist()
    [[9, 7, 8], [5, 5, 5], [3, 3, 3]]
    """
    starts, sizes, words = of_tokens
    if _postings is not None:
        found = _postings.expand(tokens, n_tokens, rows, times, starts, sizes, words)
        return np.frombuffer(found, np.int64).reshape(3, -1)
    n_words = sizes[tokens]
    of_texts = np.repeat(np.arange(len(rows)), n_tokens)
    of_words = np.repeat(of_texts, n_words)
    return np.stack([words[ranges(starts[tokens], n_words)], rows[of_words], times[of_words]])


def ranges(starts: Ints, sizes: Ints) -> Ints:
    """The numbers of several ranges, one after the other.

    >>> ranges(np.array([5, 20]), np.array([2, 3])).tolist()
    [5, 6, 20, 21, 22]
    """
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


_NO_INTS = np.empty(0, dtype=np.int64)


def owners_of(segments: Sequence[Segment], size: int = 0) -> NDArray[np.int16]:
    """By place, the number of the segment whose document counts, the last that has one; −1: none.

    There are at least ``size`` places.
    """
    size = max([size, *(1 + int(s.places.max()) for s in segments if len(s.places))])
    owners = np.full(size, -1, dtype=np.int16)
    for number, segment in enumerate(segments):
        owners[segment.places] = number
    return owners


def merged(segments: Sequence[Segment], deleted: Ints = _NO_INTS) -> Segment:
    """One segment of several, in which of each document the latest counts, and none that is deleted."""
    owners = owners_of(segments)
    owners[deleted[deleted < len(owners)]] = -1
    kept = [owners[segment.places] == number for number, segment in enumerate(segments)]
    words = _union([segment.words for segment in segments])
    places_of_words, counts, sizes = [], [], []
    for first, last in _portions(segments, words):
        rows, places, times = _joined(segments, kept, owners, words[first:last])
        order = np.argsort(rows, kind="stable")
        places_of_words.append(places[order])
        counts.append(times[order])
        sizes.append(np.bincount(rows, minlength=last - first))
    size = np.concatenate(sizes)
    there = size > 0  # a word that only overwritten documents had is gone
    return Segment(
        words[there],
        np.cumsum(size[there]).astype(np.uint64),
        np.concatenate([s.places[k] for s, k in zip(segments, kept, strict=True)]),
        np.concatenate([s.lengths[k] for s, k in zip(segments, kept, strict=True)]),
        np.concatenate(places_of_words),
        np.concatenate(counts),
    )


def _union(arrays: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    every = np.concatenate(arrays)
    every.sort()
    return np.asarray(every[np.diff(every, prepend=~every[:1]) != 0])


def _portions(segments: Sequence[Segment], words: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
    """Ranges of the sorted words that have some million postings in all segments together."""
    n_postings = sum(len(segment.counts) for segment in segments)
    n_words = max(1, len(words) * _AT_ONCE // max(n_postings, 1))
    for first in range(0, max(len(words), 1), n_words):
        yield first, min(first + n_words, len(words))


def _joined(
    segments: Sequence[Segment],
    kept: Sequence[NDArray[np.bool_]],
    owners: NDArray[np.int16],
    words: NDArray[np.uint64],
) -> tuple[Ints, NDArray[np.uint32], NDArray[np.uint8]]:
    """The postings of neighbouring words in all segments: which of the words, places, counts."""
    rows, places, counts = [_NO_INTS], [np.empty(0, np.uint32)], [np.empty(0, np.uint8)]
    for number, segment in enumerate(segments):
        first = int(np.searchsorted(segment.words, words[:1]).sum())
        last = int(np.searchsorted(segment.words, words[-1:], side="right").sum())
        ends = segment.ends[first:last].astype(np.int64)
        start = int(segment.ends[first - 1]) if first else 0
        end = int(ends[-1]) if len(ends) else start
        if segment.check is not None:
            segment.check(start, end)
        of_words = np.searchsorted(words, segment.words[first:last])
        row = np.repeat(of_words, np.diff(ends, prepend=start))
        place, count = segment.places_of_words[start:end], segment.counts[start:end]
        if not kept[number].all():
            owned = owners[place] == number
            row, place, count = row[owned], place[owned], count[owned]
        rows.append(row)
        places.append(place)
        counts.append(count)
    return np.concatenate(rows), np.concatenate(places), np.concatenate(counts)
