"""One generation of a collection: everything that reads. See docs/collections.md."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from boltzhash.arguments import Integer, check
from boltzhash.collection.columns import Column
from boltzhash.collection.drift import LATEST, Drift, measured_drift
from boltzhash.collection.duplicates import (
    MIN_SIMILARITY,
    DuplicateGroup,
    Texts,
    check_duplicates,
    duplicate_groups,
    near_duplicates_of,
    read_texts,
)
from boltzhash.collection.export import write_codes_of, write_jsonl
from boltzhash.collection.facets import with_counts
from boltzhash.collection.filters import Condition, Where, parse_where
from boltzhash.collection.models import Coder
from boltzhash.collection.requests import (
    SearchRequest,
    check_wanted,
    checked_search,
)
from boltzhash.collection.store import (
    BATCH,
    FORMAT_VERSION,
    FieldValue,
    Mask,
    OnBatch,
    Places,
    Rows,
    State,
    Store,
    StoreSnapshot,
    all_coded,
)
from boltzhash.collection.unmatched import FilterWarning, somewhere, why_empty
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id, check_id
from boltzhash.encoding.coding import Coded, CodedQuery, Query, code_of, coded_query, like_coded
from boltzhash.search.hits import Answer, Hit
from boltzhash.search.order import n_nearest, reordered
from boltzhash.text.queries import like, parsed


class Snapshot:
    """One generation of a collection, opened with :meth:`Collection.snapshot`.

    It never changes, whatever others write, and threads may share it. Until it is closed, or the
    ``with`` block ends, it keeps a connection and the engine keeps what it reads.

    Attributes
    ----------
    state : State
        Generation, number of documents, model and work in progress.
    hasher : Hasher
        The model that made the codes.
    words : Analyzer
        Cuts texts into the words that they are found by.
    store : Store
        The engine, for whatever else is kept beside the documents.

    Examples
    --------
    >>> import tempfile
    >>> from boltzhash import LSH
    >>> from boltzhash.collection import Collection
    >>> hasher = LSH(n_bits=64).fit(["stars and planets", "bread and butter"])
    >>> with Collection.create(tempfile.mkdtemp() + "/c", hasher) as collection:
    ...     n = collection.add([{"id": 1, "text": "stars"}])
    ...     with collection.snapshot() as before:
    ...         n = collection.delete([1])
    ...         before.generation, len(before), before.search("stars").ids
    (1, 1, [1])
    """

    def __init__(self, inner: StoreSnapshot, coder: Coder, store: Store) -> None:
        self._inner = inner
        self.state: State = inner.state
        self.hasher = coder.hasher
        self.words = coder.words
        self.store = store

    def close(self) -> None:
        """Release what it holds; it cannot be asked any more."""
        self._inner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._inner.close()

    def __repr__(self) -> str:
        return f"<Snapshot of {self.location}, generation {self.generation}>"

    @property
    def generation(self) -> int:
        """Raised by every write."""
        return self.state.generation

    @property
    def location(self) -> str:
        """The collection's, without credentials."""
        return self.store.shown

    @property
    def passages(self) -> int | None:
        """About how many words a passage has, if documents are cut into passages; else None."""
        return self.store.passages

    # Searching

    def search(
        self,
        query: Query | None = None,
        k: int = 10,
        *,
        features: Any = None,
        by: str | None = None,
        where: Where | None = None,
        order: str | None = None,
        facets: Sequence[str] | None = None,
    ) -> Answer:
        """The k documents that answer a text best, by its words and its code; or the nearest to a code.

        Parameters
        ----------
        query : str, or uint8 array (n_bits / 8,)
            In a text a phrase in quotes must occur, and a word after a minus must not.
        k : int
            Fewer are found if ``where`` allows fewer.
        features : float array (n_columns,), optional
            The query's vector, if the model was fitted with features: codes are compared with the code
            of that. Words are compared with the query, which may then be left out.
        by : {"both", "words", "codes"}, optional
            What documents are found and ranked by: words and codes in one score
            (:mod:`boltzhash.search.relevance`), words alone (BM25), or codes alone. By default
            "both"; "codes" if the query is a code or features alone, or if ``order`` is
            given; "words" if the model was fitted with features and the query comes without. The
            answer says which.
        where : dict, optional
            Filters by metadata before the cut at k, for example
            ``{"year": 2020, "lang": ["de", "en"], "price": {">=": 3}}``; docs/filters.md shows
            the rest. If it finds nothing since no document has such a field, or such a kind of value
            in it, the answer's ``warning`` says so, and a
            :class:`boltzhash.collection.FilterWarning` is issued.
        order : {"distance", "confidence", "words"}, optional
            By codes: the order of the nearest 500. By Hamming distance (the default); by bits weighted
            by how sure the model is of the query's; or by the tf-idf cosine of their texts.
        facets : list of str, optional
            Metadata fields whose values are counted over all documents that match: those that have a
            word of the query (and what ``where`` and the query demand), or by codes those that
            ``where`` lets through. The answer's ``facets`` has a
            :class:`boltzhash.collection.Facet` for each, and its ``total`` says how many match; an
            empty list counts these alone. By both, documents that only their codes bring are hits
            beyond those that match.
        """
        if isinstance(query, str) and not query.strip():
            raise ValueError("the query is empty: give a text to search for")
        coded = coded_query(self.hasher, query, features)
        request = checked_search(
            *(self.hasher, coded, k),
            by=by,
            where=where,
            order=order,
            facets=facets,
        )
        matching: Mask | None = None
        if coded.text is None or request.by == "codes":
            hits = self._nearest(coded, request)
        else:
            words = self.words
            wanted = check_wanted(coded.text, parsed(coded.text, words))
            hits, matching = self._inner.ranked(
                coded, wanted, words, request.k, request.conditions, by=request.by
            )
        answer = self._answer(hits, coded, request.conditions, request.by)
        if request.facets is not None:
            answer = with_counts(answer, self._inner, request.conditions, matching, request.facets)
        return _pointed_out(answer)

    def more_like(
        self, id: Id, k: int = 10, *, by: str | None = None, where: Where | None = None
    ) -> Answer:
        """The k documents most like one of the collection, itself left out.

        They are found and ranked as :meth:`search` does it for a text, by the document's words and its
        code; its quotes and minuses mean nothing. Documents are compared as wholes, also where they are
        cut into passages. A code that was made from features is the one that
        is kept. KeyError if there is no such document.
        """
        found = self.find([id]).get(id)
        if found is None:
            raise KeyError(f"there is no document with the id {id!r} in {self.location}")
        coded = like_coded(self.hasher, found)
        request = checked_search(self.hasher, coded, k, by=by, where=where)
        if request.by == "codes":
            hits = self._nearest(coded, request._replace(k=k + 1), whole=True)
        else:
            words, asked = self.words, request.conditions
            wanted = like(found.document, words)
            hits, _ = self._inner.ranked(
                coded, wanted, words, k + 1, asked, by=request.by, whole=True
            )
        others = [hit for hit in hits if hit.id != id][:k]
        answer = self._answer(others, coded._replace(text=None), request.conditions, request.by)
        return _pointed_out(answer)

    def within(
        self,
        query: Query | None,
        radius: int,
        *,
        features: Any = None,
        where: Where | None = None,
    ) -> Answer:
        """All documents whose codes are at most ``radius`` bits away, nearest first.

        ``features`` is as in :meth:`search`; with it the query may be None.
        """
        check("radius", radius, Integer(0))
        conditions = parse_where(where)
        coded = coded_query(self.hasher, query, features)
        hits = self._inner.within(code_of(self.hasher, coded), radius, conditions)
        answer = self._answer(hits, coded._replace(margins=None), conditions, "codes")
        return _pointed_out(answer)

    def _nearest(
        self, coded: CodedQuery, request: SearchRequest, *, whole: bool = False
    ) -> list[Hit]:
        hits = self._inner.top_k(
            code_of(self.hasher, coded),
            n_nearest(request.order, request.k),
            request.conditions,
            whole=whole,
        )
        return reordered(request.order, coded, hits, self.hasher)[: request.k]

    def _answer(
        self, hits: list[Hit], coded: CodedQuery, conditions: list[Condition], by: str
    ) -> Answer:
        warning = None
        if not hits and conditions and self.state.n_documents:
            warning = why_empty(self._inner, somewhere(coded.code, self.state.n_bits), conditions)
        return Answer(hits, coded.text, coded.code, coded.known_words, by, coded.margins, warning)

    # Reading

    def get(self, id: Id) -> Document | None:
        """The document with that id, or None."""
        found = self.find([id]).get(id)
        return found.document if found is not None else None

    def find(self, ids: Iterable[Id]) -> dict[Id, Coded]:
        """Those of the documents with these ids that exist, with their codes."""
        return self._inner.find([check_id(id_) for id_ in ids])

    def __contains__(self, id: object) -> bool:
        try:
            return self.get(id) is not None  # type: ignore[arg-type]  # checked there
        except (TypeError, ValueError):
            return False  # what cannot be an id cannot be there

    def __len__(self) -> int:
        return self.state.n_documents

    def __iter__(self) -> Iterator[Document]:
        """All documents in the order of insertion."""
        return (coded.document for coded in all_coded(self._inner))

    def matching(self, where: Where) -> list[Document]:
        """All documents that a filter lets through, in the order of insertion; see docs/filters.md."""
        return self.documents_at(np.flatnonzero(self._inner.passing(parse_where(where))))

    def rows(self) -> Rows:
        """All places with their codes, in the order of insertion."""
        return self._inner.rows()

    def page(self, after: int, n: int) -> list[tuple[int, Coded]]:
        """The next n documents after a place, in the order of insertion, with their places.

        Places begin at 1 and are never given out twice, so a walk through the collection, from 0 on,
        sees everything that stays in it, whatever is written meanwhile.
        """
        return self._inner.page(after, n)

    def documents_at(self, places: Places) -> list[Document]:
        """The documents at places in the order of insertion, an int64 array of shape (n,)."""
        return self._inner.documents_at(places)

    def ids_at(self, places: Places) -> list[Id | None]:
        """The ids at places, an int64 array of shape (n,); None if a document is gone."""
        return self._inner.ids_at(places)

    def field_values(self, most: int) -> dict[str, list[FieldValue]]:
        """The commonest values of each metadata field, at most ``most``, with their counts."""
        return self._inner.field_values(most)

    def column(self, field: str) -> Column:
        """All values of one metadata field, with the places of the documents that have them."""
        return self._inner.column(field)

    # Duplicates

    def is_duplicate(self, text: str, min_similarity: float = MIN_SIMILARITY) -> bool:
        """Whether there is a document of which this text is a near-duplicate; see :meth:`duplicates`.

        True is certain: texts have been compared. The rarest words of the text find what to compare,
        and miss nothing.
        """
        check_duplicates(min_similarity, "first")
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        is_near = near_duplicates_of(text, min_similarity)
        found = self._inner.may_be_near(text, self.words, min_similarity)
        return any(is_near(document.text) for document in found)

    def duplicates(
        self,
        min_similarity: float = MIN_SIMILARITY,
        *,
        keep: str = "first",
        on_batch: OnBatch | None = None,
    ) -> list[DuplicateGroup]:
        """All groups of near-duplicates: a document to keep, and those that are near it.

        Similarity is Jaccard's of the texts' word trigrams (:mod:`boltzhash.text.shingles`); codes
        play no part. Documents are gone through in the order of ``keep``: one that is at least
        ``min_similarity`` to a document already kept joins the most similar of those, any other is
        kept. So no two documents that are kept are near-duplicates, and none is missed. Texts of one
        template that differ in a field are none, however similar.

        Parameters
        ----------
        min_similarity : float
            Above 0, up to 1: the same trigrams.
        keep : {"first", "longest", "newest"}
            Which one is kept: that inserted first or last, or that with the longest text.
        on_batch : callable, optional
            Is told how many documents have been read, and out of how many; and the same again now and
            then while they are compared. What it raises ends the work.
        """
        check_duplicates(min_similarity, keep)
        return duplicate_groups(self._texts(keep, on_batch), min_similarity)

    def _texts(self, keep: str, on_batch: OnBatch | None) -> Texts:
        total = len(self)

        def documents() -> Iterator[Document]:
            for done, document in enumerate(self, start=1):
                yield document
                if on_batch is not None and (done % BATCH == 0 or done == total):
                    on_batch(done, total)

        texts = read_texts(documents(), keep)
        if on_batch is None:
            return texts
        return texts.watched(BATCH, partial(on_batch, total, total))

    # Keeping

    def stats(self) -> dict[str, Any]:
        """Documents, bits, model, generation, and bytes."""
        now, counts, size = self.state, self._inner.counts(), self._inner.sizes()
        n, passages = now.n_documents, {"words": self.passages, "passages": counts.passages}
        return {
            "documents": n,
            "no_known_word": counts.no_known_word,
            "bits": now.n_bits,
            "method": type(self.hasher).__name__,
            "passages": passages if self.passages is not None else None,
            "features": self.hasher.n_feature_columns,
            "model": now.model,
            "generation": now.generation,
            "format_version": FORMAT_VERSION,
            "unfinished": now.unfinished,
            "rehash": {"model": now.next_model, "documents": counts.rehashed}
            if now.next_model
            else None,
            "bytes": size,
            "bytes_per_document": {
                part: round(number / n, 1)
                for part, number in size.items()
                if n and part != "models"
            },
        }

    def drift(self) -> Drift | None:
        """How far the latest 1,000 documents are from those that the model was fitted on.

        :class:`boltzhash.collection.drift.Drift` says what is compared, docs/drift.md when to refit.
        None if there are no documents.
        """
        return measured_drift(self.hasher, self._inner.latest(LATEST))

    def check(self) -> None:
        """Read everything and compare it with what was written; raises if something is damaged.

        In a folder codes have checksums. On a server they are made again from the texts; those that
        were made from features, which are not kept, are only counted.
        """
        self._inner.check(self.hasher)

    def export(self, target: str | Path | IO[str]) -> int:
        """Write all documents as JSONL, one ``{"id", "text", "metadata"}`` per line; returns how many.

        ``target`` is the file to write, or one that is open.
        """
        return write_jsonl(iter(self), Path(target) if isinstance(target, str | Path) else target)

    def export_codes(self, path: str | Path) -> int:
        """Write all codes with their ids; returns how many.

        A folder as ``boltzhash encode`` writes it (codes.npy and ids.jsonl), or a Parquet file with the
        columns id, code and known (whether the model knew a word) if ``path`` ends in ``.parquet``.
        """
        rows = self.rows()
        ids = [id_ for id_ in self.ids_at(rows.places) if id_ is not None]
        write_codes_of(rows, ids, self.state.model, Path(path))
        return len(ids)


def _pointed_out(answer: Answer) -> Answer:
    """Issue the answer's warning where the library was called."""
    if answer.warning is not None:
        level, frame = 1, sys._getframe()
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
            "boltzhash."
        ):
            level, frame = level + 1, frame.f_back
        warnings.warn(answer.warning, FilterWarning, stacklevel=level)
    return answer
