"""A collection on an engine that scales: the verbs of the embedded one. docs/scale.md tells when."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from boltzhash.arguments import check_integer
from boltzhash.collection import maintenance
from boltzhash.collection.addresses import Address, check_name, parse_address
from boltzhash.collection.answers import Matches
from boltzhash.collection.documents import Id, check_id, checked_documents
from boltzhash.collection.duplicates import duplicate_groups
from boltzhash.collection.embedded import BATCH, CANDIDATES, WAIT, Documents
from boltzhash.collection.filters import Where, parse_where
from boltzhash.collection.models import check_reads_texts
from boltzhash.collection.queries import HashedQuery, Query, hash_query, reranked
from boltzhash.collection.recall import held_out_queries, measured_recall
from boltzhash.collection.store import FORMAT_VERSION, Found, Standing, Store
from boltzhash.collection.writes import Coded
from boltzhash.corpus import Document
from boltzhash.errors import CollectionError
from boltzhash.hashers import Hasher


class ConnectedCollection:
    """Documents that come and go, kept and compared by PostgreSQL or Milvus.

    Made by :meth:`boltzhash.collection.Collection.connect`; the verbs, their answers and their order
    are those of :class:`boltzhash.collection.Collection`. One more: :meth:`build_approximate`, after
    which ``search(..., approximate=True)`` is faster and may miss documents.
    """

    def __init__(self, store: Store, name: str, hasher: Hasher | None) -> None:
        self.name = name
        self._store = store
        self._lock = threading.RLock()
        self._is_open = True
        try:
            model = store.read(lambda standing: standing.model)
            if hasher is not None and hasher.fingerprint() != model:
                raise CollectionError(
                    f"{store.shown} was made by another model (fingerprint {model[:16]}…, this one "
                    f"has {hasher.fingerprint()[:16]}…): open it with that, or rehash it"
                )
            self._hasher = hasher if hasher is not None else store.load_model(model)
            self._model = model
        except BaseException:
            store.close()
            raise

    def __repr__(self) -> str:
        return f"<collection {self._store.shown}>"

    def close(self) -> None:
        with self._lock:
            if self._is_open:
                self._is_open = False
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def hasher(self) -> Hasher:
        """The model that makes the codes."""
        with self._open_lock():
            return self._store.read(self._hasher_of)

    # Writing

    def add(self, documents: Documents) -> int:
        """Add documents; see :meth:`boltzhash.collection.Collection.add`."""
        return self._write_batches(documents, self._store.add)

    def upsert(self, documents: Documents) -> int:
        """Add documents, or overwrite those whose id is there; they keep their place among ties."""
        return self._write_batches(documents, self._store.upsert)

    def add_from(
        self,
        paths: Iterable[str | Path],
        *,
        text_field: str = "text",
        id_field: str | None = None,
        metadata: bool | Sequence[str] = True,
        shards: str | Path | None = None,
    ) -> int:
        """Add files hashed on Ray; see :meth:`boltzhash.collection.Collection.add_from`."""
        from boltzhash.cluster import add_from

        hasher = self.hasher
        return add_from(
            hasher,
            paths,
            partial(self._upsert_coded, hasher.fingerprint()),
            text_field=text_field,
            id_field=id_field,
            metadata=metadata,
            shards=shards,
        )

    def delete(self, ids: Iterable[Id]) -> int:
        """Delete documents; returns how many of the ids were there."""
        if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
            raise TypeError(f"ids must be a list of ids, got {ids!r}: put it into a list")
        checked = list(dict.fromkeys(check_id(id_) for id_ in ids))
        with self._open_lock():
            return self._store.write(lambda _: self._store.delete(checked))

    def rehash(
        self, hasher: Hasher, *, on_batch: Callable[[int, int], object] | None = None
    ) -> None:
        """Go over to a new model. Until all new codes are there, searches use the old ones."""
        check_reads_texts(hasher)
        with self._open_lock():
            self._store.rehash(hasher, BATCH, on_batch)

    def build_approximate(
        self, queries: Iterable[str] | None = None, *, k: int = 10
    ) -> dict[str, Any]:
        """Build the engine's approximate index and measure its recall, which ``stats`` then states.

        ``queries`` are texts that are not in the collection; without them 200 halves of documents
        are taken. The recall is the share of the k nearest that it finds, where any document that is
        as near as the true k-th counts. It is kept with the collection, and how it was measured.
        """
        check_integer("k", k, 1, "an integer of 1 or more")
        texts = list(queries) if queries is not None else held_out_queries(iter(self))
        if not texts:
            raise ValueError(
                "there is nothing to measure the recall with: no documents, no queries"
            )
        with self._open_lock():
            index = self._store.build_index()
            codes = self._store.read(self._hasher_of).transform(texts)

            def measure(standing: Standing) -> tuple[int, float]:
                def nearest(query: int, approximate: bool) -> list[int]:
                    hits = self._store.top_k(codes[query], k, [], approximate=approximate)
                    return [hit.distance for hit in hits]

                return standing.generation, measured_recall(nearest, len(texts))

            generation, recall = self._store.read(measure)
            about = {
                **index,
                "recall": round(recall, 4),
                "k": k,
                "queries": len(texts),
                "generation": generation,
            }
            self._store.note_approximate(about)
        return about

    # Reading

    def search(
        self,
        query: Query,
        k: int = 10,
        *,
        where: Where | None = None,
        rerank: bool | int = False,
        approximate: bool = False,
    ) -> Matches:
        """The k nearest; see :meth:`boltzhash.collection.Collection.search`.

        With ``approximate`` the index of :meth:`build_approximate` is asked, and may miss some.
        """
        check_integer("k", k, 1, "an integer of 1 or more")
        n_candidates = CANDIDATES if rerank is True else int(rerank)
        check_integer("rerank", n_candidates, 0, "True, False or how many to rerank")
        conditions = parse_where(where)

        def answer(standing: Standing) -> Matches:
            hasher = self._hasher_of(standing)
            hashed = hash_query(hasher, query)
            if n_candidates and hashed.words is None:
                raise ValueError("rerank compares words: search for a text, not for a code")
            if approximate and standing.approximate is None:
                raise ValueError(f"{self._store.shown} has no approximate index: build_approximate")
            n = max(k, n_candidates)
            hits = self._store.top_k(hashed.code, n, conditions, approximate=approximate)
            found = _matches(hits, hashed)
            return reranked(hasher, hashed, found, n_candidates, k) if n_candidates else found

        with self._open_lock():
            return self._store.read(answer)

    def within(self, query: Query, radius: int, *, where: Where | None = None) -> Matches:
        """All documents whose codes are at most ``radius`` bits away, nearest first."""
        check_integer("radius", radius, 0, "an integer of 0 or more")
        conditions = parse_where(where)

        def answer(standing: Standing) -> Matches:
            hashed = hash_query(self._hasher_of(standing), query)
            return _matches(self._store.within(hashed.code, radius, conditions), hashed)

        with self._open_lock():
            return self._store.read(answer)

    def is_duplicate(self, text: str, radius: int) -> bool:
        """Whether a document at most ``radius`` bits from this text is there."""
        check_integer("radius", radius, 0, "an integer of 0 or more")
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")

        def answer(standing: Standing) -> bool:
            hashed = hash_query(self._hasher_of(standing), text)
            return bool(hashed.known_words) and self._store.has_known_within(hashed.code, radius)

        with self._open_lock():
            return self._store.read(answer)

    def duplicates(self, radius: int) -> list[list[Id]]:
        """All groups of near-duplicates; the codes are fetched and compared here."""
        check_integer("radius", radius, 0, "an integer of 0 or more")

        def answer(_: Standing) -> list[list[Id]]:
            rows = self._store.rows()
            places = rows.places[rows.known]
            groups = duplicate_groups(rows.codes[rows.known], radius)
            ids = self._store.ids() if groups else {}
            return [[ids[place] for place in places[group].tolist()] for group in groups]

        with self._open_lock():
            return self._store.read(answer)

    def get(self, id: Id) -> Document | None:
        """The document with that id, or None."""
        checked = check_id(id)
        with self._open_lock():
            return self._store.read(lambda _: self._store.find(checked))

    def __contains__(self, id: object) -> bool:
        try:
            checked = check_id(id)
        except (TypeError, ValueError):
            return False  # what cannot be an id is not there
        return self.get(checked) is not None

    def __len__(self) -> int:
        with self._open_lock():
            return self._store.read(lambda standing: standing.n_documents)

    def __iter__(self) -> Iterator[Document]:
        """All documents in the order of insertion, as of the generation when it begins."""
        with self._open_lock():
            return self._store.documents()

    # Keeping

    def stats(self) -> dict[str, Any]:
        """Documents, bits, model, generation, the recall of approximate search, and bytes."""
        with self._open_lock():
            standing = self._store.read(lambda standing: standing)
            size = self._store.sizes()
        n = standing.n_documents
        return {
            "documents": n,
            "bits": standing.n_bits,
            "method": type(self._hasher).__name__,
            "model": standing.model,
            "generation": standing.generation,
            "format_version": FORMAT_VERSION,
            "rehash": {"model": standing.next_model} if standing.next_model else None,
            "approximate": standing.approximate,
            "bytes": size,
            "bytes_per_document": {name: round(b / n, 1) for name, b in size.items() if n},
        }

    def check(self) -> None:
        """Read everything and hash it again; raises where a count or a code is not what it should be."""

        def look(standing: Standing) -> None:
            rows, n = self._store.rows(), self._store.count()
            if not standing.n_documents == n == len(rows.places):
                raise CollectionError(
                    f"{self._store.shown} is damaged: it counts {standing.n_documents} documents and "
                    f"has {n} and {len(rows.places)} codes"
                )
            self._check_codes(self._hasher_of(standing), rows.codes)

        with self._open_lock():
            self._store.read(look)

    def _check_codes(self, hasher: Hasher, codes: Any) -> None:
        remaining, first = iter(self), 0
        while batch := list(itertools.islice(remaining, BATCH)):
            expected = hasher.transform([document.text for document in batch])
            if not np.array_equal(expected, codes[first : first + len(batch)]):
                raise CollectionError(
                    f"{self._store.shown} is damaged: codes of documents {first} to "
                    f"{first + len(batch) - 1} are not those of their texts"
                )
            first += len(batch)

    def export(self, path: str | Path) -> int:
        """Write all documents to a JSONL file, one ``{"id", "text", "metadata"}`` a line."""
        return maintenance.export(iter(self), Path(path))

    # Inside

    @contextmanager
    def _open_lock(self) -> Iterator[None]:
        with self._lock:
            if not self._is_open:
                raise ValueError(f"the collection {self._store.shown} is closed")
            yield

    def _hasher_of(self, standing: Standing) -> Hasher:
        if standing.model != self._model:  # another client has rehashed
            self._hasher = self._store.load_model(standing.model)
            self._model = standing.model
        return self._hasher

    def _write_batches(self, documents: Documents, write: Callable[[list[Coded]], None]) -> int:
        remaining = checked_documents(documents)
        n = 0
        while batch := list(itertools.islice(remaining, BATCH)):
            with self._open_lock():
                self._write_batch(batch, write)
            n += len(batch)
        return n

    def _upsert_coded(self, model: str, batch: list[Coded]) -> None:
        """Write documents that ``model`` has hashed elsewhere."""
        write = partial(_write_if, model=model, write=self._store.upsert, coded=batch)
        with self._open_lock():
            if not self._store.write(write):
                raise CollectionError(f"{self._store.shown} was rehashed meanwhile: add them again")

    def _write_batch(self, batch: list[Document], write: Callable[[list[Coded]], None]) -> None:
        while True:
            hasher, model = self._hasher, self._model
            coded = coded_batch(hasher, batch)  # without keeping others from writing
            if self._store.write(partial(_write_if, model=model, write=write, coded=coded)):
                return
            self._store.read(self._hasher_of)  # another client has rehashed: hash again


def _write_if(
    standing: Standing, *, model: str, write: Callable[[list[Coded]], None], coded: list[Coded]
) -> bool:
    """Write codes where they are of the collection's model; False where they are not."""
    if standing.model != model:
        return False
    write(coded)
    return True


