"""A collection on an engine that scales: the verbs of the embedded one. docs/scale.md tells when."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from boltzhash.arguments import check_integer
from boltzhash.codes import Codes
from boltzhash.collection import verbs
from boltzhash.collection.addresses import Address, check_name, parse_address
from boltzhash.collection.answers import Matches
from boltzhash.collection.documents import Id, checked_documents
from boltzhash.collection.filters import Condition, Where
from boltzhash.collection.queries import HashedQuery, Query, hash_query, reranked
from boltzhash.collection.recall import held_out_queries, is_measured, measured_recall
from boltzhash.collection.sqlite.models import check_made_by, check_reads_texts
from boltzhash.collection.store import FORMAT_VERSION, Found, Standing, Store, Write
from boltzhash.collection.verbs import (
    WAIT,
    Documents,
    OnBatch,
    Verbs,
    check_wait,
    checked_search,
)
from boltzhash.corpus import Document
from boltzhash.encoding.coding import Coded, coded_batch
from boltzhash.errors import CollectionError
from boltzhash.hashers import Hasher
from boltzhash.search.duplicates import duplicate_groups


class ConnectedCollection(Verbs):
    """Documents that come and go, kept and compared by PostgreSQL or Milvus.

    Made by :meth:`boltzhash.collection.Collection.connect`; the verbs, their answers and their order
    are those of :class:`boltzhash.collection.Collection`. One more: :meth:`build_approximate`, after
    which ``search(..., approximate=True)`` is faster and may miss documents.
    """

    def __init__(self, store: Store, name: str, hasher: Hasher | None) -> None:
        super().__init__(store.shown)
        self.name = name
        self._store = store
        try:
            model = store.read(lambda standing: standing.model)
            if hasher is not None:
                check_made_by(hasher, model, self._shown)
            self._hasher = hasher if hasher is not None else store.load_model(model)
            self._model = model
        except BaseException:
            store.close()
            raise

    def __repr__(self) -> str:
        return f"<collection {self._shown}>"

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
        request = checked_search(k, where, rerank)

        def answer(standing: Standing) -> Matches:
            hasher = self._hasher_of(standing)
            hashed = hash_query(hasher, query, needs_words=bool(request.n_candidates))
            if approximate and not is_measured(standing.approximate):
                raise ValueError(f"{self._shown} has no approximate index: build_approximate")
            hits = self._store.top_k(
                hashed.code, request.n_nearest, request.conditions, approximate=approximate
            )
            found = _matches(hits, hashed)
            if not request.n_candidates:
                return found
            return reranked(hasher, hashed, found, request.n_candidates, k)

        with self._open_lock():
            return self._store.read(answer)

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
            standing, hasher = self._store.read(lambda now: (now, self._hasher_of(now)))
            size = self._store.sizes()
        n = standing.n_documents
        return {
            "documents": n,
            "bits": standing.n_bits,
            "method": type(hasher).__name__,
            "model": standing.model,
            "generation": standing.generation,
            "format_version": FORMAT_VERSION,
            "rehash": {"model": standing.next_model} if standing.next_model else None,
            "approximate": standing.approximate if is_measured(standing.approximate) else None,
            "bytes": size,
            "bytes_per_document": {name: round(b / n, 1) for name, b in size.items() if n},
        }

    def check(self) -> None:
        """Read everything and hash it again; raises where a count or a code is not what it should be."""

        def look(standing: Standing) -> None:
            rows, n = self._store.rows(), self._store.count()
            if not standing.n_documents == n == len(rows.places):
                raise CollectionError(
                    f"{self._shown} is damaged: it counts {standing.n_documents} documents and "
                    f"has {n} and {len(rows.places)} codes"
                )
            self._check_codes(self._hasher_of(standing), rows.codes)

        with self._open_lock():
            self._store.read(look)

    def _check_codes(self, hasher: Hasher, codes: Codes) -> None:
        remaining, first = self._store.documents_here(), 0
        while batch := list(itertools.islice(remaining, verbs.BATCH)):
            expected = hasher.transform([document.text for document in batch])
            if not np.array_equal(expected, codes[first : first + len(batch)]):
                raise CollectionError(
                    f"{self._shown} is damaged: codes of documents {first} to "
                    f"{first + len(batch) - 1} are not those of their texts"
                )
            first += len(batch)

    # Inside

    def _close(self) -> None:
        self._store.close()

    def _delete(self, ids: list[Id]) -> int:
        return self._store.write(lambda _: self._store.delete(ids))

    def _rehash(self, hasher: Hasher, batch: int, on_batch: OnBatch | None) -> None:
        self._store.rehash(hasher, batch, on_batch)

    def _within(self, query: Query, radius: int, conditions: list[Condition]) -> Matches:
        def answer(standing: Standing) -> Matches:
            hashed = hash_query(self._hasher_of(standing), query)
            return _matches(self._store.within(hashed.code, radius, conditions), hashed)

        with self._open_lock():
            return self._store.read(answer)

    def _is_duplicate(self, text: str, radius: int) -> bool:
        def answer(standing: Standing) -> bool:
            hashed = hash_query(self._hasher_of(standing), text)
            return bool(hashed.known_words) and self._store.has_known_within(hashed.code, radius)

        with self._open_lock():
            return self._store.read(answer)

    def _duplicates(self, radius: int) -> list[list[Id]]:
        """The codes are fetched and compared here."""

        def answer(_: Standing) -> list[list[Id]]:
            rows = self._store.rows()
            places = rows.places[rows.known]
            groups = duplicate_groups(rows.codes[rows.known], radius)
            ids = self._store.ids() if groups else {}
            return [[ids[place] for place in places[group].tolist()] for group in groups]

        with self._open_lock():
            return self._store.read(answer)

    def _get(self, id_: Id) -> Document | None:
        with self._open_lock():
            return self._store.read(lambda _: self._store.find(id_))

    def _hasher_of(self, standing: Standing) -> Hasher:
        if standing.model != self._model:  # another client has rehashed
            self._hasher = self._store.load_model(standing.model)
            self._model = standing.model
        return self._hasher

    def _write_batches(self, documents: Documents, write: Callable[[list[Coded]], None]) -> int:
        remaining = checked_documents(documents)
        n = 0
        with self._store.together() as commit:
            while batch := list(itertools.islice(remaining, verbs.BATCH)):
                with self._open_lock():
                    self._write_batch(batch, write, commit)
                n += len(batch)
        return n

    def _upsert_coded(self, model: str, batch: list[Coded]) -> None:
        """Write documents that ``model`` has hashed elsewhere."""
        write = partial(_write_if, model=model, write=self._store.upsert, coded=batch)
        with self._open_lock():
            if not self._store.write(write):
                raise CollectionError(f"{self._shown} was rehashed meanwhile: add them again")

    def _write_batch(
        self, batch: list[Document], write: Callable[[list[Coded]], None], commit: Write
    ) -> None:
        while True:
            hasher, model = self._hasher, self._model
            coded = coded_batch(hasher, batch)  # without keeping others from writing
            if commit(partial(_write_if, model=model, write=write, coded=coded)):
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
    check_wait(wait)
    if create:
        if hasher is None:
            raise ValueError("create=True needs a hasher, whose codes the collection will hold")
        check_reads_texts(hasher)
    return ConnectedCollection(_open_store(address, name, hasher, create, wait), name, hasher)


def _open_store(
    address: Address, name: str, hasher: Hasher | None, create: bool, wait: float
) -> Store:
    if address.kind == "postgresql":
        from boltzhash.collection.postgres.store import PostgresStore

        return PostgresStore(address, name, hasher if create else None, wait)
    from boltzhash.collection.milvus.store import MilvusStore

    return MilvusStore(address, name, hasher if create else None)
