"""From query texts to hits, in codes and ids kept apart from the corpus they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from boltzhash.codes import Codes
from boltzhash.corpus import Document
from boltzhash.encoding.coding import Coded, CodedQuery, code_of, coded_query
from boltzhash.hashers import Hasher
from boltzhash.hashers.shared.features import check_features, check_rows
from boltzhash.search.counted import DocumentCounter
from boltzhash.search.exact import ExactIndex
from boltzhash.search.hits import Answer, Hit, Hits, Rows
from boltzhash.search.inverted import WordIndex
from boltzhash.search.order import DEFAULT_ORDER, check_order, n_nearest, reordered
from boltzhash.search.ranking import Mask, having_phrases, rank
from boltzhash.search.ways import check_way, natural_way
from boltzhash.text.analyzer import analyzer_of
from boltzhash.text.queries import parsed


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
        queries: Sequence[str | None],
        k: int,
        *,
        features: Any = None,
        by: str | None = None,
        order: str | None = None,
        corpus: Callable[[], Iterable[Document]] | None = None,
    ) -> list[Answer]:
        """The k best documents of each query, found and ranked as a collection of them does it.

        A model that was fitted with features needs ``features`` of the queries, one row per query,
        to find by codes; their texts, which may be None, are then only shown, and compared by their
        words. ``corpus`` gives the encoded documents in their order; it is read once for all queries,
        into memory. With it documents are found by words and codes, without it by codes alone;
        ``by`` and ``order`` are those of :meth:`boltzhash.Collection.search`.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        coded = self._coded(queries, features)
        has_words, of_codes = corpus is not None, order is not None
        ways = {natural_way(one, has_words=has_words, of_codes=of_codes) for one in coded}
        by = by or ("codes" if "codes" in ways else min(ways, default="codes"))
        for one in coded:
            check_way(by, one, self._hasher, has_words=has_words)
        if by != "codes" and of_codes:
            raise ValueError(f"order is for by='codes', got by={by!r}")
        if corpus is None and (by != "codes" or order == "words"):
            raise ValueError("words are compared in the texts: give the encoded corpus")
        order = check_order(order or DEFAULT_ORDER)
        if not queries:
            return []
        documents = self._documents(corpus) if corpus is not None else None
        if by == "codes" or documents is None:
            found = self._nearest(coded, documents, k, order)
        else:
            found = self._ranked(coded, documents, k, by)
        return [
            Answer(hits, query.text, query.code, query.known_words, by)
            for hits, query in zip(found, coded, strict=True)
        ]

    def _nearest(
        self, coded: Sequence[CodedQuery], documents: Sequence[Document] | None, k: int, order: str
    ) -> Iterator[list[Hit]]:
        """By codes, all queries at once."""
        codes = np.stack([code_of(self._hasher, query) for query in coded])
        rows, distances = self._index.search_rows(codes, n_nearest(order, k))
        for number, query in enumerate(coded):
            near = zip(rows[number].tolist(), distances[number].tolist(), strict=True)
            hits = [self._hit(row, distance, documents) for row, distance in near]
            yield reordered(order, query, hits, self._hasher)[:k]

    def _ranked(
        self, coded: Sequence[CodedQuery], documents: Sequence[Document], k: int, by: str
    ) -> Iterator[list[Hit]]:
        """By words, or by words and codes."""
        analyzer = analyzer_of(self._hasher.language)
        segment = DocumentCounter(analyzer).segment(range(len(documents)), documents)
        index = WordIndex([segment], np.arange(len(documents)))
        codes = _Codes(self._index, self._codes)

        def documents_at(rows: Rows) -> list[Document]:
            return [documents[row] for row in rows]

        with_phrases = partial(having_phrases, analyzer, documents_at)
        for query in coded:
            wanted = parsed(query.text or "", analyzer)
            best = rank(index, codes, query, wanted, None, with_phrases, k, by=by)
            yield best.hits(
                Coded(documents[row], self._codes[row].tobytes(), row not in self._no_known_word)
                for row in best.places.tolist()
            )

    def _coded(self, queries: Sequence[str | None], features: Any) -> list[CodedQuery]:
        if features is None:
            return [coded_query(self._hasher, query) for query in queries]
        rows = check_features(features)
        check_rows(len(rows), len(queries))
        return [
            coded_query(self._hasher, text, row) for text, row in zip(queries, rows, strict=True)
        ]

    def _hit(self, row: int, distance: int | None, documents: Sequence[Document] | None) -> Hit:
        document = documents[row] if documents is not None else None
        known = row not in self._no_known_word
        return Hit(self._ids[row], distance, document, known, self._codes[row].tobytes())

    def _documents(self, corpus: Callable[[], Iterable[Document]]) -> list[Document]:
        """The documents that were encoded; a corpus that is not theirs is refused."""
        documents = []
        for number, document in enumerate(corpus()):
            if number >= len(self._ids) or document.id != self._ids[number]:
                expected = repr(self._ids[number]) if number < len(self._ids) else "no more"
                raise ValueError(
                    f"the corpus is not the one that was encoded: document {number} has the id "
                    f"{document.id!r}, the codes expect {expected}"
                )
            documents.append(document)
        if len(documents) < len(self._ids):
            raise ValueError(
                f"the corpus is not the one that was encoded: it has {len(documents)} documents, "
                f"the codes {len(self._ids)}"
            )
        return documents


class _Codes(NamedTuple):
    """Codes whose places are their rows."""

    exact: ExactIndex
    codes: Codes

    def top_k(self, query: Codes, k: int, allowed: Mask | None) -> Hits:
        rows, distances = self.exact.search_rows(query[None], k, allowed=allowed)
        return Hits(rows[0], distances[0])

    def codes_at(self, places: Rows) -> Codes:
        return np.asarray(self.codes[places])
