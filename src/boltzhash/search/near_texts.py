"""Which documents may be near-duplicates of a text: by its rarest words, from an inverted index.

What shares t·m or more of a text's m shingles lacks at most m − ⌈t·m⌉ of them. So of any words that
stand in more than that many shingles it has one, and the rarest such words name the fewest documents.
"""

from __future__ import annotations

from collections import defaultdict
from math import ceil

import numpy as np
from numpy.typing import NDArray

from boltzhash.search.inverted import WordIndex
from boltzhash.text.shingles import shingles_of, words_in
from boltzhash.text.words import Words

Places = NDArray[np.int64]

_ROUNDING = 1e-9  # t·m may come out a little above the integer that it is


def places_that_may_be_near(
    index: WordIndex, words: Words, text: str, min_similarity: float
) -> Places | None:
    """The places of all documents that can be so similar to a text, likeliest first.

    None if words do not tell, as in a text of single letters: then any document can.

    >>> from boltzhash.corpus import Document
    >>> from boltzhash.search.counted import DocumentCounter
    >>> texts = ["the cat sat on the mat", "the dog sat on the mat", "to be or not to be"]
    >>> documents = [Document(i, text) for i, text in enumerate(texts)]
    >>> index = WordIndex([DocumentCounter(Words()).segment([0, 1, 2], documents)], np.arange(3))
    >>> places_that_may_be_near(index, Words(), "The cat sat on a mat!", 0.8).tolist()
    [0]
    """
    shingles = shingles_of(words_in(text))
    n_may_lack = len(shingles) - ceil(min_similarity * len(shingles) - _ROUNDING)
    having: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for shingle in shingles:
        for word in shingle:
            having[word].add(shingle)
    places_of = {word: _places(index, words, word) for word in having if _is_indexed(word)}
    touched: set[tuple[str, ...]] = set()
    found: list[Places] = []
    for word in sorted(places_of, key=lambda word: (len(places_of[word]), word)):
        touched |= having[word]
        found.append(places_of[word])
        if len(touched) > n_may_lack:
            return _commonest_first(np.concatenate(found))
    return None


def _places(index: WordIndex, words: Words, word: str) -> Places:
    in_order = words.in_order(word)
    return index.having(in_order[0] if in_order else word)


def _is_indexed(word: str) -> bool:
    """A single letter may be: not in "cat's" or "U.S."."""
    return len(word) > 1


def _commonest_first(places: Places) -> Places:
    different, counts = np.unique(places, return_counts=True)
    return different[np.argsort(-counts, kind="stable")]
