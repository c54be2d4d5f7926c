"""Groups of near-duplicates with their documents, a page at a time."""

from __future__ import annotations

from typing import NamedTuple

from boltzhash.collection import DuplicateGroup, Snapshot
from boltzhash.collection.store import OnBatch
from boltzhash.server import answers
from boltzhash.server.hits import shown_id, stored_documents
from boltzhash.server.refusals import RefusedError
from boltzhash.server.settings import MAX_DUPLICATES_AMONG, MAX_IN_GROUP, MAX_LISTED_IN_GROUP


class DuplicateQuery(NamedTuple):
    """A similarity, and which document of a group is kept."""

    min_similarity: float
    keep: str


class _Found(NamedTuple):
    generation: int
    query: DuplicateQuery
    groups: list[DuplicateGroup]


class DuplicateGroups:
    """Keeps the last groups that were found while the collection stays as it is."""

    def __init__(self) -> None:
        self._last: _Found | None = None

    def page(
        self,
        snapshot: Snapshot,
        query: DuplicateQuery,
        offset: int,
        limit: int,
        on_batch: OnBatch | None = None,
    ) -> answers.Duplicates:
        now = snapshot.state
        if now.n_documents > MAX_DUPLICATES_AMONG:
            raise RefusedError(
                422,
                f"the collection has {now.n_documents} documents; near-duplicates are looked "
                f"for here among at most {MAX_DUPLICATES_AMONG}. Use `boltzhash duplicates`",
            )
        last = self._last
        if last is None or (last.generation, last.query) != (now.generation, query):
            found = snapshot.duplicates(query.min_similarity, keep=query.keep, on_batch=on_batch)
            groups = sorted(found, key=_rank)
            last = self._last = _Found(now.generation, query, groups)
        return {
            "generation": now.generation,
            "min_similarity": query.min_similarity,
            "keep": query.keep,
            "n_groups": len(last.groups),
            "n_extra": sum(len(group.duplicates) for group in last.groups),
            "groups": [_as_json(snapshot, group) for group in last.groups[offset : offset + limit]],
        }


def _least_similarity(group: DuplicateGroup) -> float:
    """The similarity of the duplicate that is least like the document kept."""
    return min(duplicate.similarity for duplicate in group.duplicates)


def _rank(group: DuplicateGroup) -> tuple[float, int]:
    """The most similar first, of equals the largest; beyond that they stay in the order of insertion."""
    return -_least_similarity(group), -len(group.duplicates)


def _as_json(snapshot: Snapshot, group: DuplicateGroup) -> answers.Group:
    listed = group.duplicates[:MAX_LISTED_IN_GROUP]
    shown = [group.kept, *(duplicate.id for duplicate in listed)][:MAX_IN_GROUP]
    return {
        "size": 1 + len(group.duplicates),
        "similarity": _least_similarity(group),
        "kept": shown_id(group.kept),
        "duplicates": [
            {"id": shown_id(duplicate.id), "similarity": duplicate.similarity}
            for duplicate in listed
        ],
        "documents": stored_documents(snapshot, shown),
    }
