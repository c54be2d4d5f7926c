"""What a collection is asked for: a text or a code, hashed, and its answer in the order of words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from boltzhash.codes import Codes
from boltzhash.collection.answers import Matches
from boltzhash.hashers import Hasher
from boltzhash.search import rerank

Query = str | Codes


class HashedQuery(NamedTuple):
    """A query as code and, where it was a text, as words."""

    code: Codes
    words: sparse.csr_matrix | None
    known_words: int | None


def hash_query(hasher: Hasher, query: Query, *, needs_words: bool = False) -> HashedQuery:
    """The query as the hasher sees it; a code must have the hasher's length."""
    if isinstance(query, str):
        words = hasher.tfidf([query])
        known = int(hasher.known_word_counts(words)[0])
        return HashedQuery(hasher.transform(words)[0], words, known)
    n_bytes = hasher.n_bits // 8
    is_code = isinstance(query, np.ndarray) and query.dtype == np.uint8
    if is_code and query.shape in ((n_bytes,), (1, n_bytes)):
        if needs_words:
            raise ValueError("rerank compares words: search for a text, not for a code")
        return HashedQuery(np.ascontiguousarray(query).reshape(n_bytes), None, None)
    came = f"{query.dtype} {query.shape}" if isinstance(query, np.ndarray) else type(query)
    raise TypeError(
        f"query must be a text or one packed code, a uint8 array ({n_bytes},), got {came}"
    )


def reranked(
    hasher: Hasher, query: HashedQuery, found: Matches, n_candidates: int, k: int
) -> Matches:
    """The first of them in the order of their words, those behind as they were, cut at k."""
    texts = [document.text for document in found.documents[:n_candidates]]
    first = rerank(query.words, hasher.tfidf(texts)).tolist() if texts else []
    order = [*first, *range(len(first), len(found))][:k]
    documents = [found.documents[i] for i in order]
    ids = [document.id for document in documents]
    return Matches(ids, found.distances[order], documents, found.known_words)
