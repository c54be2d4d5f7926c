"""An inverted index: which documents have a word, how often, and BM25 from that.

A segment is an inverted index of some documents. A document that was overwritten is in a later segment
too, and the latest counts; one that was deleted counts in none. Words are known by 64 bits of their
digest.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.search.relevance import (
    inverse_document_frequency,
    length_norms,
    saturated,
    words_deviation,
)

MOST_WORDS = 64  # of a question; a whole document can be asked for
_MOST = 255  # a word that occurs more often counts as if it occurred that often


class Segment(NamedTuple):
    """An inverted index of some documents, as arrays.

    ``places`` (n,) and ``lengths`` (n,) are of the documents; ``words`` (m,) are sorted digests, and the
    documents of word i are ``places_of_words[ends[i - 1] : ends[i]]``, with how often they have it in
    ``counts``.
    """

    places: NDArray[np.uint32]
    lengths: NDArray[np.uint32]
    words: NDArray[np.uint64]
    ends: NDArray[np.uint64]
    places_of_words: NDArray[np.uint32]
    counts: NDArray[np.uint8]

    def postings(self, word: int) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """Places and counts of a word."""
        row = int(np.searchsorted(self.words, np.uint64(word)))
        if row == len(self.words) or int(self.words[row]) != word:
            return self.places_of_words[:0], self.counts[:0]
        start, end = int(self.ends[row - 1]) if row else 0, int(self.ends[row])
        return self.places_of_words[start:end], self.counts[start:end]


@functools.lru_cache(maxsize=1 << 18)
def digest_of(word: str) -> int:
    """64 bits that stand for a word."""
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest())


def segment_of(words: Mapping[int, Counter[str]], lengths: Sequence[int]) -> Segment:
    """The index of documents, given by place with their words; ``lengths`` are for BM25, one each.

    >>> segment = segment_of({7: Counter("ab"), 9: Counter("bb")}, [2, 2])
    >>> [array.tolist() for array in segment.postings(digest_of("b"))]
    [[7, 9], [1, 2]]
    """
    sizes = [len(counts) for counts in words.values()]
    every_word = itertools.chain.from_iterable(words.values())
    digests = np.fromiter(map(digest_of, every_word), dtype=np.uint64, count=sum(sizes))
    every_count = itertools.chain.from_iterable(counts.values() for counts in words.values())
    times = np.fromiter(every_count, dtype=np.int64, count=sum(sizes))
    places = np.fromiter(words, dtype=np.uint32, count=len(words))
    counts = np.minimum(times, _MOST).astype(np.uint8)
    return _inverted(
        places, np.array(lengths, dtype=np.uint32), digests, np.repeat(places, sizes), counts
    )


def merged(segments: Sequence[Segment], latest: NDArray[np.int64]) -> Segment:
    """One segment of several; ``latest`` says by place which of them counts, −1 for none."""
    kept = [latest[segment.places] == i for i, segment in enumerate(segments)]
    kept_words = [latest[segment.places_of_words] == i for i, segment in enumerate(segments)]

    def joined(arrays: Iterable[NDArray[Any]], masks: list[NDArray[np.bool_]]) -> NDArray[Any]:
        return np.concatenate([array[mask] for array, mask in zip(arrays, masks, strict=True)])

    digests = (
        np.repeat(s.words, np.diff(s.ends, prepend=np.uint64(0)).astype(np.int64)) for s in segments
    )
    return _inverted(
        joined((s.places for s in segments), kept),
        joined((s.lengths for s in segments), kept),
        joined(digests, kept_words),
        joined((s.places_of_words for s in segments), kept_words),
        joined((s.counts for s in segments), kept_words),
    )


def _inverted(
    places: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
    digests: NDArray[np.uint64],
    places_of_words: NDArray[np.uint32],
    counts: NDArray[np.uint8],
) -> Segment:
    order = np.argsort(digests, kind="stable")
    words, sizes = np.unique(digests[order], return_counts=True)
    ends = np.cumsum(sizes).astype(np.uint64)
    return Segment(places, lengths, words, ends, places_of_words[order], counts[order])


Places = NDArray[np.int64]


class WordScores(NamedTuple):
    """BM25 of every document by place, and its spread σ(q); ``found`` are the places with a word."""

    scores: NDArray[np.float32]
    found: Places
    deviation: float


class WordIndex:
    """The segments of one generation, and BM25 from them."""

    def __init__(self, segments: Sequence[Segment], there: Places) -> None:
        every_place: list[NDArray[Any]] = [there, *(segment.places for segment in segments)]
        size = 1 + max((int(places.max()) for places in every_place if len(places)), default=0)
        self.segments = list(segments)
        self.latest = np.full(size, -1, dtype=np.int64)
        lengths = np.zeros(size, dtype=np.float32)
        for number, segment in enumerate(segments):
            self.latest[segment.places] = number
            lengths[segment.places] = segment.lengths
        gone = np.ones(size, dtype=np.bool_)
        gone[there] = False
        self.latest[gone] = -1
        self._norms = np.ones(size, dtype=np.float32)
        self._norms[there] = length_norms(lengths[there])
        self._n_documents = len(there)

    def score(self, words: Mapping[str, float]) -> WordScores:
        """BM25 of all documents for words, each with how much it was asked for.

        Of a long question the :data:`MOST_WORDS` with most weight count.
        """
        found = []
        for word, times in words.items():
            places, counts = self.postings(word)
            if len(places):
                weight = times * inverse_document_frequency(self._n_documents, len(places))
                found.append((weight, places, counts))
        found = sorted(found, key=lambda postings: -postings[0])[:MOST_WORDS]
        scores = np.zeros(len(self.latest), dtype=np.float32)
        for weight, places, counts in found:
            scores[places] += np.float32(weight) * saturated(counts, self._norms[places])
        weights = [weight for weight, _, _ in found]
        shares = [len(places) / self._n_documents for _, places, _ in found]
        deviation = words_deviation(np.array(weights), np.array(shares))
        return WordScores(scores, np.flatnonzero(scores), deviation)

    def postings(self, word: str) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """The places of the documents that have a word, and how often."""
        digest = digest_of(word)
        found = [segment.postings(digest) for segment in self.segments]
        kept = [self.latest[places] == number for number, (places, _) in enumerate(found)]
        return (
            np.concatenate([p[mask] for (p, _), mask in zip(found, kept, strict=True)] or [_NONE]),
            np.concatenate([c[mask] for (_, c), mask in zip(found, kept, strict=True)] or [_NONE]),
        )


_NONE: NDArray[Any] = np.empty(0, dtype=np.uint32)
