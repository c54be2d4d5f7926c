"""Text → its word trigrams, how much of them two texts share, and in what they differ.

A shingle is three words that follow one another. Words are runs of letters and digits, folded to one
spelling, single ones included ("version 2" is not "version 3"); scripts without spaces give pairs of
characters. A text of one or two words has one shingle, all its words: only the same words are similar to
it. A text without a word has none, and is similar to nothing.

Texts of one template can be as similar as copies: NumPy's descriptions of ``less`` and ``greater`` share
87 % of their trigrams. But they differ in a field, a word that one repeats where the other repeats
another, while a copy that was edited differs here and there. :func:`differ_in_a_field` tells them apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.text.tokens import every_token

Shingles = NDArray[np.uint64]
HashedWords = NDArray[np.uint32]

_LENGTH = 3
# Odd and without a pattern: a shingle's number is a sum of its words' numbers, each times one of these.
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93], dtype=np.uint64)


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
    return jaccard(shingles_of(every_token(one)), shingles_of(every_token(other)))


def jaccard(these: set[tuple[str, ...]], those: set[tuple[str, ...]]) -> float:
    """Of what is in either set the share that is in both; 0 of nothing."""
    n_shared = len(these & those)
    return n_shared / (len(these) + len(those) - n_shared) if n_shared else 0.0


class HashedText(NamedTuple):
    """A text as numbers that hold for this process: its words, and its shingles in order."""

    words: HashedWords
    shingles: Shingles


def hashed_texts(texts: Sequence[str]) -> list[HashedText]:
    """The words of each text as numbers of 32 bits, and its shingles as sorted numbers of 64 bits.

    They come from Python's own hash of each word, which is keyed with a secret: nobody can write texts
    whose shingles collide.

    >>> [len(text.shingles) for text in hashed_texts(["the cat sat on the mat", "a cat", "!"])]
    [4, 1, 0]
    """
    words = [every_token(text) for text in texts]
    n_words = list(map(len, words))
    words = list(map(_padded, words))
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    every_word = itertools.chain.from_iterable(words)
    hashes = np.fromiter(map(hash, every_word), dtype=np.int64, count=int(lengths.sum()))
    first, second, third = hashes.view(np.uint64) * _FACTORS[:, None]
    shingles = first[:-2] + second[1:-1] + third[2:]
    numbers = hashes.astype(np.uint32)
    ends = np.cumsum(lengths)
    return [
        HashedText(numbers[start : start + n], _distinct(shingles[start : max(start, end - 2)]))
        for start, end, n in zip((ends - lengths).tolist(), ends.tolist(), n_words, strict=True)
    ]


def differ_in_a_field(one: HashedWords, other: HashedWords) -> bool:
    """Whether each text repeats a word that the other does not, and that is much of the difference.

    A word counts if it stands there twice more often, and twice as often; such words must be a
    quarter of all words that the text has more of than the other.

    >>> texts = "less is less, not more", "greater is greater, not more", "more is less, not more"
    >>> less, greater, edited = (text.words for text in hashed_texts(texts))
    >>> differ_in_a_field(less, greater), differ_in_a_field(less, edited)
    (True, False)
    """
    words, rows = np.unique(np.concatenate([one, other]), return_inverse=True)
    these = np.bincount(rows[: len(one)], minlength=len(words))
    those = np.bincount(rows[len(one) :], minlength=len(words))
    return _has_a_field(these, those) and _has_a_field(those, these)


def _has_a_field(these: NDArray[np.int64], those: NDArray[np.int64]) -> bool:
    more = np.maximum(these - those, 0)
    in_fields = int(more[(more >= 2) & (these >= 2 * those)].sum())
    return in_fields > 0 and 4 * in_fields >= int(more.sum())


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
