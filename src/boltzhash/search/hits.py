"""What a search finds: hits as arrays when there are many, and one by one in an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.corpus import Document
from boltzhash.search.snippet import snippet, without_title
from boltzhash.text.passages import Span
from boltzhash.text.tokens import printable

Rows = NDArray[np.int64]
Distances = NDArray[np.int32]


class Hits(NamedTuple):
    """Documents found, nearest first, equal distances in the order of insertion; never padding.

    ``search`` gives one for all queries, with arrays of shape (n_queries, k), or fewer columns if fewer
    documents exist or are allowed. ``within`` gives a list of them, one per query, with arrays of shape
    (n_hits,).
    """

    ids: NDArray[Any]
    distances: Distances


class Hit(NamedTuple):
    """One document that was found.

    Attributes
    ----------
    id : str or int
    distance : int or None
        In how many bits its code differs from the query's; if it is cut into passages, that of its
        best. None if the query has no code: a text without a vector, where codes are made from
        features.
    document : Document or None
        With ``id``, ``text`` and ``metadata``; None if only codes and ids are available.
    known : bool
        False if the model knows no word of the document: then its code means nothing.
    code : bytes
        Its packed code, or that of its best passage.
    score : float or None
        What it was ranked by, if words took part; see :mod:`boltzhash.search.relevance`.
    words : float or None
        BM25 of its words, or of those of its best passage, for the query, if they took part.
    passage : Span or None
        Where its best passage is, ``text[start:end]``, if the collection cuts documents into passages.
    """

    id: str | int
    distance: int | None
    document: Document | None = None
    known: bool = True
    code: bytes = b""
    score: float | None = None
    words: float | None = None
    passage: Span | None = None

    @property
    def text(self) -> str:
        """The text of the document, empty if it is not available."""
        return self.document.text if self.document is not None else ""

    @property
    def passage_text(self) -> str:
        """The text of the passage; of the whole document if it is not known which."""
        return self.text if self.passage is None else self.text[slice(*self.passage)]


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """What one query found, best first; never padding.

        In order of score if words took part, else of (distance, insertion). A collection's answer is
    true of one committed generation as a whole.

        Attributes
        ----------
        hits : list of Hit
        query : str or None
            The text that was searched for; None if it was a code, or features alone.
        code : uint8 array (n_bits / 8,) or None
            The query's packed code; None of a text without a vector, where codes are made from
            features.
        known_words : int or None
            How many words of the query the model knows; with 0 its code, and so the answer, means
            nothing. None if the query was a code or was made from features.
        by : {"both", "words", "codes"}
            What it was found by.
        margins : float64 array (n_bits,) or None
            How sure the model is of each bit of the query's code; None if the query was a code.
        warning : str or None
            Why nothing was found, if it is for a filter that no document could have matched.
        total : int or None
            How many documents match; None if they were not counted.
        facets : dict
            By field, the values that documents which match have in it; see ``Collection.search``.

        Examples
        --------
        >>> answer = Answer([Hit("a", 3, Document("a", "Stars. A planet.", {}))], "planet")
        >>> len(answer), answer.ids, answer.distances.tolist()
        (1, ['a'], [3])
        >>> answer
        <Answer to 'planet' by codes: 1 hits, first 'a'>
        >>> print(answer)
        planet
           1    3  a  A planet.
    """

    hits: list[Hit]
    query: str | None = None
    code: Codes | None = None
    known_words: int | None = None
    by: str = "codes"
    margins: NDArray[np.float64] | None = None
    warning: str | None = None
    total: int | None = None
    facets: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        asked = "a code" if self.query is None else repr(self.query[:60])
        first = f", first {self.hits[0].id!r}" if self.hits else ""
        return f"<Answer to {asked} by {self.by}: {len(self.hits)} hits{first}>"

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @property
    def ids(self) -> list[str | int]:
        """The ids of the hits."""
        return [hit.id for hit in self.hits]

    @property
    def distances(self) -> Distances:
        """The Hamming distances of the hits, shape (n_hits,)."""
        known = [hit.distance for hit in self.hits if hit.distance is not None]
        if len(known) < len(self.hits):
            raise ValueError(
                "there are no distances: the query has no code, since codes are made from features. "
                "Search with features="
            )
        return np.array(known, dtype=np.int32)

    @property
    def documents(self) -> list[Document]:
        """The documents of the hits, as far as they are available."""
        return [hit.document for hit in self.hits if hit.document is not None]

    def __str__(self) -> str:
        lines = [_one_line(self.query or "")]
        if self.by != "codes" and not self.hits:
            lines.append("  (nothing found)")
        if self.known_words == 0 and self.by == "codes":
            lines.append("  (the model knows no word of this query: these hits mean nothing)")
        width = min(max((len(str(hit.id)) for hit in self.hits), default=0), 48)
        for rank, hit in enumerate(self.hits, start=1):
            ranked_by = f"{hit.distance:>4}" if hit.score is None else f"{hit.score:>6.2f}"
            line = f"{rank:>4} {ranked_by}  {_one_line(str(hit.id)):<{width}}"
            flag = "" if hit.known else "(no word of it is known) "
            lines.append(f"{line}  {flag}{_one_line(self._excerpt(hit))}".rstrip())
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """What ``boltzhash search --json`` prints."""
        return {
            "query": self.query,
            "by": self.by,
            "known_words": self.known_words,
            "hits": [self._hit_as_json(rank, hit) for rank, hit in enumerate(self.hits, start=1)],
        }

    def _hit_as_json(self, rank: int, hit: Hit) -> dict[str, Any]:
        shown: dict[str, Any] = {"rank": rank}
        if hit.score is not None:
            shown |= {"score": round(hit.score, 4), "words": round(hit.words or 0.0, 4)}
        shown |= {"distance": hit.distance, "id": hit.id}
        if hit.document is not None:
            shown["snippet"] = self._excerpt(hit)
        if hit.passage is not None:
            shown["passage"] = hit.passage._asdict()
        if not hit.known:
            shown["no_known_word"] = True
        return shown

    def _excerpt(self, hit: Hit) -> str:
        return snippet(without_title(hit.passage_text, str(hit.id)), self.query or "")


def _one_line(text: str) -> str:
    return printable(text).replace("\n", " ")
