"""What searches of a collection answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.collection.documents import Id
from boltzhash.corpus import Document


class Match(NamedTuple):
    """One document that was found, and how many bits its code is away."""

    id: Id
    distance: int
    document: Document


@dataclass(frozen=True, eq=False)
class Matches:
    """What one query found, best first: as many as there are, never padding.

    ``search`` and ``within`` both answer with it. In order of (distance, insertion), except after
    reranking, where the words decide. All of it is as it was in one committed generation of the
    collection.

    Attributes
    ----------
    ids : list of str or int
    distances : int32 array
        Hamming distances, one an id.
    documents : list of Document
        With ``id``, ``text`` and ``metadata``.
    known_words : int or None
        How many words of the query the model knows; with 0 its code, and so the answer, means
        nothing. None where the query was a code.

    Examples
    --------
    >>> matches = Matches(["a"], np.array([3], dtype=np.int32), [Document("a", "text", {})], 1)
    >>> len(matches), [(match.id, match.distance) for match in matches]
    (1, [('a', 3)])
    """

    ids: list[Id]
    distances: NDArray[np.int32]
    documents: list[Document]
    known_words: int | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Match]:
        distances = self.distances.tolist()
        return map(Match, self.ids, distances, self.documents)
