"""The verbs of every collection: what callers give is checked here, what keeps it does the rest."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from boltzhash.arguments import check_integer, check_number
from boltzhash.collection.answers import Matches
from boltzhash.collection.documents import Id, check_id
from boltzhash.collection.filters import Condition, Where, parse_where
from boltzhash.collection.queries import Query
from boltzhash.collection.sqlite import maintenance
from boltzhash.collection.sqlite.models import check_reads_texts
from boltzhash.corpus import Document
from boltzhash.encoding.coding import Coded
from boltzhash.hashers import Hasher

BATCH = 1024  # documents a transaction
WAIT = 10.0  # seconds that a write waits for another process that writes
CANDIDATES = 500  # how many of the nearest are reranked

Documents = Iterable[Document | Mapping[str, Any]]
OnBatch = Callable[[int, int], object]


class Verbs(ABC):
    """What :class:`Collection` and :class:`ConnectedCollection` have in common."""

    def __init__(self, shown: str) -> None:
        self._shown = shown  # where it is, for messages
        self._lock = threading.RLock()
        self._is_open = True

    def close(self) -> None:
        with self._lock:
            if self._is_open:
                self._is_open = False
                self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    @abstractmethod
    def hasher(self) -> Hasher:
        """The model that makes the codes."""

    # Writing

    def add_from(
        self,
        paths: Iterable[str | Path],
        *,
        text_field: str = "text",
        id_field: str | None = None,
        metadata: bool | Sequence[str] = True,
        shards: str | Path | None = None,
    ) -> int:
        """Add the documents of JSONL, CSV or Parquet files, hashed on a Ray cluster; how many.

        Where an id is there already its document is overwritten, so that after an interruption the
        same call can be made again. ``shards`` is a folder that every machine of the cluster sees; it
        keeps the codes until they are written. See :mod:`boltzhash.encoding.ray`.
        """
        from boltzhash.encoding.ray import add_from

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
        """Delete documents, all in one transaction; returns how many of the ids were there."""
        if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
            raise TypeError(f"ids must be a list of ids, got {ids!r}: put it into a list")
        checked = list(dict.fromkeys(check_id(id_) for id_ in ids))
        with self._open_lock():
            return self._delete(checked)

    def rehash(self, hasher: Hasher, *, on_batch: OnBatch | None = None) -> None:
        """Go over to a new model. Until all new codes are there, searches use the old ones.

        After an interruption the same call goes on where it stopped. Others may write meanwhile.
        ``on_batch`` is told how many documents are done, and of how many.
        """
        check_reads_texts(hasher)
        with self._open_lock():
            self._rehash(hasher, BATCH, on_batch)

    # Reading

    def within(self, query: Query, radius: int, *, where: Where | None = None) -> Matches:
        """All documents whose codes are at most ``radius`` bits away, nearest first."""
        check_radius(radius)
        return self._within(query, radius, parse_where(where))

    def is_duplicate(self, text: str, radius: int) -> bool:
        """Whether a document at most ``radius`` bits from this text is there.

        A text of which the model knows no word has a code that means nothing; it duplicates none.
        """
        check_radius(radius)
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        return self._is_duplicate(text, radius)

    def duplicates(self, radius: int) -> list[list[Id]]:
        """All groups of near-duplicates: ids linked by steps of at most ``radius`` bits.

        Two members of a group may be further apart than the radius, if others lie between. Ids and
        groups are in the order of insertion. Documents of which the model knows no word are in no
        group: that their codes are equal means nothing.
        """
        check_radius(radius)
        return self._duplicates(radius)

    def get(self, id: Id) -> Document | None:
        """The document with that id, or None."""
        return self._get(check_id(id))

    def __contains__(self, id: object) -> bool:
        try:
            checked = check_id(id)
        except (TypeError, ValueError):
            return False  # what cannot be an id is not there
        return self._get(checked) is not None

    @abstractmethod
    def __iter__(self) -> Iterator[Document]:
        """All documents in the order of insertion, as of the generation when it begins."""

    def export(self, path: str | Path) -> int:
        """Write all documents to a JSONL file, one ``{"id", "text", "metadata"}`` a line."""
        return maintenance.export(iter(self), Path(path))

    # Inside

    @contextmanager
    def _open_lock(self) -> Iterator[None]:
        with self._lock:
            if not self._is_open:
                raise ValueError(f"the collection {self._shown} is closed")
            yield

    @abstractmethod
    def _close(self) -> None: ...

    @abstractmethod
    def _upsert_coded(self, model: str, batch: list[Coded]) -> None:
        """Write documents that ``model`` has hashed elsewhere."""

    @abstractmethod
    def _delete(self, ids: list[Id]) -> int:
        """Called with the lock held, as is ``_rehash``."""

    @abstractmethod
    def _rehash(self, hasher: Hasher, batch: int, on_batch: OnBatch | None) -> None: ...

    @abstractmethod
    def _within(self, query: Query, radius: int, conditions: list[Condition]) -> Matches: ...

    @abstractmethod
    def _is_duplicate(self, text: str, radius: int) -> bool: ...

    @abstractmethod
    def _duplicates(self, radius: int) -> list[list[Id]]: ...

    @abstractmethod
    def _get(self, id_: Id) -> Document | None: ...


class SearchRequest(NamedTuple):
    """What is asked of a search beside the query."""

    k: int
    n_candidates: int  # how many of the nearest are reranked
    conditions: list[Condition]

    @property
    def n_nearest(self) -> int:
        return max(self.k, self.n_candidates)


def checked_search(k: int, where: Where | None, rerank: bool | int) -> SearchRequest:
    """
    >>> checked_search(10, None, rerank=True)
    SearchRequest(k=10, n_candidates=500, conditions=[])
    >>> checked_search(10, None, rerank=2.5)
    Traceback (most recent call last):
    ...
    ValueError: rerank must be True, False or how many to rerank, got 2.5
    """
    check_integer("k", k, 1, "an integer of 1 or more")
    n_candidates = (CANDIDATES if rerank else 0) if isinstance(rerank, bool) else rerank
    check_integer("rerank", n_candidates, 0, "True, False or how many to rerank")
    return SearchRequest(int(k), int(n_candidates), parse_where(where))


def check_radius(radius: int) -> None:
    check_integer("radius", radius, 0, "an integer of 0 or more")


def check_wait(wait: float) -> None:
    """Up to a day: SQLite and PostgreSQL count milliseconds in 32 bits."""
    check_number("wait", wait, at_least=0, at_most=86_400)
