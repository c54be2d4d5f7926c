"""What an engine must be able to do to keep a collection."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from boltzhash.codes import Codes
from boltzhash.collection.documents import Id
from boltzhash.collection.filters import Condition
from boltzhash.collection.sqlite.codes_file import Rows
from boltzhash.corpus import Document
from boltzhash.encoding.coding import Coded
from boltzhash.errors import CollectionError, DuplicateIdError
from boltzhash.hashers import Hasher

T = TypeVar("T")

FORMAT_VERSION = 1


class Standing(NamedTuple):
    """Where a collection stands in one generation."""

    generation: int  # raised by everything that writes
    n_documents: int
    model: str  # fingerprint of the hasher that made the codes
    n_bits: int
    next_model: str | None  # the one that a rehash is going over to
    approximate: dict[str, Any] | None  # the approximate index with its recall, where there is one


class Found(NamedTuple):
    """One document of an answer."""

    distance: int
    document: Document


class Write(Protocol):
    """How a change is written; see :meth:`Store.write`."""

    def __call__(self, change: Callable[[Standing], T], /) -> T: ...


class Store(Protocol):
    """A collection on an engine. What reads is called inside ``read``, what writes inside ``write``."""

    shown: str  # where it is, without credentials

    def close(self) -> None: ...

    def read(self, answer: Callable[[Standing], T]) -> T:
        """What ``answer`` finds in one committed generation; it may be asked again."""

    def write(self, change: Callable[[Standing], T]) -> T:
        """Do ``change`` wholly or not at all; it is given the standing before, and called once."""

    def together(self) -> AbstractContextManager[Write]:
        """Gives another ``write``, which may commit some changes at once, the last at the end.

        A change that raises is left out; those before it are committed all the same.
        """

    def load_model(self, fingerprint: str) -> Hasher: ...

    def add(self, batch: list[Coded]) -> None: ...

    def upsert(self, batch: list[Coded]) -> None: ...

    def delete(self, ids: list[Id]) -> int: ...

    def top_k(
        self, code: Codes, k: int, conditions: list[Condition], *, approximate: bool
    ) -> list[Found]:
        """In order of (distance, insertion)."""

    def within(self, code: Codes, radius: int, conditions: list[Condition]) -> list[Found]: ...

    def has_known_within(self, code: Codes, radius: int) -> bool:
        """Whether one is that near of which the model knows a word."""

    def rows(self) -> Rows:
        """All codes, in the order of insertion."""

    def ids(self) -> dict[int, Id]:
        """The id of every place."""

    def find(self, id_: Id) -> Document | None: ...

    def documents(self) -> Iterator[Document]:
        """All, in the order of insertion, of one generation; called outside ``read``."""

    def documents_here(self) -> Iterator[Document]:
        """The same for the generation that is being read; called inside ``read``."""

    def count(self) -> int:
        """How many documents there really are."""

    def rehash(
        self, hasher: Hasher, batch: int, on_batch: Callable[[int, int], object] | None
    ) -> None:
        """Called outside ``write``."""

    def build_index(self) -> dict[str, Any]:
        """Build the approximate index and say what it is; called outside ``write``."""

    def note_approximate(self, about: dict[str, Any]) -> None:
        """Keep what was measured of the index; called outside ``write``."""

    def sizes(self) -> dict[str, int]:
        """Bytes of the parts, as far as the engine can tell."""


def refuse_taken(batch: Sequence[Coded], taken: Container[Id]) -> None:
    """Raise where a document has an id that is there already, or that another of its batch has."""
    seen: set[Id] = set()
    for coded in batch:
        id_ = coded.document.id
        if id_ in taken or id_ in seen:
            raise DuplicateIdError(
                f"the id {id_!r} is in the collection already; nothing of its batch was added"
            )
        seen.add(id_)


def last_of_each(batch: Sequence[Coded]) -> dict[Id, Coded]:
    """Of documents with the same id the last, in the order of the first."""
    return {coded.document.id: coded for coded in batch}


def check_format_version(version: int, shown: str) -> None:
    if version > FORMAT_VERSION:
        raise CollectionError(
            f"{shown} has format version {version}; this boltzhash reads up to {FORMAT_VERSION}. "
            "Update boltzhash"
        )


def no_such_collection(shown: str) -> CollectionError:
    return CollectionError(f"{shown}: there is no such collection; create=True makes it")


def rehash_taken_over(shown: str) -> CollectionError:
    return CollectionError(f"{shown}: another rehash has taken over from this one")
