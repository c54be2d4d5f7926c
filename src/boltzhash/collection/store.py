"""The two halves of an engine: a store, which writes, and a snapshot of it, which reads."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.collection.columns import Column
from boltzhash.collection.filters import Condition
from boltzhash.collection.models import Coder
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id, Scalar
from boltzhash.encoding.coding import Coded, CodedQuery
from boltzhash.encoding.model_files import ModelFile
from boltzhash.errors import CollectionError, DuplicateIdError, NoSuchCollectionError
from boltzhash.hashers import Hasher
from boltzhash.search.hits import Hit
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.queries import TermQuery

T = TypeVar("T")

Places = NDArray[np.int64]
Mask = NDArray[np.bool_]  # by doc number, which begin at 1
OnBatch = Callable[[int, int], object]

BATCH = 1024  # documents per transaction
FORMAT_VERSION = 1


class Version(NamedTuple):
    """Tells a generation from all others, those of a database that was restored included."""

    generation: int  # raised by every write
    token: int  # random


class State(NamedTuple):
    """A generation of a collection: its version, its model, and work in progress."""

    generation: int
    token: int
    n_documents: int
    model: str  # fingerprint of the hasher that made the codes
    n_bits: int
    next_model: str | None  # the one that a rehash is switching to
    unfinished: dict[str, Any] | None  # where an interrupted add resumes

    @property
    def version(self) -> Version:
        return Version(self.generation, self.token)


class Rows(NamedTuple):
    """All codes in the order of insertion: arrays of shape (n,), (n, n_bits / 8) and (n,)."""

    places: Places
    codes: Codes
    known: NDArray[np.bool_]  # whether the model knew any word of the document


class Counts(NamedTuple):
    """Figures that have to be counted."""

    no_known_word: int  # documents of which the model knows no word
    rehashed: int  # documents that a rehash under way has done
    passages: int = 0


class FieldValue(NamedTuple):
    """A value of a metadata field, and how many documents have it."""

    value: Scalar
    n_documents: int


class Found(NamedTuple):
    """The best hits, and a mask of the documents that have a word of the query."""

    hits: list[Hit]
    matching: Mask


class Transaction(Protocol):
    """A write in progress, which is committed whole or not at all."""

    state: State  # before it

    def add(self, batch: list[Coded]) -> None: ...

    def upsert(self, batch: list[Coded]) -> None: ...

    def delete(self, ids: list[Id]) -> int: ...

    def note_unfinished(self, note: dict[str, Any] | None) -> None:
        """Keep where an interrupted add resumes; None if nothing is unfinished."""


class Store(Protocol):
    """A collection on an engine; threads may share it."""

    shown: str  # the location without credentials
    passages: int | None  # about how many words a passage has, if documents are cut into passages
    written_generation: int | None  # made by the last write through this object

    def close(self) -> None:
        """Release connections; snapshots that are open keep theirs."""

    def snapshot(self) -> StoreSnapshot:
        """Open the newest generation."""

    def write(self) -> AbstractContextManager[Transaction]: ...

    def rehash(self, coder: Coder, batch: int, on_batch: OnBatch | None) -> None: ...

    def load_model(self, fingerprint: str) -> Hasher: ...

    def backup(self, target: Path) -> None:
        """Copy one generation to a collection in a new folder."""

    def save_files(self, name: str, files: Sequence[ModelFile]) -> None:
        """Keep files beside the documents, such as their map."""

    def load_files(self, name: str) -> list[ModelFile]:
        """Return the files that ``save_files`` kept last, or an empty list."""

    def files_version(self, name: str) -> str | None:
        """Return what changes with each ``save_files``; None if there are no files."""


class StoreSnapshot(Protocol):
    """One generation, which threads may share; an error if it is used after ``close``.

    A document's *place* is its number in the order of insertion, which is never used twice.
    """

    state: State

    def close(self) -> None: ...

    def top_k(
        self,
        code: Codes,
        k: int,
        conditions: list[Condition],
        *,
        whole: bool = False,
    ) -> list[Hit]:
        """Return the nearest by (distance, insertion).

        Where there are passages, a document's distance is that of its nearest; or, if ``whole``, that of
        the code of all of its text.
        """

    def within(self, code: Codes, radius: int, conditions: list[Condition]) -> list[Hit]: ...

    def ranked(
        self,
        query: CodedQuery,
        wanted: TermQuery,
        words: Analyzer,
        k: int,
        conditions: list[Condition],
        *,
        by: str,
        whole: bool = False,
    ) -> Found:
        """Return the best by words, or by words and codes, by (score, distance, insertion).

        ``wanted`` is the question in ``words``; ``whole`` as in ``top_k``.
        """

    def may_be_near(self, text: str, words: Analyzer, min_similarity: float) -> Iterable[Document]:
        """Yield documents whose texts may be at least that similar, likeliest first."""

    def passing(self, conditions: list[Condition]) -> Mask:
        """Return a mask of the documents that a filter lets through."""

    def find(self, ids: Sequence[Id]) -> dict[Id, Coded]:
        """Return those of the documents with these ids that exist, with their codes."""

    def documents_at(self, places: Places) -> list[Document]: ...

    def ids_at(self, places: Places) -> list[Id | None]:
        """Return the id at each place; None if the document is gone."""

    def rows(self) -> Rows: ...

    def page(self, after: int, n: int) -> list[tuple[int, Coded]]:
        """Return the next n documents after a place, with their places."""

    def latest(self, n: int) -> list[Coded]:
        """Return the n documents that were inserted last, with codes and passages."""

    def field_values(self, most: int) -> dict[str, list[FieldValue]]:
        """Return the commonest values of each metadata field, at most ``most``."""

    def column(self, field: str) -> Column:
        """Return all values of one metadata field; those of a list are its members."""

    def counts(self) -> Counts: ...

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the parts, as far as the engine can tell."""

    def check(self, hasher: Hasher) -> None:
        """Raise :class:`boltzhash.errors.CollectionError` if something is not as it was written."""


