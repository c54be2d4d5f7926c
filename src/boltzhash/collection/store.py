"""What an engine must be able to do to keep a collection."""

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
from boltzhash.text.words import WordQuery, Words

T = TypeVar("T")

Places = NDArray[np.int64]
Mask = NDArray[np.bool_]  # by place, so that number 0 means nothing
OnBatch = Callable[[int, int], object]

FORMAT_VERSION = 1
BATCH = 1024  # documents per transaction


class Standing(NamedTuple):
    """Where a collection stands in one generation."""

    generation: int  # raised by every write
    n_documents: int
    model: str  # fingerprint of the hasher that made the codes
    n_bits: int
    next_model: str | None  # the one that a rehash is switching to
    unfinished: dict[str, Any] | None  # what an interrupted add has to resume from
    approximate: dict[str, Any] | None  # the approximate index with its recall, if there is one


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
    """What is ranked best; and of every place, whether its document has a word asked for."""

    hits: list[Hit]
    matching: Mask


class Write(Protocol):
    """How a change is written; see :meth:`Store.write`."""

    def __call__(self, change: Callable[[Standing], T], /) -> T: ...


class Store(Protocol):
    """A collection on an engine.

    Methods that read are called inside ``read``, those that write inside ``write``, unless they say
    otherwise. A *place* is a document's number in the order of insertion; it is never given out twice.
    """

    shown: str  # where it is, without credentials
    passages: int | None  # about how many words a passage has, if documents are cut into passages

    def close(self) -> None: ...

    def read(self, answer: Callable[[Standing], T]) -> T:
        """What ``answer`` returns in one committed generation; it may be called again."""

    def write(self, change: Callable[[Standing], T]) -> T:
        """Do ``change`` wholly or not at all.

        It is given the standing before, and called once.
        """

    @property
    def written_generation(self) -> int | None:
        """The generation that the last write of this store made."""

    def together(self) -> AbstractContextManager[Write]:
        """Gives another ``write``, which may commit some changes at once, the last at the end.

        A change that raises is left out; those before it are committed all the same.
        """

    def load_model(self, fingerprint: str) -> Hasher:
        """Called inside ``read`` or ``write``, or outside."""

    # Writing

    def add(self, batch: list[Coded]) -> None: ...

    def upsert(self, batch: list[Coded]) -> None: ...

    def delete(self, ids: list[Id]) -> int: ...

    def note_unfinished(self, note: dict[str, Any] | None) -> None:
        """Keep what an interrupted add has to resume from, or that there is nothing."""

    def rehash(self, coder: Coder, batch: int, on_batch: OnBatch | None) -> None:
        """Called outside ``write``."""

    # Searching

    def top_k(
        self,
        code: Codes,
        k: int,
        conditions: list[Condition],
        *,
        effort: int | None = None,
        whole: bool = False,
    ) -> list[Hit]:
        """In order of (distance, insertion); by the approximate index if there is to be an effort.

        Where there are passages, a document's distance is that of its nearest; or, if ``whole``, that of
        the code of all of its text.
        """

    def within(self, code: Codes, radius: int, conditions: list[Condition]) -> list[Hit]: ...

    def may_be_near(self, text: str, words: Words, min_similarity: float) -> Iterable[Document]:
        """Documents whose texts may be at least that similar, likeliest first."""

    def ranked(
        self,
        query: CodedQuery,
        wanted: WordQuery,
        words: Words,
        k: int,
        conditions: list[Condition],
        *,
        by: str,
        whole: bool = False,
    ) -> Found:
        """The best by words, or by words and codes; in order of (score, distance, insertion).

        ``wanted`` is what is asked for in ``words``; ``whole`` as in ``top_k``.
        """

    def n_passing(self, conditions: list[Condition]) -> int:
        """How many documents a filter lets through."""

    def passing(self, conditions: list[Condition]) -> Mask:
        """Of every place, whether there is a document that a filter lets through."""

    # Reading

    def find(self, ids: Sequence[Id]) -> dict[Id, Coded]:
        """Those of the documents with these ids that exist, with their codes."""

    def documents_at(self, places: Places) -> list[Document]: ...

    def ids_at(self, places: Places) -> list[Id | None]:
        """The id at each place; None if the document is gone."""

    def rows(self) -> Rows: ...

    def page(self, after: int, n: int) -> list[tuple[int, Coded]]:
        """The next n documents after a place, in the order of insertion, with their places."""

    def latest(self, n: int) -> list[Coded]:
        """The n documents that were inserted last, with their codes, in the order of insertion."""

    def documents(self) -> Iterator[Document]:
        """All of one generation, in the order of insertion; called outside ``read``."""

    def coded_here(self) -> Iterator[Coded]:
        """All with their codes, in the order of insertion."""

    def field_values(self, most: int) -> dict[str, list[FieldValue]]:
        """The commonest values of each metadata field, at most ``most``."""

    def values_of(self, field: str) -> dict[int, Scalar]:
        """The value of one metadata field by place, if it is a string, a number or a boolean."""

    def column(self, field: str) -> Column:
        """All values of one metadata field; those of a list are its members."""

    # Keeping

    def counts(self) -> Counts: ...

    def sizes(self) -> dict[str, int]:
        """Bytes of the parts, as far as the engine can tell."""

    def check(self, hasher: Hasher) -> None:
        """Raise :class:`boltzhash.errors.CollectionError` if something is not as it was written."""

    def backup(self, target: Path) -> None:
        """Copy one generation to a collection in a new folder; called outside ``read``."""

    def save_files(self, name: str, files: Sequence[ModelFile]) -> None:
        """Keep files beside the documents, such as their map; called outside ``write``."""

    def load_files(self, name: str) -> list[ModelFile]:
        """What ``save_files`` was given last, or an empty list. Called outside ``read``."""

    def files_version(self, name: str) -> str | None:
        """Changes with each ``save_files``; None if there are no files. Called outside ``read``."""

    # Approximate search

    def build_index(self) -> tuple[dict[str, Any], list[int]]:
        """Build the approximate index; called outside ``write``.

        Returns what is to be said about it, and how much a search can look at, the least first.
        """

    def note_approximate(self, about: dict[str, Any]) -> None:
        """Keep what was measured about the index; called outside ``write``."""


def refuse_taken(batch: Sequence[Coded], taken: Container[Id]) -> None:
    """Raise if a document has an id that is already there, or that another in its batch has."""
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
    """The last of the documents with each id, in the order of the first."""
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
