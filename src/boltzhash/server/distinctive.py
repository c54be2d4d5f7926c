"""Words that set some documents apart from others: common among them, rare elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.hashers import Hasher
from boltzhash.server.spellings import commonest_spellings
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.tfidf import TfIdf

Floats = NDArray[np.float64]

_SPELT = 5_000  # texts in which spellings are counted
_LEAST = 2  # documents that must have a word
_LETTERS = re.compile(r"[^\W\d_]{2}|[^\W\d_a-zA-Z]")


class Occurrences(NamedTuple):
    """In which documents each word of a model occurs: ones in a matrix (n_documents, n_words)."""

    has: sparse.csr_matrix
    names: list[str]  # each word as it is mostly written

    @classmethod
    def in_texts(cls, hasher: Hasher, texts: Sequence[str]) -> Occurrences:
        assert hasher.tfidf_ is not None  # or it would not be in a collection
        weights = hasher.tfidf(texts)
        ones = np.ones(len(weights.data))
        has = sparse.csr_matrix((ones, weights.indices, weights.indptr), shape=weights.shape)
        return cls(has, _names(hasher.tfidf_, texts))


def _names(tfidf: TfIdf, texts: Sequence[str]) -> list[str]:
    if tfidf.columns_ is None:
        return list(tfidf.words_)
    columns = range(len(tfidf.words_))
    spelt = commonest_spellings(tfidf, columns, texts[:: max(1, len(texts) // _SPELT)])
    return [spelt[column] for column in columns]


def contrast(inside: Any, n_inside: Any, outside: Any, n_outside: Any) -> Floats:
    """p log(p / q) of words, with p and q the shares of documents inside and outside that have them.

    It is a word's part in the Kullback-Leibler divergence between the two: a word scores if many of the
    documents inside have it, and few of the others.

    >>> contrast(np.array([9, 9, 1]), 10, np.array([0, 9, 0]), 10).round(2).tolist()
    [2.36, -0.04, 0.06]
    """
    p = np.asarray(inside, dtype=np.float64) / (np.asarray(n_inside) + 1)
    q = (np.asarray(outside) + 0.5) / (np.asarray(n_outside) + 1)
    return np.asarray(p * np.log(np.maximum(p, 1e-12) / q))


def chosen_words(
    columns: NDArray[np.int64], scores: Floats, counts: Any, names: list[str], n: int, cut: Analyzer
) -> list[int]:
    """At most ``n`` columns with the highest scores, no two of them forms of one word.

    >>> names = ["file", "files", "42", "disk", "rare"]
    >>> columns, scores = np.arange(5), np.array([3.0, 2.0, 2.5, 1.0, 9.0])
    >>> chosen_words(columns, scores, np.array([4, 4, 4, 4, 1]), names, 2, Analyzer())
    [0, 3]
    """
    chosen: list[int] = []
    stems: set[str] = set()
    for at in np.argsort(-scores, kind="stable").tolist():
        if scores[at] <= 0 or len(chosen) == n:
            break
        column = int(columns[at])
        name = names[column]
        own = set(cut.terms(name))
        if counts[at] >= _LEAST and _LETTERS.search(name) and stems.isdisjoint(own):
            chosen.append(column)
            stems |= own
    return chosen
