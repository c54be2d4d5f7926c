"""An inverted index of one generation: which documents have a word, how often, and BM25 from that.

Every document that has a word of the question is scored, so the best are the best. That is done in C if
there was a compiler at install time, to the same float32 as in NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.search import compiled
from boltzhash.search.relevance import (
    inverse_document_frequency,
    length_norms,
    saturated,
    words_deviation,
)
from boltzhash.search.segments import Ints, Segment, digests_of, owners_of

try:
    from boltzhash.search import _postings
except ImportError:  # no compiler
    _postings = None  # type: ignore[assignment]

MOST_WORDS = 64  # of a question; a whole document can be asked for

Places = NDArray[np.int64]
Mask = NDArray[np.bool_]
Floats = NDArray[np.float32]


class WordScores(NamedTuple):
    """BM25 of every document by place, its spread σ(q), and what each word that counts may give."""

    scores: Floats
    deviation: float
    weights: Mapping[str, float] = MappingProxyType({})

    @property
    def found(self) -> Places:
        """The places of all documents that have a word."""
        return np.flatnonzero(self.scores)

    def best(self, n: int, allowed: Mask | None) -> Places:
        """The n allowed places with most BM25, of equals those that were inserted first; in order.

        >>> scores = np.array([0, 2, 1, 1, 3], dtype=np.float32)
        >>> WordScores(scores, 1.0).best(3, None).tolist()
        [1, 2, 4]
        """
        if _postings is not None and compiled.kernel_name() != compiled.NONE:
            return np.frombuffer(_postings.best(self.scores, allowed, n), np.int64)
        places = self.found
        if allowed is not None:
            places = places[allowed[places]]
        if len(places) <= n:
            return places
        scores = self.scores[places]
        least = np.partition(scores, len(scores) - n)[len(scores) - n]
        above = places[scores > least]
        return np.sort(np.concatenate([above, places[scores == least][: n - len(above)]]))


class WordIndex:
    """The segments of one generation, in which ``there`` are the places of all documents."""

    def __init__(self, segments: Sequence[Segment], there: Places) -> None:
        size = 1 + int(there[-1]) if len(there) else 1
        self.segments = list(segments)
        self._owners = owners_of(segments, size)
        gone = np.ones(len(self._owners), dtype=np.bool_)
        gone[there] = False
        self._owners[gone] = -1
        lengths = np.zeros(len(self._owners), dtype=np.float32)
        self._is_whole = []  # whether all documents of a segment count
        for number, segment in enumerate(segments):
            lengths[segment.places] = segment.lengths
            self._is_whole.append(bool((self._owners[segment.places] == number).all()))
        self._norms = np.ones(len(self._owners), dtype=np.float32)
        self._norms[there] = length_norms(lengths[there])
        self._n_documents = len(there)
        self.size = len(self._owners)  # one more than the last place

    def score(self, words: Mapping[str, float]) -> WordScores:
        """BM25 of all documents for words, each with how much it was asked for.

        Of a long question the :data:`MOST_WORDS` with most weight count.
        """
        digests = digests_of(list(words))
        found = []
        n_having = np.zeros(len(digests), dtype=np.int64)
        for number, segment in enumerate(self.segments):
            found.append(segment.ranges(digests))
            n_having += self._n_owned(number, *found[number])
        times = np.fromiter(words.values(), np.float64, len(words))
        weights = times * inverse_document_frequency(self._n_documents, n_having)
        heard = np.flatnonzero(n_having)
        telling = heard[np.argsort(-weights[heard], kind="stable")[:MOST_WORDS]]
        scores = np.zeros(self.size, dtype=np.float32)
        for number, (starts, ends) in enumerate(found):
            part = starts[telling], ends[telling], weights[telling].astype(np.float32)
            self._add(number, *part, scores)
        shares = n_having[telling] / max(self._n_documents, 1)
        asked = np.array(list(words), dtype=object)[telling]
        counting = dict(zip(asked.tolist(), weights[telling].tolist(), strict=True))
        return WordScores(scores, words_deviation(weights[telling], shares), counting)

    def having(self, word: str) -> Places:
        """The places of the documents that have a word."""
        digests = digests_of([word])
        found = [np.empty(0, dtype=np.int64)]
        for number, segment in enumerate(self.segments):
            (start,), (end,) = segment.ranges(digests)
            places = segment.places_of_words[start:end].astype(np.int64)
            found.append(places[self._owners[places] == number])
        return np.concatenate(found)

    def _n_owned(self, number: int, starts: Ints, ends: Ints) -> Ints:
        """How many documents of a segment that still count have each word."""
        if self._is_whole[number]:
            return ends - starts
        places = self.segments[number].places_of_words
        if _postings is not None and compiled.kernel_name() != compiled.NONE:
            counted = _postings.count_owned(places, starts, ends, self._owners, number)
            return np.frombuffer(counted, np.int64)
        return np.array(
            [
                np.count_nonzero(self._owners[places[start:end]] == number)
                for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
            ],
            dtype=np.int64,
        )

    def _add(self, number: int, starts: Ints, ends: Ints, weights: Floats, scores: Floats) -> None:
        """Add to the scores what the documents of a segment have of each word."""
        segment, owners = self.segments[number], self._owners
        if _postings is not None and compiled.kernel_name() != compiled.NONE:
            _postings.add_scores(
                segment.places_of_words,
                segment.counts,
                starts,
                ends,
                weights,
                self._norms,
                None if self._is_whole[number] else owners,
                number,
                scores,
            )
            return
        for start, end, weight in zip(starts.tolist(), ends.tolist(), weights, strict=True):
            places, counts = segment.places_of_words[start:end], segment.counts[start:end]
            owned = owners[places] == number
            places, counts = places[owned], counts[owned]
            scores[places] += weight * saturated(counts, self._norms[places])
