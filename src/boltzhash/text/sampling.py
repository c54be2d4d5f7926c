"""A large corpus: the words of all of it, and as many documents as are wanted, or there is room for.

All documents have a say in the vocabulary and in idf. The rest is learned from a uniform sample, kept
as word counts, since texts would take more memory, and thinned out as more documents arrive.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.text.counting import Counter, Counts, blocks_of, joined, make_counter

THINNER = 0.8  # share of the sample that stays when it has grown too large
WORDS_AT_MOST = (
    500_000  # different words counted at a time; beyond that, the rarer half is forgotten
)

# What a fit takes at its peak, rounded up from measurements (benchmarks/README.md).
BYTES_AT_REST = 500_000_000  # Python, NumPy, SciPy, torch, the words counted
BYTES_A_VALUE = 64
BYTES_A_DOCUMENT = 1_500
BYTES_A_BIT = 16  # of each document

_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_memory(value: object) -> int:
    """Bytes, from a number or a text.

    >>> parse_memory("4 GB"), parse_memory("1.5GiB"), parse_memory(10**9)
    (4000000000, 1610612736, 1000000000)
    >>> parse_memory("4 potatoes")
    Traceback (most recent call last):
    ...
    ValueError: max_memory must be a number of bytes, or a size like "4 GB" or "512 MB", got '4 potatoes'
    """
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) > 0:
        return int(value)
    found = re.fullmatch(
        r"\s*(\d+\.?\d*)\s*([A-Za-z]+)\s*", value if isinstance(value, str) else ""
    )
    if found and found[2].upper() in _UNITS and float(found[1]) > 0:
        return int(float(found[1]) * _UNITS[found[2].upper()])
    raise ValueError(
        f'max_memory must be a number of bytes, or a size like "4 GB" or "512 MB", got {value!r}'
    )


class Room(NamedTuple):
    """Memory for documents, how much of it each word and each document takes, and a limit to these."""

    n_bytes: float
    a_value: int
    a_document: int
    most_documents: int = sys.maxsize

    def holds(self, n_values: int, n_documents: int) -> bool:
        return n_values * self.a_value + n_documents * self.a_document <= self.n_bytes


ENDLESS = Room(math.inf, 0, 0)


def make_room(max_memory: int, n_bits: int, bytes_of_model: int, more_a_document: int = 0) -> Room:
    """What is left for documents when ``max_memory`` is all that a fit may take.

    ``more_a_document`` is what a method takes for each beyond what all of them do.

    >>> make_room(10**9, 64, 300_000_000).n_bytes
    200000000
    >>> make_room(10**9, 64, 600_000_000)
    Traceback (most recent call last):
    ...
    ValueError: max_memory must be at least 1200 MB for this model and some documents, got 1000 MB
    """
    at_rest = BYTES_AT_REST + bytes_of_model
    least = at_rest + 100_000_000
    if max_memory < least:
        raise ValueError(
            f"max_memory must be at least {least / 1e6:.0f} MB for this model and some documents, "
            f"got {max_memory / 1e6:.0f} MB"
        )
    a_document = BYTES_A_DOCUMENT + BYTES_A_BIT * n_bits + more_a_document
    return Room(max_memory - at_rest, BYTES_A_VALUE, a_document)


class Sample(NamedTuple):
    """Words with the number of documents they occur in, and the counts of the documents kept."""

    words: list[str]
    frequency: NDArray[np.int64]
    n_documents: int
    counts: Counts


def take_sample(
    texts: Iterable[str], pattern: re.Pattern[str] | None, room: Room, seed: int
) -> Sample:
    """Count all documents in one pass and keep as many as there is room for, each equally likely.

    Every document draws a number; those below a bound, which falls as room gets scarce, are kept in the
    order in which they came. If a word was forgotten as one of the rarer of ``WORDS_AT_MOST``, its
    frequency lacks what it had counted until then.

    >>> sample = take_sample(["red apple", "green apple"], None, Room(1000, 10, 10), seed=0)
    >>> sample.words, sample.frequency
    (['red', 'apple', 'green'], array([1, 2, 1]))
    """
    sampler = _Sampler(make_counter([], pattern), pattern, room, np.random.default_rng([seed, 0]))
    for block in blocks_of(texts):
        sampler.add(block)
    return sampler.result()


_Part = tuple[NDArray[np.float64], Counts]  # the numbers that documents drew, and their words


class _Sampler:
    def __init__(
        self,
        counter: Counter,
        pattern: re.Pattern[str] | None,
        room: Room,
        rng: np.random.Generator,
    ) -> None:
        self._counter = counter
        self._pattern = pattern
        self._room = room
        self._rng = rng
        self._bound = 1.0
        self._frequency = np.zeros(0, dtype=np.int64)
        self._n_documents = 0
        self._kept: list[_Part] = []
        self._n_values = self._n_kept = 0

    def add(self, texts: list[str]) -> None:
        counts = self._counter.count(texts, grow=True)
        n_words = max(len(self._frequency), int(counts.numbers.max(initial=-1)) + 1)
        self._frequency = np.pad(self._frequency, (0, n_words - len(self._frequency)))
        self._frequency += np.bincount(counts.numbers, minlength=n_words)
        self._n_documents += len(texts)
        self._keep([_below(self._bound, self._rng.random(len(texts)), counts)])
        # A quarter more than wanted may gather, or every block would thin out the whole sample.
        if THINNER * self._n_kept > self._room.most_documents:
            self._thin_out(self._bound_for_most())
        while not self._room.holds(self._n_values, self._n_kept):
            self._thin_out(THINNER * self._bound)
        if n_words > WORDS_AT_MOST:
            self._forget_rare_words()

    def result(self) -> Sample:
        if self._n_kept > self._room.most_documents:
            self._thin_out(self._bound_for_most())
        counts = joined([counts for _, counts in self._kept])
        return Sample(self._counter.words(), self._frequency, self._n_documents, counts)

    def _bound_for_most(self) -> float:
        """Below it are as many documents as are wanted at most."""
        drawn = np.concatenate([drawn for drawn, _ in self._kept])
        return float(np.partition(drawn, self._room.most_documents)[self._room.most_documents])

    def _thin_out(self, bound: float) -> None:
        self._bound = bound
        before, self._kept = self._kept, []
        self._n_values = self._n_kept = 0
        self._keep([_below(bound, *part) for part in before])

    def _keep(self, parts: list[_Part]) -> None:
        self._kept += parts
        self._n_values += sum(len(counts.numbers) for _, counts in parts)
        self._n_kept += sum(len(drawn) for drawn, _ in parts)

    def _forget_rare_words(self) -> None:
        commonest = np.argsort(-self._frequency, kind="stable")[: WORDS_AT_MOST // 2]
        known = np.sort(commonest)
        numbers = np.full(len(self._frequency), -1, dtype=np.int32)
        numbers[known] = np.arange(len(known))
        words = self._counter.words()
        self._counter = make_counter([words[j] for j in known], self._pattern)
        self._frequency = self._frequency[known]
        self._kept = [(drawn, _renumbered(counts, numbers)) for drawn, counts in self._kept]


def _below(bound: float, drawn: NDArray[np.float64], counts: Counts) -> _Part:
    """The documents that drew less than the bound."""
    kept = drawn < bound
    lengths = np.diff(counts.ends)
    values = np.repeat(kept, lengths)
    part = Counts(counts.values[values], counts.numbers[values], _ends(lengths[kept]))
    return drawn[kept], part


def _renumbered(counts: Counts, numbers: NDArray[np.int32]) -> Counts:
    """With new numbers for the words, in the same order; −1 drops a word."""
    new = numbers[counts.numbers]
    known = new >= 0
    before = np.concatenate([[0], np.cumsum(known)])[counts.ends]
    return Counts(counts.values[known], new[known], before)


def _ends(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
