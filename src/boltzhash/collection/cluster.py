"""Documents hashed on a Ray cluster, on their way into a collection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from boltzhash.collection.batches import CodedBatch, write_batches
from boltzhash.collection.collection import Collection
from boltzhash.collection.models import Coder
from boltzhash.corpus.records import Fields
from boltzhash.encoding.coding import Input
from boltzhash.encoding.ray import documents_encoded_on_ray


def add_from(
    collection: Collection,
    paths: Iterable[str | Path],
    *,
    text_field: str = "text",
    id_field: str | None = None,
    metadata: bool | Sequence[str] = True,
    shards: str | Path | None = None,
) -> int:
    """Add the documents of JSONL, CSV or Parquet files, hashed on a Ray cluster; returns how many.

    If an id already exists its document is overwritten, so after an interruption the same
    call can be repeated. ``shards`` is a folder that every machine of the cluster sees; it keeps
    the codes until they are written. See :mod:`boltzhash.encoding.ray`. Codes that are made from
    features are not made there.
    """
    hasher, store = collection.hasher, collection.store
    if store.passages is not None:
        raise ValueError(
            f"a cluster hashes whole documents, and {store.shown} cuts them into passages: use add"
        )
    if hasher.n_feature_columns is not None:
        raise ValueError(
            f"a cluster hashes texts, and this {type(hasher).__name__} was fitted with features: "
            "use add(documents, features=…)"
        )
    coder = Coder(hasher.fingerprint(), hasher)
    fields = Fields(text_field, id_field, metadata)
    with documents_encoded_on_ray(hasher, paths, fields=fields, shards=shards) as encoded:
        batches = (
            CodedBatch(coder, [Input(coded.document) for coded in batch], batch)
            for batch in encoded
        )
        return write_batches(
            store,
            batches,
            lambda model: Coder(model, store.load_model(model)),
            lambda transaction, batch: transaction.upsert(batch.coded),
        )
