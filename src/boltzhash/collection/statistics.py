"""What a collection says of itself: the same for every store."""

from __future__ import annotations

from typing import Any

from boltzhash.collection.store import FORMAT_VERSION, Standing, Store
from boltzhash.hashers import Hasher


def statistics(store: Store, standing: Standing, hasher: Hasher) -> dict[str, Any]:
    """Documents, bits, model, generation, the recall of approximate search, and bytes."""
    counts, size, n = store.counts(), store.sizes(), standing.n_documents
    rehash = {"model": standing.next_model, "documents": counts.rehashed}
    return {
        "documents": n,
        "no_known_word": counts.no_known_word,
        "bits": standing.n_bits,
        "method": type(hasher).__name__,
        "passages": (
            None
            if store.passages is None
            else {"words": store.passages, "passages": counts.passages}
        ),
        "features": hasher.n_feature_columns,
        "model": standing.model,
        "generation": standing.generation,
        "format_version": FORMAT_VERSION,
        "unfinished": standing.unfinished,
        "rehash": rehash if standing.next_model else None,
        "approximate": standing.approximate,
        "bytes": size,
        "bytes_per_document": {
            part: round(number / n, 1) for part, number in size.items() if n and part != "models"
        },
    }
