"""Documents whose texts say the same: groups of them, and of texts that share a template."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from boltzhash.arguments import check_choice, check_number
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.search.duplicates import HashedTexts, RowGroup, Runs, groups_of_near
from boltzhash.text.shingles import (
    differ_in_a_field,
    hashed_texts,
    jaccard,
    shingles_of,
    words_in,
)
from boltzhash.threads import in_batches

MIN_SIMILARITY = 0.8
SIBLINGS_FROM = 0.5  # texts less similar than that share phrases, not a template
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


class KeptIds:
    """Ids in the order in which they came, as bytes: a third of the memory that they take as objects.

    >>> ids = KeptIds()
    >>> ids.extend(["a", 1])
    >>> ids[0], ids[1], len(ids)
    ('a', 1, 2)
    """

    def __init__(self) -> None:
        self._written = Runs("B")

    def __len__(self) -> int:
        return len(self._written)

    def __getitem__(self, row: int) -> Id:
        id_: Id = json.loads(self._written.row(row).tobytes())
        return id_

    def extend(self, ids: Iterable[Id]) -> None:
        written = [json.dumps(id_).encode() for id_ in ids]
        self._written.extend([np.frombuffer(one, dtype=np.uint8) for one in written])


class Texts(NamedTuple):
    """What is compared of documents, and the order in which they are preferred."""

    ids: KeptIds
    hashed: HashedTexts
    order: Iterable[int]

    def watched(self, every: int, tell: Callable[[], object]) -> Texts:
        """The same; ``tell`` is called each time that so many more have been compared."""
        return self._replace(order=_Watched(self.order, every, tell))


class _Watched:
    """Rows that may be gone through several times."""

    def __init__(self, rows: Iterable[int], every: int, tell: Callable[[], object]) -> None:
        self._rows, self._every, self._tell = rows, every, tell

    def __iter__(self) -> Iterator[int]:
        for done, row in enumerate(self._rows, start=1):
            yield row
            if done % self._every == 0:
                self._tell()


def read_texts(documents: Iterable[Document], keep: str) -> Texts:
    """``documents`` come in the order of insertion.

    12 bytes a word of them are kept: 200 MB in memory, the rest in temporary files.

    >>> documents = [Document("a", "one"), Document("b", "one two"), Document("c", "two")]
    >>> [list(read_texts(documents, keep).order) for keep in KEEP]
    [[0, 1, 2], [1, 0, 2], [2, 1, 0]]
    """
    ids, lengths, hashed = KeptIds(), array("q"), HashedTexts()
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
    return _with_ids(texts, groups_of_near(texts.hashed, texts.order, min_similarity))


def sibling_groups(texts: Texts, min_similarity: float) -> list[DuplicateGroup]:
    """Groups of what would be kept that are similar from :data:`SIBLINGS_FROM` on.

    >>> sisters = ["the cat sat on the mat", "the cat sat on the rug", "the cat sat on the rug"]
    >>> texts = read_texts([Document(i, text) for i, text in enumerate(sisters)], "first")
    >>> sibling_groups(texts, 0.8)
    [DuplicateGroup(kept=0, duplicates=[Duplicate(id=1, similarity=0.6)])]
    """
    groups = groups_of_near(texts.hashed, texts.order, min_similarity)
    superfluous = {row for group in groups for row, _ in group.members}
    kept = (row for row in texts.order if row not in superfluous)
    return _with_ids(texts, groups_of_near(texts.hashed, kept, SIBLINGS_FROM, siblings=True))


def near_duplicates_of(text: str, min_similarity: float) -> Callable[[str], bool]:
    """Tells of other texts whether they are near-duplicates of this one.

    >>> is_near = near_duplicates_of("to be or not", 0.8)
    >>> is_near("To be or not!"), is_near("to be")
    (True, False)
    """
    shingles, (own,) = shingles_of(words_in(text)), hashed_texts([text])

    def is_near(other: str) -> bool:
        if jaccard(shingles, shingles_of(words_in(other))) < min_similarity:
            return False
        (hashed,) = hashed_texts([other])
        return not differ_in_a_field(own.words, hashed.words)

    return is_near


def _with_ids(texts: Texts, groups: list[RowGroup]) -> list[DuplicateGroup]:
    ids = texts.ids
    return [
        DuplicateGroup(ids[kept], [Duplicate(ids[row], value) for row, value in members])
        for kept, members in groups
    ]


def check_duplicates(min_similarity: float, keep: str) -> None:
    """
    >>> check_duplicates(80, "first")
    Traceback (most recent call last):
    ...
    ValueError: min_similarity must be a number above 0 and at most 1, got 80
    """
    check_number("min_similarity", min_similarity, above=0, at_most=1)
    check_choice("keep", keep, KEEP)
