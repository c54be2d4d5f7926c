"""Documents and queries with their codes: what a hasher makes of them before storing or searching."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes, pack
from boltzhash.corpus import Document
from boltzhash.hashers import Hasher
from boltzhash.hashers.shared.features import (
    Features,
    check_rows,
    feature_blocks,
    feature_rows,
    one_row,
)
from boltzhash.text.passages import Span, cut
from boltzhash.threads import in_batches

Query = str | Codes

_AT_ONCE = 1024  # passages that are hashed together: a document may have thousands


class Input(NamedTuple):
    """A document, and its vector (n_columns,) if its code is made from that and not from its words."""

    document: Document
    vector: NDArray[np.float64] | None = None


def inputs_of(documents: Iterable[Document], features: Features | None) -> Iterator[Input]:
    """Each document with its row; refused before the last is given if the numbers differ.

    >>> documents = [Document("a", "one"), Document("b", "two")]
    >>> [given.vector.tolist() for given in inputs_of(documents, np.eye(2))]
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if features is None:
        yield from map(Input, documents)
        return
    remaining, rows = iter(documents), feature_rows(features)
    document, n = next(remaining, None), 0
    while document is not None:
        n += 1
        following = next(remaining, None)
        if n > len(features) or following is None:
            rest = 0 if following is None else 1 + sum(1 for _ in remaining)
            check_rows(len(features), n + rest)
        yield Input(document, next(rows))
        document = following
    check_rows(len(features), n)


class CodedPassage(NamedTuple):
    """A passage with its code, and whether the model knew any word of it."""

    span: Span
    code: bytes
    known: bool


class Coded(NamedTuple):
    """A document with its code, and whether the model knew any word of it.

    A code that is made from features means something even without a word: then it is known.
    ``passages`` are there to be written, if the collection has any, or if they were asked for.
    """

    document: Document
    code: bytes
    known: bool
    passages: tuple[CodedPassage, ...] = ()


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


def coded_passages(
    hasher: Hasher, texts: Sequence[str], words: int
) -> list[tuple[CodedText, tuple[CodedPassage, ...]]]:
    """The code of each text as a whole, and the codes of its passages of about ``words`` words.

    >>> from boltzhash import LSH
    >>> text = "A star is born. It shines. Bread needs an oven. It needs flour."
    >>> [(whole, parts)] = coded_passages(LSH(n_bits=8).fit([text, "a moon"]), [text], words=8)
    >>> [text[slice(*part.span)] for part in parts]
    ['A star is born. It shines. ', 'Bread needs an oven. It needs flour.']
    """
    spans = [cut(text, words) for text in texts]
    parts = [
        text[start:end]
        for text, own in zip(texts, spans, strict=True)
        if len(own) > 1  # else the text is the passage
        for start, end in own
    ]
    wholes = coded_texts(hasher, texts)
    coded = (one for some in in_batches(parts, _AT_ONCE) for one in coded_texts(hasher, some))
    return [
        (
            whole,
            tuple(CodedPassage(span, *(next(coded) if len(own) > 1 else whole)) for span in own),
        )
        for whole, own in zip(wholes, spans, strict=True)
    ]


def coded_documents(
    hasher: Hasher, batch: Sequence[Input], *, passages: int | None = None
) -> list[Coded]:
    """A batch of documents with their codes, and with those of their passages of so many words."""
    documents = [given.document for given in batch]
    vectors = [given.vector for given in batch if given.vector is not None]
    if passages is not None:
        both = coded_passages(hasher, [document.text for document in documents], passages)
        return [
            Coded(document, *whole, parts)
            for document, (whole, parts) in zip(documents, both, strict=True)
        ]
    if not vectors:
        coded = coded_texts(hasher, (document.text for document in documents))
        return [Coded(document, *text) for document, text in zip(documents, coded, strict=True)]
    rows = hasher.checked_features(np.stack(vectors))
    assert rows is not None  # some were given
    codes = hasher.encode_block(rows).codes
    return [
        Coded(document, code.tobytes(), True)
        for document, code in zip(documents, codes, strict=True)
    ]


class CodedQuery(NamedTuple):
    """A query as a code and, if it was a text, how many of its words the model knows.

    ``code`` has shape (n_bits / 8,); it is None of a text without a vector if codes are made from
    features. ``margins`` (n_bits,) says how sure the model is of each bit. ``weight`` is that of codes
    beside words.
    """

    text: str | None
    code: Codes | None
    known_words: int | None
    margins: NDArray[np.float64] | None
    weight: float


def coded_query(hasher: Hasher, query: Query | None, features: Any = None) -> CodedQuery:
    """The query as the hasher sees it; a code must have the hasher's length.

    ``features`` is its vector, if the hasher was fitted with features; then it may be without a text.

    >>> from boltzhash import LSH
    >>> query = coded_query(LSH(n_bits=16).fit(["a star", "a moon"]), "star light")
    >>> query.code.shape, query.known_words
    ((2,), 1)
    """
    if features is not None and (query is None or isinstance(query, str)):
        rows = hasher.checked_features(one_row(features))
        assert rows is not None  # they were given
        margins = hasher.margins(next(feature_blocks(rows)))
        weight = hasher.weight_beside_words
        return CodedQuery(query, pack(margins > 0)[0], None, margins[0], weight)
    if features is not None:
        raise ValueError("the query must be a code or have features, got both: leave one out")
    if isinstance(query, str):
        if hasher.feature_scaling_ is not None:
            return CodedQuery(query, None, None, None, hasher.weight_beside_words)
        rows = hasher.tfidf([query])
        margins = hasher.margins(rows)
        code = pack(margins > 0)[0]
        return CodedQuery(query, code, rows.nnz, margins[0], hasher.weight_beside_words)
    n_bytes = hasher.n_bits // 8
    shapes = ((n_bytes,), (1, n_bytes))
    if isinstance(query, np.ndarray) and query.dtype == np.uint8 and query.shape in shapes:
        code = np.ascontiguousarray(query).reshape(n_bytes)
        return CodedQuery(None, code, None, None, hasher.weight_beside_words)
    came = f"{query.dtype} {query.shape}" if isinstance(query, np.ndarray) else type(query)
    is_vector = isinstance(query, np.ndarray) and query.dtype.kind == "f"
    raise TypeError(
        f"query must be a text or one packed code, a uint8 array ({n_bytes},), got {came}"
        f"{': a vector goes into features=' if is_vector else ''}"
    )


def like_coded(hasher: Hasher, coded: Coded) -> CodedQuery:
    """A query for what is like a document; if its features are gone, by the code that they gave."""
    text = coded.document.text
    query = coded_query(hasher, text)
    return query._replace(code=np.frombuffer(coded.code, np.uint8)) if query.code is None else query


def code_of(hasher: Hasher, query: CodedQuery) -> Codes:
    """The query's code; an error if it has none, since its features are missing."""
    if query.code is None:
        raise hasher.needs_features()
    return query.code
