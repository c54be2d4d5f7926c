"""Maintenance of a collection on a server: checking its codes, copying it to a folder."""

from __future__ import annotations

from pathlib import Path

from boltzhash.collection.locations import FOLDER, Location
from boltzhash.collection.models import Coder
from boltzhash.collection.sqlite.store import SqliteStore
from boltzhash.collection.store import BATCH, StoreSnapshot, all_coded
from boltzhash.encoding.coding import Input, coded_documents
from boltzhash.errors import CollectionError
from boltzhash.hashers import Hasher
from boltzhash.storage.folders import atomic_folder
from boltzhash.threads import in_batches

_WAIT = 60.0  # seconds; nobody else knows about the new folder


def check_coded(snapshot: StoreSnapshot, shown: str, hasher: Hasher) -> None:
    """Hash every document again; raises if a code, or their number, is not what it should be.

    Codes that were made from features, which are not kept, cannot be made again: such documents are
    read and counted.
    """
    n = 0
    for batch in in_batches(all_coded(snapshot), BATCH):
        can_hash = hasher.n_feature_columns is None
        if can_hash and coded_documents(hasher, [Input(c.document) for c in batch]) != batch:
            raise CollectionError(
                f"{shown} is damaged: codes of documents {n} to {n + len(batch) - 1} are not "
                "those of their texts"
            )
        n += len(batch)
    if n != snapshot.state.n_documents:
        raise CollectionError(
            f"{shown} is damaged: it counts {snapshot.state.n_documents} documents and has {n}"
        )


def copy_to_folder(snapshot: StoreSnapshot, coder: Coder, target: Path) -> None:
    """One generation of a collection as a collection in a new folder, which appears whole."""
    with atomic_folder(target, "boltzhash collection") as fresh:
        made = SqliteStore(Location(FOLDER, str(fresh / "copy")), _WAIT, coder)
        try:
            for batch in in_batches(all_coded(snapshot), BATCH):
                with made.write() as transaction:
                    transaction.add(batch)
        finally:
            made.close()
        for path in (fresh / "copy").iterdir():
            path.rename(fresh / path.name)
        (fresh / "copy").rmdir()
