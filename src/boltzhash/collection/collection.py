"""A durable collection: what callers pass is checked here, a store keeps it. See docs/collections.md."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import numpy as np

from boltzhash.arguments import check_integer, check_number
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
from boltzhash.collection.engines import create_store, open_store, parse_location
from boltzhash.collection.export import write_codes_of, write_jsonl
from boltzhash.collection.facets import with_counts
from boltzhash.collection.filters import Condition, Where, parse_where
from boltzhash.collection.models import (
    Coder,
    check_cut_for,
    check_knows_words,
    check_made_by,
    check_reads_texts,
)
from boltzhash.collection.recall import held_out_queries, least_effort
from boltzhash.collection.requests import (
    SearchRequest,
    check_not_empty,
    check_radius,
    check_wait,
    check_wanted,
    checked_facets,
    checked_search,
)
from boltzhash.collection.resuming import Trail, trail_of
from boltzhash.collection.statistics import statistics
from boltzhash.collection.store import (
    BATCH,
    FieldValue,
    Mask,
    OnBatch,
    Places,
    Rows,
    Standing,
    Store,
    T,
    Write,
)
from boltzhash.collection.unmatched import FilterWarning, somewhere, why_empty
from boltzhash.corpus import Document, Fields
from boltzhash.corpus.documents import Documents, Id, Scalar, check_id, checked_documents
from boltzhash.encoding.coding import (
    Coded,
    CodedQuery,
    Given,
    Query,
    code_of,
    coded_documents,
    coded_queries,
    coded_query,
    given_documents,
    like_coded,
)
from boltzhash.encoding.model_files import ModelFile
from boltzhash.encoding.ray import documents_encoded_on_ray
from boltzhash.errors import CollectionBusyError
from boltzhash.hashers import Hasher
from boltzhash.hashers.shared.features import check_finite, check_rows
from boltzhash.search.hits import Answer, Hit
from boltzhash.search.order import n_nearest, reordered
from boltzhash.text.words import Words, words_of
from boltzhash.threads import in_batches, in_threads

_FIELDS = Fields(metadata=True)
WAIT = 10.0  # seconds that a write waits for another process to finish writing


class Collection:
    """Documents that come and go, found by their words and their codes.

    Made with :meth:`create`, opened with :meth:`open`: in a folder or in PostgreSQL, with the
    same methods and answers. Whatever a method has acknowledged by returning is on disk. Any number
    of processes may read while one writes; each search sees one committed generation as a whole, the
    newest when it began. Within a process many threads may use one collection; its operations
    take turns.

    Examples
    --------
    >>> import tempfile
    >>> from boltzhash import LSH
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> path = Path(tempfile.mkdtemp(), "collection")
    >>> with Collection.create(path, LSH(n_bits=64).fit(texts)) as collection:
    ...     n = collection.add(
    ...         {"id": f"doc-{i}", "text": text, "metadata": {"year": 2020 + i}}
    ...         for i, text in enumerate(texts)
    ...     )
    ...     answer = collection.search("bread and butter", k=3, where={"year": {">=": 2021}})
    >>> n, answer.ids[0], len(answer), answer.documents[0].metadata
    (4, 'doc-2', 3, {'year': 2022})
    """

    def __init__(self, store: Store, coder: Coder) -> None:
        self._store = store
        self._coder = coder
        self._lock = threading.RLock()
        self._is_open = True
        self._held: Standing | None = None
        self._ahead: tuple[str, dict[str, CodedQuery]] = "", {}  # by which model, and what

    @classmethod
    def create(
        cls,
        location: str | Path,
        hasher: Hasher,
        *,
        passages: int | None = None,
        wait: float = WAIT,
    ) -> Self:
        """A new, empty collection at ``location``, whose codes come from ``hasher``.

        The other arguments are those of :meth:`open`. With ``passages=200`` documents are cut into
        passages of about 200 words, now and whenever some are added, and found by the code of their
        nearest passage; a hit then says where to look. In a folder only (docs/long_documents.md).

        The model is kept with the documents, so that any client can open the collection. If it was
        fitted with features, such as sentence embeddings, documents and queries come with theirs;
        those are not kept (docs/embeddings.md).
        """
        check_knows_words(hasher)
        check_wait(wait)
        if passages is not None:
            check_cut_for(hasher, passages)
        coder = Coder(hasher.fingerprint(), hasher)
        return cls(create_store(parse_location(location), coder, wait, passages), coder)

    @classmethod
    def open(
        cls, location: str | Path, hasher: Hasher | None = None, *, wait: float = WAIT
    ) -> Self:
        """The collection at ``location``.

        Parameters
        ----------
        location : str or path
            A folder; ``"postgresql://host/database#name"`` (PostgreSQL with pgvector).
            Without ``#name`` a collection on a server is called
            "documents". Passwords are better left to the environment; see docs/scale.md.
        hasher : Hasher, optional
            The collection keeps its own model; a hasher that is given must be the same.
        wait : float
            How many seconds a write waits for another process to finish writing, before it gives up with
            :class:`boltzhash.errors.CollectionBusyError`.

        Raises :class:`boltzhash.errors.CollectionError` if there is no collection, if it is damaged, or
        if its format is not that of this boltzhash.
        """
        check_wait(wait)
        store = open_store(parse_location(location), wait)
        try:
            model = store.read(lambda standing: standing.model)
            if hasher is not None:
                check_made_by(hasher, model, store.shown)
            return cls(store, Coder(model, hasher or store.load_model(model)))
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Release what it holds; what was written is already on disk."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self._is_open:
            return f"<Collection {self.location}, closed>"
        now = self.standing()
        return f"<Collection {self.location}: {now.n_documents} documents, {now.n_bits} bits>"

    @property
    def location(self) -> str:
        """Where it is, without credentials."""
        return self._store.shown

    @property
    def passages(self) -> int | None:
        """About how many words a passage has, if documents are cut into passages; else None."""
        return self._store.passages

    @property
    def written_generation(self) -> int | None:
        """The generation that the last write of this object made, None if it has not written."""
        return self._store.written_generation

    @property
    def hasher(self) -> Hasher:
        """The model that makes the codes."""
        return self._read(self._hasher_of)

    @property
    def words(self) -> Words:
        """How texts are cut into the words that they are found by."""
        return words_of(self.hasher.language)

    # Writing

    def add(self, documents: Documents, *, features: Any = None) -> int:
        """Add documents, dicts with ``id``, ``text`` and ``metadata`` (optional); returns how many.

        Or the rows of a data frame of pandas or polars, or of a dataset of Hugging Face, whose columns
        besides ``id`` and ``text`` are metadata (docs/data_frames.md).

        They are streamed, 1024 per transaction. An id that is already there, or twice in a batch, is
        a :class:`boltzhash.errors.DuplicateIdError`: nothing from that batch is added, the batches
        before it are.

        A model that was fitted with features makes the codes from ``features``, a float matrix
        (n_documents, n_columns) in the order of the documents; their texts, which may be empty, are
        found by their words. Nothing is added if it does not fit the model, if a number in it is not
        finite, or if a list has another number of documents; of a stream, where the numbers can be
        compared only at the end, nothing from the last batch is.
        """
        return self._write_batches(self._given(documents, features), self._added)

    def upsert(self, documents: Documents, *, features: Any = None) -> int:
        """Add documents, or overwrite those whose id exists; they keep their place among ties."""
        return self._write_batches(self._given(documents, features), self._upserted)

    def add_resumably(self, documents: Documents, name: str, *, features: Any = None) -> int:
        """Add documents; after an interruption the same call resumes after the last batch.

        ``name`` says what is being added. The collection remembers how far it got until everything is
        added; the same documents must come again in the same order, with the same features if there
        are any, or it is a :class:`boltzhash.errors.ChangedDocumentsError`. Returns how many this call
        added.
        """
        remaining = self._given(documents, features)
        came_to = self.unfinished()
        goes_on = came_to is not None and came_to["name"] == name
        trail = trail_of(remaining, came_to) if came_to is not None and goes_on else Trail()

        def write(given: list[Given], batch: list[Coded]) -> None:
            trail.follow(given)
            self._store.add(batch)
            self._store.note_unfinished(trail.note(name))

        added = self._write_batches(remaining, write)
        self.forget_unfinished()
        return added

    def unfinished(self) -> dict[str, Any] | None:
        """What :meth:`add_resumably` left unfinished, or None.

        ``name``, ``done``, ``last_id``, and ``checksum``, that of the documents which are there.
        """
        found = self._read(lambda standing: standing.unfinished)
        return None if found is None else dict(found)  # an engine may keep its own

    def forget_unfinished(self) -> None:
        """Give up what :meth:`add_resumably` left unfinished; the documents that it added stay."""
        with self._open_lock():
            self._store.write(lambda _: self._store.note_unfinished(None))

    def add_from(
        self,
        paths: Iterable[str | Path],
        *,
        fields: Fields = _FIELDS,
        shards: str | Path | None = None,
    ) -> int:
        """Add the documents of JSONL, CSV or Parquet files, hashed on a Ray cluster; returns how many.

        If an id is already there its document is overwritten, so after an interruption the same
        call can be repeated. ``shards`` is a folder that every machine of the cluster sees; it keeps
        the codes until they are written. See :mod:`boltzhash.encoding.ray`. Codes that are made from
        features are not made there.
        """
        hasher, n = self.hasher, 0
        if self.passages is not None:
            raise ValueError(
                f"a cluster hashes whole documents, and {self.location} cuts them into passages: use add"
            )
        if hasher.n_feature_columns is not None:
            raise ValueError(
                f"a cluster hashes texts, and this {type(hasher).__name__} was fitted with features: "
                "use add(documents, features=…)"
            )
        coder = Coder(hasher.fingerprint(), hasher)
        with (
            documents_encoded_on_ray(hasher, paths, fields=fields, shards=shards) as batches,
            self._store.together() as commit,
        ):
            for batch in batches:
                given = [Given(coded.document) for coded in batch]
                with self._open_lock():
                    self._write_coded(_CodedBatch(coder, given, batch), self._upserted, commit)
                n += len(batch)
        return n

    def delete(self, ids: Iterable[Id]) -> int:
        """Delete documents, all in one transaction; returns how many of the ids were there."""
        if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
            raise TypeError(f"ids must be a list of ids, got {ids!r}: put it into a list")
        checked = list(dict.fromkeys(check_id(id_) for id_ in ids))
        with self._open_lock():
            return self._store.write(lambda _: self._store.delete(checked))

    def rehash(self, hasher: Hasher, *, on_batch: OnBatch | None = None) -> None:
        """Switch to a new model. Until all new codes are there, searches use the old ones.

        After an interruption the same call resumes where it stopped. Others may write meanwhile.
        ``on_batch`` is told how many documents are done, and out of how many. The texts are hashed,
        so the new model cannot be one that was fitted with features, which are not kept; the old one
        can.
        """
        check_reads_texts(hasher)
        with self._open_lock():
            self._store.rehash(Coder(hasher.fingerprint(), hasher), BATCH, on_batch)

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
        approximate: bool = False,
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
            "both"; "codes" if the query is a code or features alone, if ``order`` or ``approximate``
            is given; "words" if the model was fitted with features and the query comes without. The
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
        approximate : bool
            By codes: ask the index of :meth:`build_approximate`, which is faster and may miss
            documents.
        facets : list of str, optional
            Metadata fields whose values are counted over all documents that match: those that have a
            word of the query (and what ``where`` and the query demand), or by codes those that
            ``where`` lets through. The answer's ``facets`` has a
            :class:`boltzhash.collection.Facet` for each, and its ``total`` says how many match; an
            empty list counts these alone. By both, documents that only their codes bring are hits
            beyond those that match.
        """
        check_not_empty(query)
        counted = checked_facets(facets)
        checked = partial(
            checked_search, k=k, by=by, where=where, order=order, approximate=approximate
        )

        def answer(standing: Standing) -> Answer:
            hasher = self._hasher_of(standing)
            coded = self._coded(standing, query, features)
            request = checked(self._store, hasher, coded)
            matching: Mask | None = None
            if coded.text is None or request.by == "codes":
                hits = self._nearest(standing, coded, request)
            else:
                words = words_of(hasher.language)
                wanted = check_wanted(coded.text, words.query(coded.text))
                hits, matching = self._store.ranked(
                    coded, wanted, words, request.k, request.conditions, by=request.by
                )
            warning = self._why_empty(standing, coded, request.conditions, hits)
            found = Answer(
                hits, coded.text, coded.code, coded.known_words, request.by, coded.margins, warning
            )
            if counted is None:
                return found
            return with_counts(found, self._store, standing, request.conditions, matching, counted)

        return _pointed_out(self._read(answer))

    def code_ahead(self, texts: Sequence[str]) -> None:
        """Make the codes of texts that will be searched for next, all at once.

        A model codes sixteen texts in less than three times the time of one. The answers are the same.
        """
        with self._open_lock():
            model, hasher = self._coder
            self._ahead = model, dict(zip(texts, coded_queries(hasher, texts), strict=True))

    def _coded(self, standing: Standing, query: Query | None, features: Any) -> CodedQuery:
        model, ahead = self._ahead
        if features is None and isinstance(query, str) and model == standing.model:
            coded = ahead.get(query)
            if coded is not None:
                return coded
        return coded_query(self._hasher_of(standing), query, features)

    def more_like(
        self, id: Id, k: int = 10, *, by: str | None = None, where: Where | None = None
    ) -> Answer:
        """The k documents most like one of the collection, itself left out.

        They are found and ranked as :meth:`search` does it for a text, by the document's words and its
        code; its quotes and minuses mean nothing. Documents are compared as wholes, also where they are
        cut into passages. A code that was made from features is the one that
        is kept. KeyError if there is no such document.
        """
        found = self.find([id])
        if id not in found:
            raise KeyError(f"there is no document with the id {id!r} in {self.location}")
        checked = partial(checked_search, k=k, by=by, where=where, order=None, approximate=False)

        def answer(standing: Standing) -> Answer:
            hasher = self._hasher_of(standing)
            coded = like_coded(hasher, found[id])
            request = checked(self._store, hasher, coded)
            if request.by == "codes":
                hits = self._nearest(standing, coded, request._replace(k=k + 1), whole=True)
            else:
                words = words_of(hasher.language)
                wanted = words.like(found[id].document)
                hits, _ = self._store.ranked(
                    coded, wanted, words, k + 1, request.conditions, by=request.by, whole=True
                )
            others = [hit for hit in hits if hit.id != id][:k]
            warning = self._why_empty(standing, coded, request.conditions, hits)
            return Answer(
                others, None, coded.code, coded.known_words, request.by, coded.margins, warning
            )

        return _pointed_out(self._read(answer))

    def _why_empty(
        self, standing: Standing, coded: CodedQuery, conditions: list[Condition], hits: list[Hit]
    ) -> str | None:
        if hits or not conditions or not standing.n_documents:
            return None
        return why_empty(self._store, somewhere(coded.code, standing.n_bits), conditions)

    def _nearest(
        self,
        standing: Standing,
        coded: CodedQuery,
        request: SearchRequest,
        *,
        whole: bool = False,
    ) -> list[Hit]:
        effort = None
        if request.approximate:
            if standing.approximate is None:
                raise ValueError(
                    f"{self.location} has no approximate index: call build_approximate"
                )
            effort = standing.approximate["effort"]
        hasher = self._hasher_of(standing)
        hits = self._store.top_k(
            code_of(hasher, coded),
            n_nearest(request.order, request.k),
            request.conditions,
            effort=effort,
            whole=whole,
        )
        return reordered(request.order, coded, hits, hasher)[: request.k]

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
        check_radius(radius)
        conditions = parse_where(where)

        def answer(standing: Standing) -> Answer:
            hasher = self._hasher_of(standing)
            coded = coded_query(hasher, query, features)
            hits = self._store.within(code_of(hasher, coded), radius, conditions)
            warning = self._why_empty(standing, coded, conditions, hits)
            return Answer(hits, coded.text, coded.code, coded.known_words, warning=warning)

        return _pointed_out(self._read(answer))

    def is_duplicate(self, text: str, min_similarity: float = MIN_SIMILARITY) -> bool:
        """Whether there is a document of which this text is a near-duplicate; see :meth:`duplicates`.

        The rarest words of the text find what to compare, and miss nothing.
        """
        check_duplicates(min_similarity, "first")
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")

        is_near = near_duplicates_of(text, min_similarity)

        def answer(standing: Standing) -> bool:
            words = words_of(self._hasher_of(standing).language)
            found = self._store.may_be_near(text, words, min_similarity)
            return any(is_near(document.text) for document in found)

        return self._read(answer)

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
        return self._read(
            lambda now: duplicate_groups(self._texts(now, keep, on_batch), min_similarity)
        )

    def delete_duplicates(
        self,
        min_similarity: float = MIN_SIMILARITY,
        *,
        keep: str = "first",
        on_batch: OnBatch | None = None,
    ) -> list[DuplicateGroup]:
        """Delete all documents of :meth:`duplicates` but those to keep; returns the groups.

        All in one transaction; if anyone has written since they were found, nothing is deleted.
        """
        check_duplicates(min_similarity, keep)

        def found(now: Standing) -> tuple[int, list[DuplicateGroup]]:
            texts = self._texts(now, keep, on_batch)
            return now.generation, duplicate_groups(texts, min_similarity)

        generation, groups = self._read(found)
        superfluous = [duplicate.id for group in groups for duplicate in group.duplicates]

        def delete(now: Standing) -> int:
            if now.generation != generation:
                raise CollectionBusyError(
                    f"{self.location} was written to while duplicates were looked for: nothing was "
                    "deleted. Look again when nobody writes"
                )
            return self._store.delete(superfluous)

        if superfluous:
            with self._open_lock():
                self._store.write(delete)
        return groups

    def _texts(self, standing: Standing, keep: str, on_batch: OnBatch | None) -> Texts:
        total = standing.n_documents

        def documents() -> Iterator[Document]:
            for done, coded in enumerate(self._store.coded_here(), start=1):
                yield coded.document
                if on_batch is not None and (done % BATCH == 0 or done == total):
                    on_batch(done, total)

        texts = read_texts(documents(), keep)
        if on_batch is None:
            return texts
        return texts.watched(BATCH, partial(on_batch, total, total))

    def build_approximate(
        self,
        queries: Iterable[str] | None = None,
        *,
        k: int = 10,
        recall: float = 0.95,
        features: Any = None,
    ) -> dict[str, Any]:
        """Build the engine's approximate index and measure its recall, which ``stats`` then states.

        ``queries`` are texts that are not in the collection; without them, halves of 200 documents
        are used. A model that was fitted with features needs ``features`` of such queries, a row each.
        The recall is the share of the k nearest that it finds; any document as near as
        the true k-th counts. Searches look at as much as it takes to find ``recall`` of them, or at the
        most that the engine allows. What was found is kept with the collection, along with how it was
        measured.
        """
        check_integer("k", k, 1, "an integer of 1 or more")
        check_number("recall", recall, above=0, at_most=1)
        hasher, texts = self.hasher, None if queries is None else list(queries)
        if features is None and hasher.n_feature_columns is None and texts is None:
            texts = held_out_queries(iter(self))
        if texts == []:
            raise ValueError(
                "there is nothing to measure the recall with: no documents, no queries"
            )
        codes = hasher.encode(texts, features=features)
        with self._open_lock():
            index, efforts = self._store.build_index()

            def measure(standing: Standing) -> dict[str, Any]:
                def nearest(query: int, effort: int | None) -> list[int]:
                    hits = self._store.top_k(codes[query], k, [], effort=effort)
                    return [hit.distance for hit in hits if hit.distance is not None]

                found = least_effort(nearest, len(codes), efforts, recall)
                how = {"k": k, "queries": len(codes), "generation": standing.generation}
                reached = {"effort": found.effort, "recall": round(found.recall, 4)}
                return {**index, **reached, **how}

            about = self._store.read(measure)
            self._store.note_approximate(about)
        return about

    # Reading

    def get(self, id: Id) -> Document | None:
        """The document with that id, or None."""
        found = self.find([id]).get(check_id(id))
        return found.document if found is not None else None

    def find(self, ids: Iterable[Id]) -> dict[Id, Coded]:
        """Those of the documents with these ids that exist, with their codes."""
        checked = [check_id(id_) for id_ in ids]
        return self._read(lambda _: self._store.find(checked))

    def __contains__(self, id: object) -> bool:
        try:
            return self.get(id) is not None  # type: ignore[arg-type]  # checked there
        except (TypeError, ValueError):
            return False  # what cannot be an id cannot be there

    def __len__(self) -> int:
        return self.standing().n_documents

    def __iter__(self) -> Iterator[Document]:
        """All documents in the order of insertion, as of the generation at the start."""
        with self._open_lock():
            return self._store.documents()

    def matching(self, where: Where) -> list[Document]:
        """All documents that a filter lets through, in the order of insertion; see docs/filters.md."""
        conditions = parse_where(where)

        def found(_: Standing) -> list[Document]:
            return self._store.documents_at(np.flatnonzero(self._store.passing(conditions)))

        return self._read(found)

    def rows(self) -> Rows:
        """All places with their codes, in the order of insertion."""
        return self._read(lambda _: self._store.rows())

    def page(self, after: int, n: int) -> list[tuple[int, Coded]]:
        """The next n documents after a place, in the order of insertion, with their places.

        Places begin at 1 and are never given out twice, so a walk through the collection, from 0 on,
        sees everything that stays in it, whatever is written meanwhile.
        """
        return self._read(lambda _: self._store.page(after, n))

    def documents_at(self, places: Places) -> list[Document]:
        """The documents at places in the order of insertion, an int64 array of shape (n,)."""
        return self._read(lambda _: self._store.documents_at(places))

    def ids_at(self, places: Places) -> list[Id | None]:
        """The ids at places, an int64 array of shape (n,); None if a document is gone."""
        return self._read(lambda _: self._store.ids_at(places))

    def field_values(self, most: int) -> dict[str, list[FieldValue]]:
        """The commonest values of each metadata field, at most ``most``, with their counts."""
        return self._read(lambda _: self._store.field_values(most))

    def values_of(self, field: str) -> dict[int, Scalar]:
        """The value of one metadata field by place, if it is a string, a number or a boolean."""
        return self._read(lambda _: self._store.values_of(field))

    def standing(self) -> Standing:
        """Generation, number of documents, model and what is under way."""
        return self._read(lambda standing: standing)

    def in_one_generation(self, work: Callable[[], T]) -> T:
        """What ``work`` returns; all that it asks of this collection is true of one generation.

        It must not write, and it may be called again.

        >>> import tempfile
        >>> from boltzhash import LSH
        >>> hasher = LSH(n_bits=64).fit(["stars and planets", "bread and butter"])
        >>> with Collection.create(tempfile.mkdtemp() + "/c", hasher) as collection:
        ...     n = collection.add([{"id": 1, "text": "stars"}])
        ...     collection.in_one_generation(lambda: (len(collection), collection.search("stars").ids))
        (1, [1])
        """
        return self._read(lambda _: work())

    # Keeping

    def stats(self) -> dict[str, Any]:
        """Documents, bits, model, generation, the recall of approximate search, and bytes."""

        return self._read(lambda now: statistics(self._store, now, self._hasher_of(now)))

    def drift(self) -> Drift | None:
        """How far the latest 1,000 documents are from those that the model was fitted on.

        :class:`boltzhash.collection.drift.Drift` says what is compared, docs/drift.md from where on
        fitting again is worth it. None if there are no documents.
        """
        return self._read(
            lambda now: measured_drift(self._hasher_of(now), self._store.latest(LATEST))
        )

    def check(self) -> None:
        """Read everything and compare it with what was written; raises if something is damaged.

        In a folder codes have checksums. On a server they are made again from the texts; those that
        were made from features, which are not kept, are only counted.
        """
        self._read(lambda standing: self._store.check(self._hasher_of(standing)))

    def backup(self, path: str | Path) -> None:
        """A copy of one generation in a new folder, itself a collection."""
        target = Path(path)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileExistsError(f"{target} already exists: a backup goes into a new folder")
        with self._open_lock():
            self._store.backup(target)

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

        def read(standing: Standing) -> tuple[Rows, list[Id], str]:
            rows = self._store.rows()
            ids = [id_ for id_ in self._store.ids_at(rows.places) if id_ is not None]
            return rows, ids, standing.model

        rows, ids, model = self._read(read)
        write_codes_of(rows, ids, model, Path(path))
        return len(ids)

    def save_files(self, name: str, files: Sequence[ModelFile]) -> None:
        """Keep files beside the documents, such as their map; replaces earlier ones with that name."""
        with self._open_lock():
            self._store.save_files(name, files)

    def load_files(self, name: str) -> list[ModelFile]:
        """What :meth:`save_files` was given last under that name."""
        with self._open_lock():
            return self._store.load_files(name)

    def files_version(self, name: str) -> str | None:
        """Changes with each :meth:`save_files`; None if there are no files with that name."""
        with self._open_lock():
            return self._store.files_version(name)

    # Inside

    @contextmanager
    def _open_lock(self) -> Iterator[None]:
        with self._lock:
            if not self._is_open:
                raise ValueError(f"the collection {self.location} is closed")
            yield

    def _read(self, answer: Callable[[Standing], T]) -> T:
        with self._open_lock():
            if self._held is not None:  # inside in_one_generation, or another read
                return answer(self._held)
            return self._store.read(partial(self._hold, answer))

    def _hold(self, answer: Callable[[Standing], T], standing: Standing) -> T:
        self._held = standing
        try:
            return answer(standing)
        finally:
            self._held = None

    def _hasher_of(self, standing: Standing) -> Hasher:
        if standing.model != self._coder.model:  # another client has rehashed
            self._coder = Coder(standing.model, self._store.load_model(standing.model))
        return self._coder.hasher

    def _given(self, documents: Documents, features: Any) -> Iterator[Given]:
        """Documents with their vectors, those checked as a whole before anything is written."""
        hasher = self._coder.hasher
        if features is not None or hasher.n_feature_columns is not None:
            hasher = self.hasher  # another client may have rehashed
        dense = hasher.checked_features(features)
        if dense is not None:
            if isinstance(documents, list | tuple):
                check_rows(len(dense), len(documents))
            check_finite(dense)
        return given_documents(checked_documents(documents), dense)

    def _added(self, given: list[Given], batch: list[Coded]) -> None:
        self._store.add(batch)

    def _upserted(self, given: list[Given], batch: list[Coded]) -> None:
        self._store.upsert(batch)

    def _write_batches(self, documents: Iterator[Given], write: _WriteBatch) -> int:
        """Hash batches on all cores and write each in its own transaction, in order."""
        n = 0
        with self._store.together() as commit:
            for batch in in_threads(self._code, in_batches(documents, BATCH)):
                with self._open_lock():
                    self._write_coded(batch, write, commit)
                n += len(batch.given)
        return n

    def _code(self, given: list[Given]) -> _CodedBatch:
        coder = self._coder
        coded = coded_documents(coder.hasher, given, passages=self.passages)
        return _CodedBatch(coder, given, coded)

    def _write_coded(self, batch: _CodedBatch, write: _WriteBatch, commit: Write) -> None:
        """Write in one transaction; hash again if another client has rehashed meanwhile."""
        while not commit(partial(_write_if, batch=batch, write=write)):
            self._store.read(self._hasher_of)
            batch = self._code(batch.given)


class _CodedBatch(NamedTuple):
    """Documents as they were given, and as a model has coded them."""

    coder: Coder
    given: list[Given]
    coded: list[Coded]


_WriteBatch = Callable[[list[Given], list[Coded]], None]


def _pointed_out(answer: Answer) -> Answer:
    if answer.warning is not None:
        warnings.warn(answer.warning, FilterWarning, stacklevel=3)
    return answer


def _write_if(standing: Standing, *, batch: _CodedBatch, write: _WriteBatch) -> bool:
    """Write codes if they are of the collection's model; False if they are not."""
    if standing.model != batch.coder.model:
        return False
    write(batch.given, batch.coded)
    return True
