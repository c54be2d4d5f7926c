"""Groups of documents whose texts say the same."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from boltzhash.arguments import Number, check
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.search.duplicates import HashedTexts, groups_of_near
from boltzhash.text.shingles import differ_in_a_field, hashed_texts, jaccard, shingles_of
from boltzhash.text.tokens import every_token
from boltzhash.threads import in_batches

MIN_SIMILARITY = 0.8
KEEP = ("first", "longest", "newest")

_AT_ONCE = 512


class Duplicate(NamedTuple):
    """A document, and how similar its text is to that of the document that is kept."""

    id: Id
    similarity: float


class DuplicateGroup(NamedTuple):
    """The document to keep, and those that its text makes superfluous, in the order of insertion."""

    kept: Id
    duplicates: list[Duplicate]


class Texts(NamedTuple):
    """What is compared of documents, and the order in which they are preferred."""

    ids: list[Id]
    hashed: HashedTexts
    order: Iterable[int]

    def watched(self, every: int, tell: Callable[[], object]) -> Texts:
        """The same; ``tell`` is called each time that so many more have been compared."""

        def order() -> Iterator[int]:
            for done, row in enumerate(self.order, start=1):
                yield row
                if done % every == 0:
                    tell()

        return self._replace(order=order())


def read_texts(documents: Iterable[Document], keep: str) -> Texts:
    """``documents`` come in the order of insertion.

    They take 12 bytes of memory per word.

    >>> documents = [Document("a", "one"), Document("b", "one two"), Document("c", "two")]
    >>> [list(read_texts(documents, keep).order) for keep in KEEP]
    [[0, 1, 2], [1, 0, 2], [2, 1, 0]]
    """
    ids: list[Id] = []
    lengths, hashed = array("q"), HashedTexts()
    for some in in_batches(documents, _AT_ONCE):
        ids.extend(document.id for document in some)
        lengths.extend(len(document.text) for document in some)
        hashed.extend(hashed_texts([document.text for document in some]))
    order: Iterable[int] = range(len(ids))
    if keep == "longest":
        longest_first = np.argsort(-np.array(lengths, dtype=np.int64), kind="stable")
        order = array("q", longest_first.astype(np.int64).tobytes())
    elif keep == "newest":
        order = range(len(ids) - 1, -1, -1)
    return Texts(ids, hashed, order)


def duplicate_groups(texts: Texts, min_similarity: float) -> list[DuplicateGroup]:
    """
    >>> texts = read_texts([Document("a", "to be or not"), Document("b", "To be or not!")], "newest")
    >>> duplicate_groups(texts, 0.8)
    [DuplicateGroup(kept='b', duplicates=[Duplicate(id='a', similarity=1.0)])]
    """
    ids = texts.ids
    return [
        DuplicateGroup(ids[kept], [Duplicate(ids[row], value) for row, value in members])
        for kept, members in groups_of_near(texts.hashed, texts.order, min_similarity)
    ]


def near_duplicates_of(text: str, min_similarity: float) -> Callable[[str], bool]:
    """Tells of other texts whether they are near-duplicates of this one.

    >>> is_near = near_duplicates_of("to be or not", 0.8)
    >>> is_near("To be or not!"), is_near("to be")
    (True, False)
    """
    shingles, (own,) = shingles_of(every_token(text)), hashed_texts([text])

    def is_near(other: str) -> bool:
        if jaccard(shingles, shingles_of(every_token(other))) < min_similarity:
            return False
        (hashed,) = hashed_texts([other])
        return not differ_in_a_field(own.words, hashed.words)

    return is_near


def check_duplicates(min_similarity: float, keep: str) -> None:
    """
    >>> check_duplicates(80, "first")
    Traceback (most recent call last):
    ...
    ValueError: min_similarity must be a number above 0 and at most 1, got 80
    """
    check("min_similarity", min_similarity, Number(above=0, at_most=1))
    check("keep", keep, *KEEP)
