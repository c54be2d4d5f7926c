"""A durable collection: it writes, and gives out snapshots that read. See docs/collections.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from boltzhash.collection.batches import CodedBatch, WriteBatch, coded_batch, write_batches
from boltzhash.collection.duplicates import MIN_SIMILARITY, DuplicateGroup
from boltzhash.collection.engines import create_store, open_store, parse_location
from boltzhash.collection.models import (
    Coder,
    check_cut_for,
    check_knows_words,
    check_made_by,
    check_reads_texts,
)
from boltzhash.collection.requests import check_wait
from boltzhash.collection.resuming import Trail, trail_of
from boltzhash.collection.snapshot import Snapshot
from boltzhash.collection.store import BATCH, OnBatch, Store, Transaction
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Documents, Id, check_id, checked_documents
from boltzhash.encoding.coding import Input, Query, inputs_of
from boltzhash.errors import CollectionBusyError
from boltzhash.hashers import Hasher
from boltzhash.hashers.shared.features import check_finite, check_rows
from boltzhash.search.hits import Answer
from boltzhash.threads import in_batches, in_threads

WAIT = 10.0  # seconds that a write waits for another process to finish writing


class Collection:
    """Documents that come and go, found by their words and their codes.

    Made with :meth:`create`, opened with :meth:`open`: in a folder or in PostgreSQL, with the same
    methods and answers. Whatever a method has acknowledged by returning is on disk. Any number of
    processes may read while one writes, and any number of threads may share a collection.

    Whatever reads is a method of :class:`boltzhash.collection.Snapshot`, one committed generation as a
    whole. ``search``, ``more_like``, ``within``, ``get``, ``stats``, ``len`` and iteration are here as
    well, each in a snapshot of the newest.

    Attributes
    ----------
    store : Store
        The engine, for whatever else is kept beside the documents.

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
        self.store = store
        self._coder = coder

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
        if it is of another format.
        """
        check_wait(wait)
        store = open_store(parse_location(location), wait)
        try:
            with closing(store.snapshot()) as snapshot:
                model = snapshot.state.model
                if hasher is not None:
                    check_made_by(hasher, model, store.shown)
                return cls(store, Coder(model, hasher or store.load_model(model)))
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Release what it holds; snapshots that are open can still be asked."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Collection {self.location}>"

    @property
    def location(self) -> str:
        """Where it is, without credentials."""
        return self.store.shown

    @property
    def hasher(self) -> Hasher:
        """The model that makes the codes."""
        with self.snapshot() as now:
            return now.hasher

    # Reading

    def snapshot(self) -> Snapshot:
        """The newest generation, to be closed after use: ``with collection.snapshot() as now: …``."""
        inner = self.store.snapshot()
        try:
            coder = self._coder_of(inner.state.model)
        except BaseException:
            inner.close()
            raise
        return Snapshot(inner, coder, self.store)

    def search(self, query: Query | None = None, k: int = 10, **how: Any) -> Answer:
        """The answer of :meth:`Snapshot.search` with the same arguments."""
        with self.snapshot() as now:
            return now.search(query, k, **how)

    def more_like(self, id: Id, k: int = 10, **how: Any) -> Answer:
        """The answer of :meth:`Snapshot.more_like` with the same arguments."""
        with self.snapshot() as now:
            return now.more_like(id, k, **how)

    def within(self, query: Query | None, radius: int, **how: Any) -> Answer:
        """The answer of :meth:`Snapshot.within` with the same arguments."""
        with self.snapshot() as now:
            return now.within(query, radius, **how)

    def get(self, id: Id) -> Document | None:
        """The document with that id, or None."""
        with self.snapshot() as now:
            return now.get(id)

    def stats(self) -> dict[str, Any]:
        """Documents, bits, model, generation, and bytes."""
        with self.snapshot() as now:
            return now.stats()

    def __contains__(self, id: object) -> bool:
        with self.snapshot() as now:
            return id in now

    def __len__(self) -> int:
        with self.snapshot() as now:
            return len(now)

    def __iter__(self) -> Iterator[Document]:
        """All documents in the order of insertion, as of the generation at the start."""
        documents = self._documents()
        next(documents)  # so that it has begun
        return documents  # type: ignore[return-value]  # whose first element is gone

    def _documents(self) -> Iterator[Document | None]:
        with self.snapshot() as now:
            yield None
            yield from now

    # Writing

    def add(self, documents: Documents, *, features: Any = None) -> int:
        """Add documents, dicts with ``id``, ``text`` and ``metadata`` (optional); returns how many.

        Or the rows of a data frame of pandas or polars, or of a dataset of Hugging Face, whose columns
        besides ``id`` and ``text`` are metadata (docs/data_frames.md).

        They are streamed, 1024 per transaction. An id that already exists, or twice in a batch, is
        a :class:`boltzhash.errors.DuplicateIdError`: nothing from that batch is added, the batches
        before it are.

        A model that was fitted with features makes the codes from ``features``, a float matrix
        (n_documents, n_columns) in the order of the documents; their texts, which may be empty, are
        found by their words. Nothing is added if it does not fit the model, if a number in it is not
        finite, or if a list has another number of documents; of a stream, where the numbers can be
        compared only at the end, nothing from the last batch is.
        """
        return self._write_batches(
            self._given(documents, features), lambda write, batch: write.add(batch.coded)
        )

    def upsert(self, documents: Documents, *, features: Any = None) -> int:
        """Add documents, or overwrite those whose id exists; they keep their place among ties."""
        return self._write_batches(
            self._given(documents, features), lambda write, batch: write.upsert(batch.coded)
        )

    def add_resumably(self, documents: Documents, name: str, *, features: Any = None) -> int:
        """Add documents; after an interruption the same call resumes after the last batch.

        ``name`` says what is being added. The collection remembers how far it got until everything is
        added; the same documents must come again in the same order, with the same features if there
        are any, or it is a :class:`boltzhash.errors.ChangedDocumentsError`. Returns how many this call
        added. ``snapshot().state.unfinished`` says what is unfinished.
        """
        remaining = self._given(documents, features)
        with self.snapshot() as now:
            came_to = now.state.unfinished
        goes_on = came_to is not None and came_to["name"] == name
        trail = trail_of(remaining, came_to) if came_to is not None and goes_on else Trail()

        def write(transaction: Transaction, batch: CodedBatch) -> None:
            trail.follow(batch.given)
            transaction.add(batch.coded)
            transaction.note_unfinished(trail.note(name))

        added = self._write_batches(remaining, write)
        with self.store.write() as transaction:
            transaction.note_unfinished(None)
        return added

    def delete(self, ids: Iterable[Id]) -> int:
        """Delete documents, all in one transaction; returns how many of the ids existed."""
        if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
            raise TypeError(f"ids must be a list of ids, got {ids!r}: put it into a list")
        checked = list(dict.fromkeys(check_id(id_) for id_ in ids))
        with self.store.write() as transaction:
            return transaction.delete(checked)

    def delete_duplicates(
        self,
        min_similarity: float = MIN_SIMILARITY,
        *,
        keep: str = "first",
        on_batch: OnBatch | None = None,
    ) -> list[DuplicateGroup]:
        """Delete all documents of :meth:`Snapshot.duplicates` but those to keep; returns the groups.

        All in one transaction; if anyone has written since they were found, nothing is deleted.
        """
        with self.snapshot() as now:
            version = now.state.version
            groups = now.duplicates(min_similarity, keep=keep, on_batch=on_batch)
        superfluous = [duplicate.id for group in groups for duplicate in group.duplicates]
        if superfluous:
            with self.store.write() as transaction:
                if transaction.state.version != version:
                    raise CollectionBusyError(
                        f"{self.location} was written to while duplicates were looked for: nothing was "
                        "deleted. Look again when nobody writes"
                    )
                transaction.delete(superfluous)
        return groups

    def rehash(self, hasher: Hasher, *, on_batch: OnBatch | None = None) -> None:
        """Switch to a new model. Until all new codes are there, searches use the old ones.

        After an interruption the same call resumes where it stopped. Others may write meanwhile.
        ``on_batch`` is told how many documents are done, and out of how many. The texts are hashed,
        so the new model cannot be one that was fitted with features, which are not kept; the old one
        can.
        """
        check_reads_texts(hasher)
        self.store.rehash(Coder(hasher.fingerprint(), hasher), BATCH, on_batch)

    def backup(self, path: str | Path) -> None:
        """A copy of one generation in a new folder, itself a collection."""
        target = Path(path)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileExistsError(f"{target} already exists: a backup goes into a new folder")
        self.store.backup(target)

    # Inside

    def _coder_of(self, model: str) -> Coder:
        coder = self._coder
        if coder.model != model:  # another client has rehashed
            coder = self._coder = Coder(model, self.store.load_model(model))
        return coder

    def _given(self, documents: Documents, features: Any) -> Iterator[Input]:
        """Documents with their vectors, those checked as a whole before anything is written."""
        hasher = self._coder.hasher
        if features is not None or hasher.n_feature_columns is not None:
            hasher = self.hasher  # another client may have rehashed
        dense = hasher.checked_features(features)
        if dense is not None:
            if isinstance(documents, list | tuple):
                check_rows(len(dense), len(documents))
            check_finite(dense)
        return inputs_of(checked_documents(documents), dense)

    def _write_batches(self, documents: Iterator[Input], write: WriteBatch) -> int:
        """Hash batches on all cores and write each in its own transaction, in order."""

        def code(given: list[Input]) -> CodedBatch:
            return coded_batch(self._coder, given, self.store.passages)

        batches = in_threads(code, in_batches(documents, BATCH))
        return write_batches(self.store, batches, self._coder_of, write)
