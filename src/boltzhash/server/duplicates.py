"""Groups of near-duplicates with their documents, a page at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

from boltzhash.collection.documents import Id
from boltzhash.server.answers import stored_documents
from boltzhash.server.reader import Reader
from boltzhash.server.refusals import RefusedError
from boltzhash.server.settings import MAX_DUPLICATES_AMONG, MAX_IN_GROUP


class _Found(NamedTuple):
    generation: int
    radius: int
    groups: list[list[Id]]


class DuplicateGroups:
    """Keeps the last groups that were found while the collection stays as it is."""

    def __init__(self) -> None:
        self._last: _Found | None = None

    def page(self, reader: Reader, radius: int, offset: int, limit: int) -> dict[str, Any]:
        """The smallest groups first: the fewer share a code, the more it says that they do."""
        with reader.one_generation() as state:
            if state.n_documents > MAX_DUPLICATES_AMONG:
                raise RefusedError(
                    422,
                    f"the collection has {state.n_documents} documents; near-duplicates are looked "
                    f"for here among at most {MAX_DUPLICATES_AMONG}. Use `boltzhash duplicates`",
                )
            last = self._last
            if last is None or (last.generation, last.radius) != (state.generation, radius):
                groups = sorted(reader.duplicates(radius), key=len)
                last = self._last = _Found(state.generation, radius, groups)
            shown = last.groups[offset : offset + limit]
            return {
                "generation": state.generation,
                "radius": radius,
                "n_groups": len(last.groups),
                "n_extra": sum(len(group) - 1 for group in last.groups),
                "groups": [
                    {
                        "size": len(group),
                        "documents": stored_documents(reader, group[:MAX_IN_GROUP]),
                    }
                    for group in shown
                ],
            }
