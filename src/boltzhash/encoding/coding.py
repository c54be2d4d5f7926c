"""Documents and queries with their codes: what a hasher makes of them before storing or searching."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.codes import Codes, pack
from boltzhash.corpus import Document
from boltzhash.hashers import Hasher

Query = str | Codes


class Coded(NamedTuple):
    """A document with its code, and whether the model knew any word of it."""

    document: Document
    code: bytes
    known: bool


class CodedText(NamedTuple):
    """The code of a text, and whether the model knew any word of it."""

    code: bytes
    known: bool


def coded_texts(hasher: Hasher, texts: Iterable[str]) -> list[CodedText]:
    """The code of each text of a batch.

    >>> from boltzhash import LSH
    >>> star, unheard = coded_texts(LSH(n_bits=8).fit(["a star", "a moon"]), ["star", "unheard"])
    >>> len(star.code), star.known, unheard.known
    (1, True, False)
    """
    codes, known_words = hasher.encode_block(list(texts))
    assert known_words is not None  # texts have words; only features have none
    return [
        CodedText(code.tobytes(), n > 0)
        for code, n in zip(codes, known_words.tolist(), strict=True)
    ]


def coded_documents(hasher: Hasher, documents: Sequence[Document]) -> list[Coded]:
    """A batch of documents with their codes."""
    coded = coded_texts(hasher, (document.text for document in documents))
    return [Coded(document, *text) for document, text in zip(documents, coded, strict=True)]


class CodedQuery(NamedTuple):
    """A query as a code and, if it was a text, as the model sees its words.

    ``code`` has shape (n_bits / 8,), ``words`` is the tf-idf of the text, one row, and ``margins``
    (n_bits,) says how sure the model is of each bit. ``weight`` is that of codes beside words.
    """

    text: str | None
    code: Codes
    words: sparse.csr_matrix | None
    known_words: int | None
    margins: NDArray[np.float64] | None
    weight: float


def coded_query(hasher: Hasher, query: Query) -> CodedQuery:
    """The query as the hasher sees it; a code must have the hasher's length.

    >>> from boltzhash import LSH
    >>> query = coded_query(LSH(n_bits=16).fit(["a star", "a moon"]), "star light")
    >>> query.code.shape, query.known_words
    ((2,), 1)
    """
    if isinstance(query, str):
        words = hasher.tfidf([query])
        margins = hasher.margins(words)
        code = pack(margins > 0)[0]
        return CodedQuery(query, code, words, words.nnz, margins[0], hasher.weight_beside_words)
    n_bytes = hasher.n_bits // 8
    is_code = isinstance(query, np.ndarray) and query.dtype == np.uint8
    if is_code and query.shape in ((n_bytes,), (1, n_bytes)):
        code = np.ascontiguousarray(query).reshape(n_bytes)
        return CodedQuery(None, code, None, None, None, hasher.weight_beside_words)
    came = f"{query.dtype} {query.shape}" if isinstance(query, np.ndarray) else type(query)
    raise TypeError(
        f"query must be a text or one packed code, a uint8 array ({n_bytes},), got {came}"
    )
