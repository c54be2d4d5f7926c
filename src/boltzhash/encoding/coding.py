"""Documents with their codes: what a hasher makes of a batch before it is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.corpus import Document
from boltzhash.hashers import Hasher


class Coded(NamedTuple):
    """A document with its code, and whether the model knew any word of it."""

    document: Document
    code: bytes
    known: int


def hashed(hasher: Hasher, texts: Iterable[str]) -> tuple[Codes, NDArray[np.bool_]]:
    """The codes of texts, and of each whether the model knows any word of it.

    >>> from boltzhash import LSH
    >>> codes, known = hashed(LSH(n_bits=8).fit(["a star", "a moon"]), ["star", "unheard"])
    >>> codes.shape, known.tolist()
    ((2, 1), [True, False])
    """
    words = hasher.tfidf(texts)
    return hasher.transform(words), hasher.known_word_counts(words) > 0


def coded_batch(hasher: Hasher, batch: Sequence[Document]) -> list[Coded]:
    codes, known = hashed(hasher, (document.text for document in batch))
    return [
        Coded(document, code.tobytes(), int(is_known))
        for document, code, is_known in zip(batch, codes, known, strict=True)
    ]
