"""A durable collection in a folder on one machine. docs/collections.md tells how it is used."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from boltzhash.collection import verbs
from boltzhash.collection.answers import Matches
from boltzhash.collection.documents import Id, checked_documents
from boltzhash.collection.filters import Condition, Where
from boltzhash.collection.queries import HashedQuery, Query, hash_query, reranked
from boltzhash.collection.sqlite import maintenance, rehashing
from boltzhash.collection.sqlite.database import DATABASE, Database, State
from boltzhash.collection.sqlite.filters import FieldFilter
from boltzhash.collection.sqlite.models import (
    check_made_by,
    check_reads_texts,
    load_model,
    save_model,
)
from boltzhash.collection.sqlite.reads import all_documents, documents_at, find_document, ids_at
from boltzhash.collection.sqlite.schema import create_tables
from boltzhash.collection.sqlite.snapshot import Mask, Nearest, Snapshot
from boltzhash.collection.sqlite.writes import add_rows, delete_rows, upsert_rows
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
from boltzhash.storage.folders import atomic_folder

if TYPE_CHECKING:
    from boltzhash.collection.connected import ConnectedCollection


class Collection(Verbs):
    """Documents that come and go, found by the Hamming distance of their codes.

    Made with :meth:`create`, opened with :meth:`open`. Everything that a method has acknowledged by
    returning is on disk. Any number of processes may read while one writes; each search sees one
    committed generation as a whole, the newest when it began. Within a process one collection may be
    used by many threads; its operations take turns.

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
    ...     matches = collection.search("bread and butter", k=3, where={"year": {">=": 2021}})
    >>> n, matches.ids[0], len(matches), matches.documents[0].metadata
    (4, 'doc-2', 3, {'year': 2022})
    """

    def __init__(self, path: str | Path, hasher: Hasher | None, wait: float) -> None:
        self.path = Path(path)
        super().__init__(str(path))
        check_wait(wait)
        self._database = Database(self.path, wait)
        try:
            self._snapshot = Snapshot(self.path)
            self._filter = FieldFilter()
            with self._database.reading() as state:
                model = state.model
            if hasher is not None:
                check_made_by(hasher, model, self._shown)
            self._hasher = hasher if hasher is not None else load_model(self.path, model)
            self._model = model
        except BaseException:
            self._database.close()
            raise

    @classmethod
    def create(cls, path: str | Path, hasher: Hasher, *, wait: float = WAIT) -> Self:
        """A new, empty collection in the folder ``path``, whose codes come from ``hasher``."""
        check_reads_texts(hasher)
        check_wait(wait)
        if (Path(path) / DATABASE).exists():
            raise FileExistsError(f"{path} is a collection already: open it, or delete it first")
        with atomic_folder(Path(path), "boltzhash collection") as fresh:
            save_model(fresh, hasher)
            maintenance.make_database(
                fresh, lambda c: create_tables(c, model=hasher.fingerprint(), n_bits=hasher.n_bits)
            )
        return cls(path, hasher, wait)

    @classmethod
    def open(cls, path: str | Path, hasher: Hasher | None = None, *, wait: float = WAIT) -> Self:
        """The collection in the folder ``path``.

        The model lies in the folder; a ``hasher`` that is given must be that one. ``wait`` is how many
        seconds a write waits for another process that writes, before it gives up with
        :class:`boltzhash.errors.CollectionBusyError`. Raises
        :class:`boltzhash.errors.CollectionError` where there is no collection, where it is damaged, or
        where a newer boltzhash wrote it; one of an older format is brought up to date.
        """
        return cls(path, hasher, wait)

    @classmethod
    def connect(
        cls,
        url: str,
        name: str = "documents",
        hasher: Hasher | None = None,
        *,
        create: bool = False,
        wait: float = WAIT,
    ) -> ConnectedCollection:
        """The collection ``name`` on an engine that scales, with the same verbs and answers.

        ``url`` is ``postgresql://user:password@host/database`` (PostgreSQL with pgvector),
        ``milvus://user:password@host:19530/database``, or ``milvus:///path/to/file.db`` for
        milvus-lite in this process. With ``create`` a new, empty one is made, whose codes come from
        ``hasher``. The model lies with the documents, so that any client can open it.
        """
        from boltzhash.collection.connected import connect

        return connect(url, name, hasher, create=create, wait=wait)

    @property
    def hasher(self) -> Hasher:
        """The model that makes the codes."""
        with self._reading():
            return self._hasher

    # Writing

    def add(self, documents: Documents) -> int:
        """Add documents, dicts with ``id``, ``text`` and ``metadata`` (optional); returns how many.

        They are streamed, 1024 a transaction. An id that is there already, or twice in a batch, is
        a :class:`boltzhash.errors.DuplicateIdError`: nothing of that batch is added, the batches
        before it are.
        """
        return self._write_batches(documents, lambda _, batch: add_rows(self._connection, batch))

    def upsert(self, documents: Documents) -> int:
        """Add documents, or overwrite those whose id is there; they keep their place among ties."""
        return self._write_batches(
            documents, lambda state, batch: upsert_rows(self._connection, state, batch)
        )

    def add_resumably(self, documents: Documents, name: str) -> int:
        """Add documents; after an interruption the same call goes on behind the last batch.

        ``name`` says what is being added. The collection remembers how far it came until all is
        added; the same documents must come again in the same order. Returns how many this call added.
        """
        came_to = self.unfinished()
        remaining = checked_documents(documents)
        done = 0
        if came_to is not None and came_to["name"] == name:
            done = came_to["done"]
            last = next(itertools.islice(remaining, done - 1, None), None)
            if last is None or last.id != came_to["last_id"]:
                came = "no more" if last is None else repr(last.id)
                raise ValueError(
                    f"these are not the documents whose adding was interrupted: number {done - 1} "
                    f"must have the id {came_to['last_id']!r}, got {came}"
                )

        def write(_: State, batch: list[Coded]) -> None:
            nonlocal done
            add_rows(self._connection, batch)
            note = {"name": name, "done": done + len(batch), "last_id": batch[-1].document.id}
            self._connection.execute("UPDATE state SET indexing = ?", (json.dumps(note),))
            done += len(batch)

        added = self._write_batches(remaining, write)
        with self._open_lock(), self._database.writing():
            self._connection.execute("UPDATE state SET indexing = NULL")
        return added

    def unfinished(self) -> dict[str, Any] | None:
        """What :meth:`add_resumably` has still to do: ``name``, ``done`` and ``last_id``, or None."""
        with self._reading() as state:
            return json.loads(state.indexing) if state.indexing is not None else None

    # Reading

    def search(
        self, query: Query, k: int = 10, *, where: Where | None = None, rerank: bool | int = False
    ) -> Matches:
        """The k documents whose codes are nearest to a text or a packed code, nearest first.

        Fewer where there are fewer that ``where`` allows. ``where`` filters by metadata before the cut
        at k, for example ``{"year": 2020, "lang": ["de", "en"], "price": {">=": 3}}``; see
        :mod:`boltzhash.collection.filters`. With ``rerank`` the 500 nearest (or as many as it says)
        are reordered by their words before the cut.
        """
        request = checked_search(k, where, rerank)
        with self._reading():
            hashed = hash_query(self._hasher, query, needs_words=bool(request.n_candidates))
            allowed = self._allowed(request.conditions)
            found = self._matches(
                self._snapshot.top_k(hashed.code, request.n_nearest, allowed), hashed
            )
            if not request.n_candidates:
                return found
            return reranked(self._hasher, hashed, found, request.n_candidates, k)

    def __len__(self) -> int:
        with self._reading() as state:
            return state.n_documents

    def __iter__(self) -> Iterator[Document]:
        """All documents in the order of insertion, as of the generation when it begins."""
        with self._open_lock():
            database = Database(self.path, self._database.wait)
        try:
            with database.reading():
                yield from all_documents(database)
        finally:
            database.close()

    # Keeping

    def stats(self) -> dict[str, Any]:
        """Documents, bits, model, generation, and what it all costs in bytes."""
        with self._reading() as state:
            return maintenance.stats(self._database, self.path, state, type(self._hasher).__name__)

    def check(self) -> None:
        """Read everything and compare it with its checksums; raises where something is damaged."""
        with self._reading() as state:
            maintenance.check(self._database, self.path, state, self._snapshot.rows())

    def backup(self, path: str | Path) -> None:
        """A copy of one generation in a new folder, itself a collection."""
        with self._open_lock():
            maintenance.backup(self._database, self.path, Path(path))

    # Inside

    @property
    def _connection(self) -> Any:
        return self._database.connection

    def _close(self) -> None:
        self._database.close()

    def _delete(self, ids: list[Id]) -> int:
        with self._database.writing() as state:
            n = delete_rows(self._connection, state, ids)
        self._follow()
        return n

    def _rehash(self, hasher: Hasher, batch: int, on_batch: OnBatch | None) -> None:
        rehashing.rehash(self._database, self.path, hasher, batch, on_batch)
        self._follow()

    def _within(self, query: Query, radius: int, conditions: list[Condition]) -> Matches:
        with self._reading():
            hashed = hash_query(self._hasher, query)
            allowed = self._allowed(conditions)
            return self._matches(self._snapshot.within(hashed.code, radius, allowed), hashed)

    def _is_duplicate(self, text: str, radius: int) -> bool:
        with self._reading():
            hashed = hash_query(self._hasher, text)
            return bool(hashed.known_words) and self._snapshot.has_known_within(hashed.code, radius)

    def _duplicates(self, radius: int) -> list[list[Id]]:
        with self._reading():
            rows = self._snapshot.rows()
            places, codes = rows.places[rows.known], rows.codes[rows.known]
            groups = duplicate_groups(codes, radius)
            return [ids_at(self._database, places[group]) for group in groups]

    def _get(self, id_: Id) -> Document | None:
        with self._reading():
            return find_document(self._database, id_)

    @contextmanager
    def _reading(self) -> Iterator[State]:
        """One committed generation with its model and its codes."""
        with self._open_lock(), self._database.reading() as state:
            self._use_model(state)
            self._snapshot.follow(self._connection, state)
            yield state

    def _follow(self) -> None:
        with self._reading():
            pass

    def _use_model(self, state: State) -> None:
        if state.model != self._model:
            self._hasher = load_model(self.path, state.model)
            self._model = state.model

    def _write_batches(
        self, documents: Documents, write: Callable[[State, list[Coded]], None]
    ) -> int:
        remaining = checked_documents(documents)
        n = 0
        while batch := list(itertools.islice(remaining, verbs.BATCH)):
            with self._open_lock():
                self._write_batch(batch, write)
                self._follow()
            n += len(batch)
        return n

    def _write_batch(
        self, batch: list[Document], write: Callable[[State, list[Coded]], None]
    ) -> None:
        while True:
            # hashed without keeping others from writing
            model, coded = self._model, coded_batch(self._hasher, batch)
            with self._database.writing() as state:
                if state.model == model:
                    write(state, coded)
                    return
                self._use_model(state)  # another process has rehashed: hash again

    def _upsert_coded(self, model: str, batch: list[Coded]) -> None:
        """Write documents that ``model`` has hashed elsewhere."""
        with self._open_lock():
            with self._database.writing() as state:
                if state.model != model:
                    raise CollectionError(f"{self.path} was rehashed meanwhile: add them again")
                upsert_rows(self._connection, state, batch)
            self._follow()

    def _allowed(self, conditions: list[Condition]) -> Mask | None:
        codes = self._snapshot
        return self._filter.allowed(
            self._connection, conditions, codes.generation, codes.last_place
        )

    def _matches(self, nearest: Nearest, hashed: HashedQuery) -> Matches:
        documents = documents_at(self._database, nearest.places)
        ids = [document.id for document in documents]
        return Matches(ids, nearest.distances, documents, hashed.known_words)
