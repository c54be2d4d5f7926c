"""Texts → word counts: compiled if there was a compiler at install time, plain Python otherwise."""

from __future__ import annotations

import itertools
import re
from array import array
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from boltzhash.text.tokens import character_classes, fold, tokenize

try:
    from boltzhash.text import _tokens
except ImportError:  # no compiler: PythonCounter does it all
    _tokens = None  # type: ignore[assignment]

BLOCK = 1024


class Counts(NamedTuple):
    """Rows of a sparse matrix: which words, how often, and where in these each document ends."""

    values: NDArray[np.float64]
    numbers: NDArray[np.int32]
    ends: NDArray[np.int64]


class Counter(Protocol):
    """Counts words that have numbers; with ``grow`` a new word gets the next one."""

    def words(self) -> list[str]: ...
    def count(self, texts: list[str], *, grow: bool) -> Counts: ...


def make_counter(words: Iterable[str], pattern: re.Pattern[str] | None) -> Counter:
    """The fastest available counter for a token rule; word i has the number i."""
    if _tokens is None or pattern is not None:
        return PythonCounter(words, pattern)
    return CompiledCounter(words)


class CompiledCounter:
    """The counter in C, for the tokens of :func:`tokenize`; works without Python's lock.

    Texts that are not ASCII are normalised by Python first, then cut and counted in C as well.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._vocabulary = _tokens.Vocabulary(list(words))

    def words(self) -> list[str]:
        return self._vocabulary.words()

    def count(self, texts: list[str], *, grow: bool) -> Counts:
        classes = None
        if not all(map(str.isascii, texts)):
            texts, classes = list(map(fold, texts)), character_classes()
        values, numbers, ends = self._vocabulary.count(texts, classes, grow)
        return Counts(
            np.frombuffer(values, dtype=np.float64),
            np.frombuffer(numbers, dtype=np.int32),
            np.frombuffer(ends, dtype=np.int64),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return make_counter, (
            self.words(),
            None,
        )  # where it is unpickled there may be no compiled one


class PythonCounter:
    """The plain twin of :class:`CompiledCounter`, also used for custom token patterns."""

    def __init__(self, words: Iterable[str], pattern: re.Pattern[str] | None) -> None:
        self._numbers = {word: number for number, word in enumerate(words)}
        self._pattern = pattern

    def words(self) -> list[str]:
        return list(self._numbers)

    def count(self, texts: list[str], *, grow: bool) -> Counts:
        known = self._numbers
        values, numbers, ends = array("d"), array("i"), array("q", [0])
        for text in texts:
            counts: dict[int, int] = {}
            for token in tokenize(text, self._pattern):
                number = known.setdefault(token, len(known)) if grow else known.get(token)
                if number is not None:
                    counts[number] = counts.get(number, 0) + 1
            for number in sorted(counts):
                numbers.append(number)
                values.append(counts[number])
            ends.append(len(numbers))
        return Counts(np.array(values), np.array(numbers, dtype=np.int32), np.array(ends))


def count_words(texts: Iterable[str], counter: Counter, *, grow: bool = False) -> Counts:
    """Word counts, one row per document; texts may be a generator.

    >>> count_words(["A bus, a BUS", "pear"], make_counter(["apple", "bus"], None)).ends
    array([0, 1, 1])
    """
    counts = []
    for block in blocks_of(texts):
        counts.append(counter.count(block, grow=grow))
    return counts[0] if len(counts) == 1 else joined(counts)


def joined(blocks: list[Counts]) -> Counts:
    """The documents of all blocks, one after the other."""
    ends, n_values = [np.zeros(1, dtype=np.int64)], 0
    for block in blocks:
        ends.append(n_values + block.ends[1:])  # a block may have no documents
        n_values += len(block.values)
    return Counts(
        np.concatenate([block.values for block in blocks] or [np.empty(0)]),
        np.concatenate([block.numbers for block in blocks] or [np.empty(0, dtype=np.int32)]),
        np.concatenate(ends),
    )


def check_texts(texts: list[str], first: int = 0) -> list[str]:
    """Return ``texts`` if they are strings; ``first`` is the number of the first one.

    >>> check_texts(["a", b"b"], first=10)
    Traceback (most recent call last):
    ...
    ValueError: document 11 must be a string, got bytes: decode them first, such as with \
text.decode('utf-8')
    """
    for number, text in enumerate(texts, start=first):
        if not isinstance(text, str):
            raise ValueError(
                f"document {number} must be a string, got {_how_to_make_it_text(text)}"
            )
    return texts


def _how_to_make_it_text(value: object) -> str:
    """What came in place of a text, and what to do about it."""
    kind = type(value).__name__
    if isinstance(value, bytes):
        return f"{kind}: decode them first, such as with text.decode('utf-8')"
    if value is None or value != value:  # NaN
        return (
            f"{kind}, a missing value: leave it out, or make it '' (fillna('') in pandas, "
            "fill_null('') in polars)"
        )
    if isinstance(value, dict | tuple) and "text" in (*getattr(value, "_fields", ()), *value):
        return f"{kind}: pass only its text"
    return f"{kind}"


def blocks_of(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts a block at a time, checked to be texts."""
    remaining = iter(texts)
    for start in itertools.count(step=BLOCK):
        block = check_texts(list(itertools.islice(remaining, BLOCK)), start)
        if not block:
            return
        yield block
