"""A segment of the inverted index as rows of a table: its words in the order of their digests, in pages.

A page is small enough to lie in its row. A word with more documents than that has one to itself, which
PostgreSQL keeps beside the table. Whoever asks for a word fetches one page of each segment.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.search.segments import Segment

_PAGE = 1_800  # bytes: PostgreSQL moves rows of more than 2,000 out of the table
_OF_WORD, _OF_DOCUMENT = 12, 5  # bytes in a page
_MIDDLE = 1 << 63  # digests have no sign, numbers in PostgreSQL have one


class Page(NamedTuple):
    """A row: the number of its first word, and everything in it as bytes."""

    first: int
    contents: bytes


class Documents(NamedTuple):
    """The documents of a segment, arrays of shape (n,), and those that it overwrites or deletes."""

    places: NDArray[np.uint32]
    lengths: NDArray[np.uint32]
    gone: NDArray[np.uint32]


def number_of(digest: int) -> int:
    """A digest as PostgreSQL can hold it, in the same order.

    >>> number_of(0), number_of(2**64 - 1)
    (-9223372036854775808, 9223372036854775807)
    """
    return digest - _MIDDLE


def pages_of(segment: Segment) -> Iterator[Page]:
    """The words of a segment with their documents.

    >>> segment = Segment(*(np.array(a) for a in ([3, 5], [2, 3], [7, 9], [2, 2], [7, 9, 7], [1, 2, 1])))
    >>> with_words(segment, [page.contents for page in pages_of(segment)]).places_of_words
    array([7, 9, 7], dtype=uint32)
    """
    words, ends = segment.words.astype("<u8"), segment.ends.astype(np.int64)
    sizes = np.diff(ends, prepend=0) * _OF_DOCUMENT + _OF_WORD
    is_large = sizes > _PAGE
    window = np.cumsum(sizes) // _PAGE
    begins = is_large | (np.diff(window, prepend=-1) > 0)
    begins[1:] |= is_large[:-1]
    cuts = [*np.flatnonzero(begins).tolist(), len(words)]
    places, counts = segment.places_of_words.astype("<u4"), segment.counts.astype(np.uint8)
    for start, stop in itertools.pairwise(cuts):
        begin, end = int(ends[start - 1]) if start else 0, int(ends[stop - 1])
        inner = (ends[start:stop] - begin).astype("<u4")
        head = np.array([stop - start], dtype="<u4")
        parts = (head, words[start:stop], inner, places[begin:end], counts[begin:end])
        yield Page(number_of(int(words[start])), b"".join(part.tobytes() for part in parts))


def with_words(documents: Documents | Segment, pages: Sequence[bytes]) -> Segment:
    """A segment from its documents and all or some of its pages, in their order."""
    words, ends, places, counts = [], [], [], []
    before = 0
    for page in pages:
        (n,) = np.frombuffer(page, "<u4", 1).tolist()
        words.append(np.frombuffer(page, "<u8", n, 4))
        inner = np.frombuffer(page, "<u4", n, 4 + 8 * n)
        size, start = int(inner[-1]), 4 + 12 * n
        ends.append(inner.astype(np.uint64) + np.uint64(before))
        places.append(np.frombuffer(page, "<u4", size, start))
        counts.append(np.frombuffer(page, np.uint8, size, start + 4 * size))
        before += size
    return Segment(
        _joined(words, np.uint64),
        _joined(ends, np.uint64),
        documents.places,
        documents.lengths,
        _joined(places, np.uint32),
        _joined(counts, np.uint8),
    )


def _joined(arrays: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(arrays).astype(dtype, copy=False) if arrays else np.empty(0, dtype)


def packed(numbers: NDArray[Any]) -> bytes:
    """Places or lengths as bytes."""
    return numbers.astype("<u4").tobytes()


def unpacked(contents: bytes) -> NDArray[np.uint32]:
    """What :func:`packed` was given.

    >>> unpacked(packed(np.array([1, 70000])))
    array([    1, 70000], dtype=uint32)
    """
    return np.frombuffer(contents, "<u4").astype(np.uint32, copy=False)
