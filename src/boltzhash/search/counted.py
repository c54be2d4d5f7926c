"""Documents → a segment of an inverted index, many at a time.

The words of a text are those of its tokens, what stands between blanks. Tokens repeat themselves, so
each is cut into words once, and the rest is counting numbers. What comes out is what
:func:`boltzhash.text.fields.term_counts` says of each document.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.corpus import Document
from boltzhash.search.segments import Ints, Segment, digests_of, expanded, segment_of
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.blanks import make_tokens
from boltzhash.text.fields import EXACT_WEIGHT, NAME_WEIGHT, exact_of, name_of, titles_of

_MOST_KNOWN = 500_000  # tokens that are remembered, before all are forgotten


class DocumentCounter:
    """Makes segments of documents whose terms are those of ``analyzer``.

    >>> counter = DocumentCounter(Analyzer())
    >>> segment = counter.segment([7], [Document("a", "The moon, the moons", None)])
    >>> starts, ends = segment.ranges(digests_of(["moon"]))
    >>> segment.counts[starts[0] : ends[0]].tolist(), segment.lengths.tolist()
    ([2], [2])
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._forget()

    def segment(self, places: Sequence[int], documents: Sequence[Document]) -> Segment:
        """The inverted index of documents at places, which are in order."""
        if len(self._sizes) > _MOST_KNOWN:
            self._forget()
        texts, rows, times = _texts(documents)
        tokens, n_tokens, new = self._tokens.number(texts)
        self._learn(new)
        ids = self._of_ids(documents)
        of_tokens = _integers(self._starts), _integers(self._sizes), _integers(self._words)
        postings = expanded(tokens, n_tokens, rows, times, of_tokens)
        numbers, rows, times = np.concatenate([postings, ids.postings], axis=1)
        telling = _integers(self._is_telling)[postings[0]] * postings[2]
        lengths = ids.lengths + np.bincount(postings[1], telling, len(documents))
        return segment_of(
            np.array(places, dtype=np.uint32),
            lengths.astype(np.uint32),
            np.concatenate([np.frombuffer(self._digests, np.uint64), ids.new]),
            numbers,
            rows,
            times,
        )

    def _forget(self) -> None:
        self._tokens = make_tokens()
        self._starts = array("q")  # by token, where its words begin
        self._sizes = array("q")  # how many it has
        self._words = array("q")  # numbers of the words, token by token
        self._numbers: dict[int, int] = {}  # of words, by their digests
        self._digests = array("Q")  # by the number of the word
        self._is_telling = array("q")  # whether it counts as length

    def _learn(self, tokens: list[str]) -> None:
        words, sizes = self._analyzer.terms_of_words(tokens)
        n_words = np.array(sizes, dtype=np.int64)
        starts = len(self._words) + np.cumsum(n_words) - n_words
        self._starts.frombytes(starts.tobytes())
        self._sizes.frombytes(n_words.tobytes())
        known, are_telling = self._numbers, self._analyzer.are_telling(words)
        for digest, is_telling in zip(digests_of(words).tolist(), are_telling, strict=True):
            number = known.setdefault(digest, len(known))
            if number == len(self._digests):
                self._digests.append(digest)
                self._is_telling.append(is_telling)
            self._words.append(number)

    def _of_ids(self, documents: Sequence[Document]) -> _IdWords:
        """Hardly a word of an id comes again, so they are not remembered."""
        tokens = [name_of(document.id).split() for document in documents]
        exact = [exact_of(document.id) for document in documents]
        words, sizes = self._analyzer.terms_of_words(list(itertools.chain.from_iterable(tokens)))
        rows = np.arange(len(documents))
        of_words = np.repeat(np.repeat(rows, [len(some) for some in tokens]), sizes)
        known, new = self._numbers, dict[int, int]()
        numbers = [
            known[digest] if digest in known else new.setdefault(digest, len(known) + len(new))
            for digest in digests_of(words).tolist()
        ]
        # No text has a word that is an exact id.
        digests = digests_of(list(itertools.chain.from_iterable(exact)))
        numbers += [new.setdefault(digest, len(known) + len(new)) for digest in digests.tolist()]
        postings = [
            np.array(numbers, dtype=np.int64),
            np.concatenate([of_words, np.repeat(rows, [len(some) for some in exact])]),
            np.repeat([NAME_WEIGHT, EXACT_WEIGHT], [len(words), len(digests)]),
        ]
        is_telling = np.array(self._analyzer.are_telling(words), dtype=np.int64)
        telling = np.bincount(of_words, is_telling, len(documents)).astype(np.int64)
        return _IdWords(
            np.stack(postings), NAME_WEIGHT * telling, np.fromiter(new, np.uint64, len(new))
        )


class _IdWords(NamedTuple):
    """The words of ids: numbers of words, rows of documents and how often they count, shape (3, n).

    ``lengths`` is what each document's length gains, ``new`` are the digests of words without a number.
    """

    postings: Ints
    lengths: Ints
    new: NDArray[np.uint64]


def _integers(numbers: array[int]) -> Ints:
    return np.frombuffer(numbers, np.int64)


def _texts(documents: Sequence[Document]) -> tuple[list[str], Ints, Ints]:
    """Texts, then titles: the rows of their documents, and how often each word of them counts."""
    texts = [document.text for document in documents]
    titled = [(row, title) for row, doc in enumerate(documents) for title in titles_of(doc)]
    rows = [*range(len(documents)), *(row for row, _ in titled)]
    times = [1] * len(documents) + [NAME_WEIGHT] * len(titled)
    every = [*texts, *(title for _, title in titled)]
    return every, np.array(rows, dtype=np.int64), np.array(times, dtype=np.int64)
