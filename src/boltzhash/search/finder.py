"""From query texts to hits, in codes and ids kept apart from the corpus they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from boltzhash.codes import Codes
from boltzhash.corpus import Document
from boltzhash.encoding.coding import CodedQuery, coded_query
from boltzhash.hashers import Hasher
from boltzhash.search.exact import ExactIndex
from boltzhash.search.hits import Answer, Hit
from boltzhash.search.order import DEFAULT_ORDER, check_order, reordered


class Finder:
    """Answers text queries from codes, their ids and, if given, the corpus they come from.

    Parameters
    ----------
    hasher : Hasher
    codes : uint8 array (n, n_bits / 8)
    ids : sequence of str or int, one per code
    no_known_word : iterable of int
        The rows whose code means nothing.
    """

    def __init__(
        self,
        hasher: Hasher,
        codes: Codes,
        ids: Sequence[str | int],
        no_known_word: Iterable[int] = (),
    ) -> None:
        self._hasher = hasher
        self._codes = codes
        self._ids = ids
        self._no_known_word = frozenset(int(row) for row in no_known_word)
        self._index = ExactIndex(codes, ids)

    def find(
        self,
        queries: Sequence[str],
        k: int,
        *,
        features: Any = None,
        rerank_from: int | None = None,
        order: str = DEFAULT_ORDER,
        corpus: Callable[[], Iterable[Document]] | None = None,
    ) -> list[Answer]:
        """The k best documents of each query.

        A model that was fitted with features needs ``features`` of the queries, one row per query;
        their texts are then only shown, and compared when reranking.
        ``corpus`` gives the encoded documents in their order; it is read once for all queries, and
        only the texts of candidates are kept. With ``rerank_from`` that many nearest codes are
        reordered before the cut at k: by tf-idf cosine, or by another ``order`` of
        :data:`boltzhash.search.order.ORDERS`.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if rerank_from is not None and rerank_from < 1:
            raise ValueError(f"rerank_from must be at least 1, got {rerank_from}")
        check_order(order)
        if rerank_from is not None and corpus is None:
            raise ValueError("rerank_from compares texts: give the encoded corpus")
        if not queries:
            return []
        coded = self._coded(queries, features)
        codes = np.stack([query.code for query in coded])
        rows, distances = self._index.search_rows(codes, max(k, rerank_from or 0))
        documents = self._documents(set(rows.ravel().tolist()), corpus) if corpus else {}
        answers = []
        for number, query in enumerate(coded):
            found = zip(rows[number].tolist(), distances[number].tolist(), strict=True)
            hits = [self._hit(row, distance, documents.get(row)) for row, distance in found]
            if rerank_from is not None:
                if query.words is None:  # the code was made from features
                    query = query._replace(words=self._hasher.tfidf([queries[number]]))
                hits = reordered(order, query, hits, self._hasher, rerank_from)
            answers.append(Answer(hits[:k], queries[number], query.code, query.known_words))
        return answers

    def _coded(self, queries: Sequence[str], features: Any) -> list[CodedQuery]:
        if features is None:
            return [coded_query(self._hasher, query) for query in queries]
        codes = self._hasher.transform(queries, features=features)
        return [coded_query(self._hasher, code) for code in codes]

    def _hit(self, row: int, distance: int, document: Document | None) -> Hit:
        known = row not in self._no_known_word
        return Hit(self._ids[row], distance, document, known, self._codes[row].tobytes())

    def _documents(
        self, rows: set[int], corpus: Callable[[], Iterable[Document]]
    ) -> dict[int, Document]:
        """The documents of some rows; refused if the corpus is not the one that was encoded."""
        documents = {}
        number = -1
        for number, document in enumerate(corpus()):
            if number >= len(self._ids) or document.id != self._ids[number]:
                expected = repr(self._ids[number]) if number < len(self._ids) else "no more"
                raise ValueError(
                    f"the corpus is not the one that was encoded: document {number} has the id "
                    f"{document.id!r}, the codes expect {expected}"
                )
            if number in rows:
                documents[number] = document
        if number + 1 < len(self._ids):
            raise ValueError(
                f"the corpus is not the one that was encoded: it has {number + 1} documents, "
                f"the codes {len(self._ids)}"
            )
        return documents
