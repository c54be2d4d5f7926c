"""Reasons for hits, in words: those that were asked for, and those that are near in topic."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.codes import Codes
from boltzhash.corpus import Document
from boltzhash.hashers import Hasher
from boltzhash.search.relevance import agreement
from boltzhash.server.answers import Reasons
from boltzhash.server.marks import Sought, words_in
from boltzhash.server.spellings import commonest_spellings

Floats = NDArray[np.float64]

_READ = 4_000  # characters of a text that are looked at
_SHARED = 6
_NEAR = 4
_HEAVIEST = 16  # words of a document that may be near
_LEAST_AGREEMENT = 1.0  # as much as one in six words has with any query, by chance

_codes: WeakKeyDictionary[Hasher, dict[int, Codes]] = WeakKeyDictionary()


def reasons(
    hasher: Hasher, documents: Sequence[Document], sought: Sought, margins: Floats | None
) -> list[Reasons]:
    """For each document the words that were asked for, and others with codes like the query's.

    A word is near if its own code agrees with the query's as that of a document would have to: bit by
    bit, each weighed by how sure the model is of the query's (``margins``; None if it is of none).
    Words have no codes, and none is near, if codes are made from features.
    """
    shared = _shared_words([f"{one.text[:_READ]}\n{_name(one)}" for one in documents], sought)
    near = _near_words(hasher, documents, sought, margins)
    return [{"shared": one, "near": other} for one, other in zip(shared, near, strict=True)]


def _shared_words(texts: list[str], sought: Sought) -> list[list[str]]:
    """The words of each text that were asked for. A token is looked at once, however often it occurs."""
    tokens = [dict.fromkeys(text.split()) for text in texts]
    asked_for = sought.tokens_of(set().union(*tokens))
    return [
        words_in(" ".join(token for token in one if token in asked_for), sought)[:_SHARED]
        for one in tokens
    ]


def _name(document: Document) -> str:
    return document.id if isinstance(document.id, str) else ""


def _near_words(
    hasher: Hasher, documents: Sequence[Document], sought: Sought, margins: Floats | None
) -> list[list[str]]:
    assert hasher.tfidf_ is not None  # or it would not be in a collection
    if margins is None or not documents or hasher.n_feature_columns is not None:
        return [[] for _ in documents]
    heaviest = [_heaviest(row) for row in hasher.tfidf([one.text[:_READ] for one in documents])]
    columns = sorted({column for row in heaviest for column in row})
    if not columns:
        return [[] for _ in documents]
    near = agreement(margins, _codes_of_words(hasher, columns))
    agreeing = {
        column: float(value)
        for column, value in zip(columns, near, strict=True)
        if value >= _LEAST_AGREEMENT and not sought.is_in(hasher.tfidf_.words_[column])
    }
    chosen = [
        sorted((column for column in row if column in agreeing), key=lambda c: (-agreeing[c], c))
        for row in heaviest
    ]
    return [
        _spelt(hasher, row[:_NEAR], document.text[:_READ], sought)
        for row, document in zip(chosen, documents, strict=True)
    ]


def _codes_of_words(hasher: Hasher, columns: list[int]) -> Codes:
    """The code of each word by itself, as of a text; they are kept, since the same words come back."""
    assert hasher.tfidf_ is not None
    known = _codes.setdefault(hasher, {})
    new = [column for column in columns if column not in known]
    if new:
        codes = hasher.encode([hasher.tfidf_.words_[column] for column in new])
        known.update(zip(new, codes, strict=True))
    return np.stack([known[column] for column in columns])


def _heaviest(row: sparse.csr_matrix) -> list[int]:
    """The columns of the heaviest words of one document."""
    columns: list[int] = row.indices[np.argsort(-row.data, kind="stable")[:_HEAVIEST]].tolist()
    return columns


def _spelt(hasher: Hasher, columns: list[int], text: str, sought: Sought) -> list[str]:
    assert hasher.tfidf_ is not None
    spelt = commonest_spellings(hasher.tfidf_, columns, [text])
    return [spelt[column] for column in columns if not sought.is_in(spelt[column])]
