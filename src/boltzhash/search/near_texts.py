"""Which documents may be near-duplicates of a text: by its rarest words, from an inverted index.

Let a word weigh as much as it stands in shingles of the text. What shares t·m or more of the text's m
shingles lacks at most m − ⌈t·m⌉ of them, and a shingle has three words at most: so the words that it
lacks weigh no more than three times as much. Of the rarest words, which name the fewest documents, only
so many are looked up that whoever has them by chance is out.
"""

from __future__ import annotations

from collections import Counter
from math import ceil

import numpy as np
from numpy.typing import NDArray

from boltzhash.search.inverted import WordIndex
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.shingles import shingles_of
from boltzhash.text.tokens import every_token

Places = NDArray[np.int64]

_NONE: Places = np.empty(0, dtype=np.int64)
_ROUNDING = 1e-9  # t·m may come out a little above the integer that it is


def places_that_may_be_near(
    index: WordIndex, analyzer: Analyzer, text: str, min_similarity: float
) -> Places | None:
    """The places of all documents that can be so similar to a text, likeliest first.

    None if words do not tell, as in a text of single letters: then any document can.

    >>> from boltzhash.corpus import Document
    >>> from boltzhash.search.counted import DocumentCounter
    >>> texts = ["the cat sat on the mat", "the dog sat on the mat", "to be or not to be"]
    >>> documents = [Document(i, text) for i, text in enumerate(texts)]
    >>> index = WordIndex([DocumentCounter(Analyzer()).segment([0, 1, 2], documents)], np.arange(3))
    >>> places_that_may_be_near(index, Analyzer(), "The cat sat on a mat!", 0.8).tolist()
    [0]
    """
    shingles = shingles_of(every_token(text))
    weights = Counter(word for shingle in shingles for word in set(shingle) if _is_indexed(word))
    may_lack = 3 * (len(shingles) - ceil(min_similarity * len(shingles) - _ROUNDING))
    places_of = {word: index.having(_index_term(analyzer, word)) for word in weights}
    looked_up = 0
    found, weighing = [_NONE], [_NONE]
    for word in sorted(places_of, key=lambda word: (len(places_of[word]), word)):
        looked_up += weights[word]
        found.append(places_of[word])
        weighing.append(np.full(len(places_of[word]), weights[word]))
        if looked_up > 2 * may_lack:
            break
    if looked_up <= may_lack and shingles:
        return None
    places, row = np.unique(np.concatenate(found), return_inverse=True)
    lacking = looked_up - np.bincount(row, np.concatenate(weighing), len(places))
    order = np.argsort(lacking, kind="stable")
    return places[order[lacking[order] <= may_lack]].astype(np.int64)


def looked_up_for(analyzer: Analyzer, text: str) -> set[str]:
    """All words whose documents :func:`places_that_may_be_near` looks at.

    >>> sorted(looked_up_for(Analyzer(), "A cat's toys"))
    ['cat', 'toy']
    """
    return {_index_term(analyzer, word) for word in every_token(text) if _is_indexed(word)}


def _index_term(analyzer: Analyzer, word: str) -> str:
    in_order = analyzer.terms_in_order(word)
    return in_order[0] if in_order else word


def _is_indexed(word: str) -> bool:
    """A single letter may not be: not in "cat's" or "U.S."."""
    return len(word) > 1
