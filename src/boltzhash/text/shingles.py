"""Text → its word trigrams, and how much of them two texts share.

A shingle is three words that follow one another. Words are runs of letters and digits, folded to one
spelling, single ones included ("version 2" is not "version 3"); scripts without spaces give pairs of
characters. A text of one or two words has one shingle, all its words: only the same words are similar to
it. A text without a word has none, and is similar to nothing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from boltzhash.text.tokens import MARKS, UNSPACED, fold

Shingles = NDArray[np.uint64]

_WORDS = re.compile(f"([{UNSPACED}]+)|((?:(?![{UNSPACED}])[^\\W_]|[{MARKS}])+)")
_ASCII_WORDS = re.compile("[a-z0-9]+")  # the same for ASCII, several times as fast
_LENGTH = 3
# Odd and without a pattern: a shingle's number is a sum of its words' numbers, each times one of these.
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93], dtype=np.uint64)


def words_in(text: str) -> list[str]:
    """All words of a text in order.

    >>> words_in("Version 2 of read_csv: 机器学")
    ['version', '2', 'of', 'read', 'csv', '机器', '器学']
    """
    if text.isascii():
        return _ASCII_WORDS.findall(text.lower())
    words: list[str] = []
    for run, word in _WORDS.findall(fold(text)):
        if word:
            words.append(word)
        elif len(run) == 1:
            words.append(run)
        else:
            words.extend(run[i : i + 2] for i in range(len(run) - 1))
    return words


def shingles_of(words: Sequence[str]) -> set[tuple[str, ...]]:
    """The different trigrams of some words; of fewer than three, all of them as one.

    >>> sorted(shingles_of("to be or not to be or".split()))
    [('be', 'or', 'not'), ('not', 'to', 'be'), ('or', 'not', 'to'), ('to', 'be', 'or')]
    >>> shingles_of(["to", "be"]), shingles_of([])
    ({('to', 'be')}, set())
    """
    if len(words) < _LENGTH:
        return {tuple(words)} if words else set()
    return set(zip(words, words[1:], words[2:], strict=False))


def similarity(one: str, other: str) -> float:
    """Jaccard's: of the shingles that either text has, the share that both have.

    >>> similarity("the cat sat on the mat", "The cat sat on the rug!")
    0.6
    >>> similarity("!", "!")
    0.0
    """
    these, those = shingles_of(words_in(one)), shingles_of(words_in(other))
    n_shared = len(these & those)
    return n_shared / (len(these) + len(those) - n_shared) if n_shared else 0.0


def hashed_shingles(texts: Sequence[str]) -> list[Shingles]:
    """The shingles of each text as sorted numbers of 64 bits.

    The numbers hold for this process, since they come from Python's own hash of each word, which is
    keyed with a secret: nobody can write texts whose shingles collide.

    >>> [len(numbers) for numbers in hashed_shingles(["the cat sat on the mat", "a cat", "!"])]
    [4, 1, 0]
    """
    words = [_padded(words_in(text)) for text in texts]
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    every_word = itertools.chain.from_iterable(words)
    hashes = np.fromiter(map(hash, every_word), dtype=np.int64, count=int(lengths.sum()))
    first, second, third = hashes.view(np.uint64) * _FACTORS[:, None]
    numbers = first[:-2] + second[1:-1] + third[2:]
    ends = np.cumsum(lengths)
    bounds = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    return [_distinct(numbers[start : max(start, end - 2)]) for start, end in bounds]


def _padded(words: list[str]) -> list[str]:
    """With empty words up to three, whose hash is 0; nothing if there is no word."""
    return words + [""] * (_LENGTH - len(words)) if 0 < len(words) < _LENGTH else words


def _distinct(numbers: Shingles) -> Shingles:
    ordered = np.sort(numbers)
    if len(ordered) < 2:
        return ordered
    is_first = np.empty(len(ordered), dtype=np.bool_)
    is_first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]
