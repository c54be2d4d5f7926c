"""Groups of near-duplicates with their documents, a page at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from boltzhash.collection import Collection
from boltzhash.corpus.documents import Id
from boltzhash.server.answers import stored_documents
from boltzhash.server.refusals import RefusedError
from boltzhash.server.settings import MAX_DUPLICATES_AMONG, MAX_IN_GROUP

_COMPARED = 5_000  # documents whose words are compared; groups after them keep their order


class _Found(NamedTuple):
    generation: int
    radius: int
    groups: list[list[Id]]


class DuplicateGroups:
    """Keeps the last groups that were found while the collection stays as it is."""

    def __init__(self) -> None:
        self._last: _Found | None = None

    def page(self, collection: Collection, radius: int, offset: int, limit: int) -> dict[str, Any]:
        """Groups whose documents share the most words come first: copies, not only one topic."""
        now = collection.standing()
        if now.n_documents > MAX_DUPLICATES_AMONG:
            raise RefusedError(
                422,
                f"the collection has {now.n_documents} documents; near-duplicates are looked "
                f"for here among at most {MAX_DUPLICATES_AMONG}. Use `boltzhash duplicates`",
            )
        last = self._last
        if last is None or (last.generation, last.radius) != (now.generation, radius):
            groups = _most_alike_first(collection, collection.duplicates(radius))
            last = self._last = _Found(now.generation, radius, groups)
        shown = last.groups[offset : offset + limit]
        return {
            "generation": now.generation,
            "radius": radius,
            "n_groups": len(last.groups),
            "n_extra": sum(len(group) - 1 for group in last.groups),
            "groups": [
                {
                    "size": len(group),
                    "documents": stored_documents(collection, group[:MAX_IN_GROUP]),
                }
                for group in shown
            ],
        }


def _most_alike_first(collection: Collection, groups: list[list[Id]]) -> list[list[Id]]:
    """By the greatest tf-idf cosine between two shown documents of a group."""
    shown = [group[:MAX_IN_GROUP] for group in groups]
    ends = np.cumsum([len(group) for group in shown])
    n_compared = int(np.searchsorted(ends, _COMPARED, side="right"))
    ids = [id_ for group in shown[:n_compared] for id_ in group]
    found = collection.find(ids)
    words = collection.hasher.tfidf([found[id_].document.text for id_ in ids])
    likeness = []
    for start, end in zip([0, *ends], ends[:n_compared], strict=False):
        cosines = (words[start:end] @ words[start:end].T).toarray()
        np.fill_diagonal(cosines, 0)
        likeness.append(round(float(cosines.max()), 6))
    order = sorted(range(n_compared), key=lambda number: -likeness[number])
    return [*(groups[number] for number in order), *groups[n_compared:]]