def coded_batch(hasher: Hasher, batch: list[Document]) -> list[Coded]:
    words = hasher.tfidf(document.text for document in batch)
    codes = hasher.transform(words)
    known = hasher.known_word_counts(words) > 0
    return [
        Coded(document, code.tobytes(), int(is_known))
        for document, code, is_known in zip(batch, codes, known, strict=True)
    ]


def _matches(hits: list[Found], hashed: HashedQuery) -> Matches:
    documents = [hit.document for hit in hits]
    distances = np.array([hit.distance for hit in hits], dtype=np.int32)
    return Matches([d.id for d in documents], distances, documents, hashed.known_words)


def connect(
    url: str, name: str, hasher: Hasher | None, *, create: bool, wait: float = WAIT
) -> ConnectedCollection:
    """What :meth:`boltzhash.collection.Collection.connect` does."""
    address = parse_address(url)
    check_name(name)
    if create:
        if hasher is None:
            raise ValueError("create=True needs a hasher, whose codes the collection will hold")
        check_reads_texts(hasher)
    return ConnectedCollection(_open_store(address, name, hasher, create, wait), name, hasher)


def _open_store(
    address: Address, name: str, hasher: Hasher | None, create: bool, wait: float
) -> Store:
    if address.kind == "postgresql":
        from boltzhash.collection.postgres import PostgresStore

        return PostgresStore(address, name, hasher if create else None, wait)
    from boltzhash.collection.milvus import MilvusStore

    return MilvusStore(address, name, hasher if create else None)
