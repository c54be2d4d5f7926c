"""From query texts to hits with their texts: hash, search, fetch, rerank, show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from boltzhash.codes import Codes
from boltzhash.corpus import Document
from boltzhash.hashers import Hasher
from boltzhash.search import ExactIndex, rerank, snippet

CANDIDATES = 500  # how many of the nearest to rerank


@dataclass(frozen=True)
class Found:
    """One hit: its rank from 1, its Hamming distance and, where the corpus is there, a snippet."""

    rank: int
    distance: int
    id: str | int
    snippet: str | None = None
    no_known_word: bool | None = None  # True: the document's code means nothing


@dataclass(frozen=True)
class Answer:
    """The hits of one query; ``known_words`` is 0 where its code means nothing.

    It is None where the code was made from features and not from words.
    """

    query: str
    known_words: int | None
    hits: list[Found]

    def __str__(self) -> str:
        lines = [_printable(self.query)]
        if self.known_words == 0:
            lines.append("  (the model knows no word of this query: these hits mean nothing)")
        width = max((len(str(hit.id)) for hit in self.hits), default=0)
        for hit in self.hits:
            line = f"{hit.rank:>4} {hit.distance:>4}  {_printable(str(hit.id)):<{min(width, 48)}}"
            flag = "(no word of it is known) " if hit.no_known_word else ""
            lines.append(f"{line}  {flag}{_printable(hit.snippet or '')}".rstrip())
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        hits = [{k: v for k, v in vars(hit).items() if v is not None} for hit in self.hits]
        return {"query": self.query, "known_words": self.known_words, "hits": hits}


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


class Finder:
    """Answers text queries from codes, their ids and, when asked to, the corpus they come from.

    ``excerpt`` makes the line that is shown of a text, from the text and the query;
    ``no_known_word`` lists the rows whose hits are flagged.
    """

    def __init__(
        self,
        hasher: Hasher,
        codes: Codes,
        ids: Sequence[str | int],
        excerpt: Callable[[str, str], str] = snippet,
        no_known_word: Iterable[int] = (),
    ) -> None:
        self._hasher = hasher
        self._ids = ids
        self._excerpt = excerpt
        self._no_known_word = frozenset(int(row) for row in no_known_word)
        self._index = ExactIndex(codes, ids)

    def find(
        self,
        queries: Sequence[str],
        k: int,
        *,
        features: Any = None,
        rerank_from: int | None = None,
        corpus: Callable[[], Iterable[Document]] | None = None,
    ) -> list[Answer]:
        """The k best documents of each query.

        Where the model was fitted with features it needs ``features`` of the queries, a row a query;
        their texts are then only shown, and compared in reranking.
        ``corpus`` gives the encoded documents in their order; it is read once for all queries, and
        only the texts of candidates are kept. With ``rerank_from`` that many nearest codes are
        reordered by tf-idf cosine before the cut at k.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if rerank_from is not None and rerank_from < 1:
            raise ValueError(f"rerank_from must be at least 1, got {rerank_from}")
        if rerank_from is not None and corpus is None:
            raise ValueError("rerank_from compares texts: give the encoded corpus")
        if not queries:
            return []
        by_words = features is None
        tfidf: Any = self._hasher.tfidf(queries) if by_words or rerank_from is not None else None
        if by_words:
            codes, known = self._hasher.transform(tfidf), self._hasher.known_word_counts(tfidf)
        else:
            codes, known = self._hasher.transform(queries, features=features), None
        rows, distances = self._index.search_rows(codes, max(k, rerank_from or 0))
        texts = self._texts(set(rows.ravel().tolist()), corpus) if corpus is not None else {}
        answers = []
        for number, query in enumerate(queries):
            order: Iterable[int] = range(rows.shape[1])
            if rerank_from is not None and rows.shape[1]:
                candidates = [texts[row] for row in rows[number, :rerank_from].tolist()]
                first = rerank(tfidf[number], self._hasher.tfidf(candidates)).tolist()
                order = [*first, *range(len(first), rows.shape[1])]
            hits = []
            for rank, place in enumerate(list(order)[:k], start=1):
                row = int(rows[number, place])
                shown = self._excerpt(texts[row], query) if row in texts else None
                flag = True if row in self._no_known_word else None
                found = Found(rank, int(distances[number, place]), self._ids[row], shown, flag)
                hits.append(found)
            answers.append(Answer(query, None if known is None else int(known[number]), hits))
        return answers

    def _texts(self, rows: set[int], corpus: Callable[[], Iterable[Document]]) -> dict[int, str]:
        """The texts of some rows; refused where the corpus is not the one that was encoded."""
        texts = {}
        number = -1
        for number, document in enumerate(corpus()):
            if number >= len(self._ids) or document.id != self._ids[number]:
                expected = repr(self._ids[number]) if number < len(self._ids) else "no more"
                raise ValueError(
                    f"the corpus is not the one that was encoded: document {number} has the id "
                    f"{document.id!r}, the codes expect {expected}"
                )
            if number in rows:
                texts[number] = document.text
        if number + 1 < len(self._ids):
            raise ValueError(
                f"the corpus is not the one that was encoded: it has {number + 1} documents, "
                f"the codes {len(self._ids)}"
            )
        return texts