def all_coded(snapshot: StoreSnapshot) -> Iterator[Coded]:
    """Yield all documents with their codes, in the order of insertion."""
    last = 0
    while page := snapshot.page(last, BATCH):
        yield from (coded for _, coded in page)
        last = page[-1][0]


def refuse_taken(batch: Sequence[Coded], taken: Container[Id]) -> None:
    """Raise if a document has an id that already exists, or that another in its batch has."""
    seen: set[Id] = set()
    for coded in batch:
        id_ = coded.document.id
        if id_ in seen:
            raise twice_in_batch(id_)
        if id_ in taken:
            raise already_there(id_)
        seen.add(id_)


def already_there(id_: Id) -> DuplicateIdError:
    return DuplicateIdError(
        f"the id {id_!r} is already in the collection; nothing from its batch was added"
    )


def twice_in_batch(id_: Id) -> DuplicateIdError:
    return DuplicateIdError(f"the id {id_!r} is twice in its batch; nothing from it was added")


def last_of_each(batch: Sequence[Coded]) -> dict[Id, Coded]:
    """Return the last of the documents with each id, in the order of the first."""
    return {coded.document.id: coded for coded in batch}


def check_format_version(version: int, shown: str) -> None:
    if version != FORMAT_VERSION:
        raise CollectionError(
            f"{shown} has format version {version}, this boltzhash reads {FORMAT_VERSION}: index again"
        )


def no_such_collection(shown: str) -> NoSuchCollectionError:
    return NoSuchCollectionError(f"{shown}: there is no such collection")


def exists_already(shown: str) -> FileExistsError:
    return FileExistsError(f"{shown} is already a collection: open it, or delete it first")


def has_no_passages(shown: str) -> ValueError:
    return ValueError(
        f"{shown}: passages are kept in folders only. Make the collection in a folder, or without "
        "passages"
    )


def rehash_taken_over(shown: str) -> CollectionError:
    return CollectionError(f"{shown}: another rehash has taken over from this one")


def is_closed(what: str, shown: str) -> ValueError:
    return ValueError(f"the {what} {shown} is closed")
