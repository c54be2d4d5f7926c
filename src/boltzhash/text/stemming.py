"""Spellings of one word ("sort", "sorts", "sorting") counted as one, so that a model sees one word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.text.analyzer import Analyzer
from boltzhash.text.counting import Counter, Counts

LEFT_OUT = -1  # instead of a stem's number

Numbers = NDArray[np.int32]


def numbered_stems(words: Sequence[str], analyzer: Analyzer) -> Numbers:
    """Word → the number of its stem, in the order in which stems come; stop words have none.

    >>> numbered_stems(["sort", "the", "apple", "sorting"], Analyzer()).tolist()
    [0, -1, 1, 0]
    """
    numbers: dict[str, int] = {}
    return np.array(
        [
            LEFT_OUT if word in analyzer.stop_words else numbers.setdefault(stem, len(numbers))
            for word, stem in zip(words, analyzer.stems(words), strict=True)
        ],
        dtype=np.int32,
    )


def shortest_spellings(words: Sequence[str], stems: Numbers) -> list[str]:
    """What to call each stem: the shortest of its words, of these the first in the alphabet.

    >>> shortest_spellings(["sorts", "the", "sort"], np.array([0, -1, 0], dtype=np.int32))
    ['sort']
    """
    names: dict[int, str] = {}
    for stem, word in zip(stems.tolist(), words, strict=True):
        other = names.get(stem)
        if other is None or (len(word), word) < (len(other), other):
            names[stem] = word
    return [names[stem] for stem in range(int(stems.max(initial=-1)) + 1)]


def with_spellings_merged(counts: Counts, stems: Numbers) -> Counts:
    """Counts of words as counts of their stems.

    >>> counts = Counts(np.ones(3), np.array([0, 1, 2], dtype=np.int32), np.array([0, 3]))
    >>> with_spellings_merged(counts, np.array([1, -1, 1], dtype=np.int32)).values
    array([2.])
    """
    numbers = stems[counts.numbers]
    known = numbers != LEFT_OUT
    ends = np.concatenate([[0], np.cumsum(known)])[counts.ends]
    shape = (len(ends) - 1, int(stems.max(initial=-1)) + 1)
    merged = sparse.csr_matrix((counts.values[known], numbers[known], ends), shape=shape)
    merged.sum_duplicates()
    return Counts(merged.data, merged.indices, merged.indptr.astype(np.int64))


def stemmed(
    stems: Numbers, frequency: NDArray[np.int64], counts: Counts
) -> tuple[NDArray[np.int64], Counts]:
    """In how many documents each stem occurs, and the counts of stems.

    ``frequency`` says in how many documents each word occurs, ``counts`` are of these documents or of a
    sample. A document with two spellings of a stem has it once. How often that happens is known of the
    sample, and taken to be the same elsewhere: df = Σ df(spelling) · df' / Σ df'(spelling).
    """
    merged = with_spellings_merged(counts, stems)
    n_stems = int(stems.max(initial=-1)) + 1
    counted = stems != LEFT_OUT

    def summed(values: NDArray[np.int64]) -> NDArray[np.float64]:
        sums = np.bincount(stems[counted], weights=values[counted], minlength=n_stems)
        return np.asarray(sums, dtype=np.float64)

    of_spellings = summed(np.bincount(counts.numbers, minlength=len(stems)))
    of_stems = np.bincount(merged.numbers, minlength=n_stems)
    share = np.where(of_spellings > 0, of_stems / np.maximum(of_spellings, 1), 1.0)
    return np.rint(summed(frequency) * share).astype(np.int64), merged


def spellings_of(
    chosen: NDArray[np.int64], words: Sequence[str], stems: Numbers
) -> tuple[list[str], Numbers]:
    """The words of some stems, and which of these each has: stem ``chosen[j]`` becomes column j.

    >>> words, columns = spellings_of(
    ...     np.array([2]), ["b", "a", "as"], np.array([0, 2, 2], dtype=np.int32)
    ... )
    >>> words, columns.tolist()
    (['a', 'as'], [0, 0])
    """
    column_of = np.full(int(stems.max(initial=-1)) + 2, LEFT_OUT, dtype=np.int32)  # last: no stem
    column_of[chosen] = np.arange(len(chosen), dtype=np.int32)
    columns = column_of[stems]
    kept = np.flatnonzero(columns != LEFT_OUT)
    return [words[j] for j in kept.tolist()], columns[kept]


class StemmedCounter:
    """Counts stems, with a counter of the spellings that were there when words were learned.

    A spelling that was not is not known, even if its stem is: so stems cost no time when hashing.
    """

    def __init__(self, spellings: Counter, stems: Numbers) -> None:
        self._spellings = spellings
        self._stems = stems

    def words(self) -> list[str]:
        return shortest_spellings(self._spellings.words(), self._stems)

    def count(self, texts: list[str], *, grow: bool) -> Counts:
        assert not grow  # stems are learned from all words at once
        return with_spellings_merged(self._spellings.count(texts, grow=False), self._stems)
