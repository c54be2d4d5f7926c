"""Looking after a collection on a server: whether its codes are right, and a copy of it."""

from __future__ import annotations

from pathlib import Path

from boltzhash.collection.locations import FOLDER, Location
from boltzhash.collection.models import Coder
from boltzhash.collection.sqlite.store import SqliteStore
from boltzhash.collection.store import BATCH, Standing, Store
from boltzhash.encoding.coding import Given, coded_documents
from boltzhash.errors import CollectionError
from boltzhash.hashers import Hasher
from boltzhash.storage.folders import atomic_folder
from boltzhash.threads import in_batches

_WAIT = 60.0  # seconds; nobody else knows about the new folder


def check_coded(store: Store, standing: Standing, hasher: Hasher) -> None:
    """Hash every document again; raises if a code, or their number, is not what it should be.

    What was made from features, which are not kept, cannot be made again: such documents are read and
    counted.
    """
    n = 0
    for batch in in_batches(store.coded_here(), BATCH):
        can_hash = hasher.n_feature_columns is None
        if can_hash and coded_documents(hasher, [Given(c.document) for c in batch]) != batch:
            raise CollectionError(
                f"{store.shown} is damaged: codes of documents {n} to {n + len(batch) - 1} are not "
                "those of their texts"
            )
        n += len(batch)
    if n != standing.n_documents:
        raise CollectionError(
            f"{store.shown} is damaged: it counts {standing.n_documents} documents and has {n}"
        )


def copy_to_folder(store: Store, target: Path) -> None:
    """One generation of a collection as a collection in a new folder, which appears whole."""

    def copy(standing: Standing) -> None:
        with atomic_folder(target, "boltzhash collection") as fresh:
            place = Location(FOLDER, str(fresh / "copy"))
            coder = Coder(standing.model, store.load_model(standing.model))
            made = SqliteStore(place, _WAIT, coder)
            try:
                for batch in in_batches(store.coded_here(), BATCH):
                    made.write(lambda _, batch=batch: made.add(batch))  # type: ignore[misc]
            finally:
                made.close()
            for path in (fresh / "copy").iterdir():
                path.rename(fresh / path.name)
            (fresh / "copy").rmdir()

    store.read(copy)
