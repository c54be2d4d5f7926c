"""Groups of near-duplicates are told in an order, by a number that is true of all their documents."""

from __future__ import annotations

from pathlib import Path

from boltzhash import Hasher
from boltzhash.collection import Collection
from boltzhash.server.duplicates import DuplicateGroups, DuplicateQuery
from snapshots import Newest

TEXT = "the captain of the ship looks at the moon and the stars above the harbour every night"
OTHER = "knead the dough of flour and water and salt and bake the bread in the oven for an hour"


def test_the_most_similar_come_first_then_the_largest(tmp_path: Path, lsh: Hasher) -> None:
    documents = [
        {"id": "edited", "text": TEXT},
        {"id": "edited too", "text": f"{TEXT} again"},
        {"id": "edited more", "text": f"{TEXT} again and again"},
        {"id": "copied", "text": OTHER},
        {"id": "copy", "text": OTHER.upper()},
        {"id": "twice", "text": f"{OTHER} {TEXT}"},
        {"id": "twice 2", "text": f"{OTHER} {TEXT}!"},
        {"id": "twice 3", "text": f"{OTHER} {TEXT}?"},
    ]
    with Collection.create(tmp_path / "collection", lsh) as collection:
        collection.add(documents)
        told = DuplicateGroups().page(Newest(collection), DuplicateQuery(0.7, "first"), 0, 10)
        stored = {group.kept: group for group in Newest(collection).duplicates(0.7)}
    assert [group["kept"] for group in told["groups"]] == ["twice", "copied", "edited"]
    assert [group["size"] for group in told["groups"]] == [3, 2, 3]
    least = min(one.similarity for one in stored["edited"].duplicates)
    assert [group["similarity"] for group in told["groups"]] == [1, 1, least]
    assert 0.7 <= least < max(one.similarity for one in stored["edited"].duplicates) < 1
