"""Documents → a segment of an inverted index, many at a time.

The words of a text are those of its tokens, what stands between blanks. Tokens repeat themselves, so
each is cut into words once, and the rest is counting numbers. What comes out is what
:meth:`boltzhash.text.words.Words.counts` and ``length`` say of each document.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.corpus import Document
from boltzhash.search.segments import Ints, Segment, digests_of, ranges, segment_of
from boltzhash.text.blanks import make_tokens
from boltzhash.text.words import EXACT_WEIGHT, NAME_WEIGHT, Words, titles_of

_MOST_KNOWN = 500_000  # tokens that are remembered, before all are forgotten


class DocumentCounter:
    """Makes segments of documents whose words are those of ``words``.

    >>> counter = DocumentCounter(Words())
    >>> segment = counter.segment([7], [Document("a", "The moon, the moons", None)])
    >>> starts, ends = segment.ranges(digests_of(["moon"]))
    >>> segment.counts[starts[0] : ends[0]].tolist(), segment.lengths.tolist()
    ([2], [2])
    """

    def __init__(self, words: Words) -> None:
        self._rules = words
        self._forget()

    def segment(self, places: Sequence[int], documents: Sequence[Document]) -> Segment:
        """The inverted index of documents at places, which are in order."""
        if len(self._lengths) > _MOST_KNOWN:
            self._forget()
        texts, rows, times = _texts(documents)
        tokens, n_tokens, new = self._tokens.number(texts)
        self._learn(new)
        rows, times = np.repeat(rows, n_tokens), np.repeat(times, n_tokens)
        ids = self._of_ids(documents)
        telling = times * np.frombuffer(self._lengths, np.int64)[tokens]
        lengths = ids.lengths + np.bincount(rows, telling, len(documents))
        starts, sizes = np.frombuffer(self._starts, np.int64), np.frombuffer(self._sizes, np.int64)
        n_words = sizes[tokens]
        words = np.frombuffer(self._words, np.int64)[ranges(starts[tokens], n_words)]
        return segment_of(
            np.array(places, dtype=np.uint32),
            lengths.astype(np.uint32),
            np.concatenate([np.frombuffer(self._digests, np.uint64), ids.new]),
            np.concatenate([words, ids.words]),
            np.concatenate([np.repeat(rows, n_words), ids.rows]),
            np.concatenate([np.repeat(times, n_words), ids.times]),
        )

    def _forget(self) -> None:
        self._tokens = make_tokens()
        self._starts = array("q")  # by token, where its words begin
        self._sizes = array("q")  # how many it has
        self._lengths = array("q")  # how many of them count as length
        self._words = array("q")  # numbers of the words, token by token
        self._numbers: dict[int, int] = {}  # of words, by their digests
        self._digests = array("Q")  # by the number of the word

    def _learn(self, tokens: list[str]) -> None:
        words: list[str] = []
        for token in tokens:
            found = self._rules.of(token)
            self._starts.append(len(self._words) + len(words))
            self._sizes.append(len(found))
            self._lengths.append(self._rules.n_telling(found))
            words += found
        known = self._numbers
        for digest in digests_of(words).tolist():
            number = known.setdefault(digest, len(known))
            if number == len(self._digests):
                self._digests.append(digest)
            self._words.append(number)

    def _of_ids(self, documents: Sequence[Document]) -> _IdWords:
        """Hardly a word of an id comes again, so they are not remembered."""
        words: list[str] = []
        exact: list[str] = []
        n_words, n_exact, lengths = array("q"), array("q"), array("q")
        for document in documents:
            parts, whole = self._rules.of_id(document.id)
            words += parts
            exact += whole
            n_words.append(len(parts))
            n_exact.append(len(whole))
            lengths.append(NAME_WEIGHT * self._rules.n_telling(parts))
        known, new = self._numbers, dict[int, int]()
        numbers = [
            known[digest] if digest in known else new.setdefault(digest, len(known) + len(new))
            for digest in digests_of(words).tolist()
        ]
        # No text has a word that is an exact id.
        numbers += [
            new.setdefault(digest, len(known) + len(new)) for digest in digests_of(exact).tolist()
        ]
        rows = np.arange(len(documents))
        return _IdWords(
            np.array(numbers, dtype=np.int64),
            np.concatenate([np.repeat(rows, n_words), np.repeat(rows, n_exact)]),
            np.repeat([NAME_WEIGHT, EXACT_WEIGHT], [len(words), len(exact)]),
            np.array(lengths, dtype=np.int64),
            np.fromiter(new, np.uint64, len(new)),
        )


class _IdWords(NamedTuple):
    """Numbers of words, the rows of their documents, how often each counts.

    ``lengths`` is what each document's length gains, ``new`` are the digests of words without a number.
    """

    words: Ints
    rows: Ints
    times: Ints
    lengths: Ints
    new: NDArray[np.uint64]


def _texts(documents: Sequence[Document]) -> tuple[list[str], Ints, Ints]:
    """Texts, then titles: the rows of their documents, and how often each word of them counts."""
    texts = [document.text for document in documents]
    titled = [(row, title) for row, doc in enumerate(documents) for title in titles_of(doc)]
    rows = [*range(len(documents)), *(row for row, _ in titled)]
    times = [1] * len(documents) + [NAME_WEIGHT] * len(titled)
    every = [*texts, *(title for _, title in titled)]
    return every, np.array(rows, dtype=np.int64), np.array(times, dtype=np.int64)
