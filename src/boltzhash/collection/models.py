"""The hasher of a collection: what it must be able to do."""

from __future__ import annotations

from typing import NamedTuple

from boltzhash.errors import CollectionError
from boltzhash.hashers import Hasher


class Coder(NamedTuple):
    """A hasher and its fingerprint, which takes time to compute, so both are replaced together."""

    model: str
    hasher: Hasher


def check_reads_texts(hasher: Hasher) -> None:
    """A collection hashes texts, so its hasher must know words."""
    if not isinstance(hasher, Hasher):
        raise TypeError(f"hasher must be a fitted boltzhash hasher, got {type(hasher).__name__}")
    hasher.tfidf([])  # raises if it is not fitted, or was fitted on a matrix
    if hasher.feature_scaling_ is not None:
        raise ValueError(
            f"a collection hashes texts, and this {type(hasher).__name__} was fitted with features: "
            "keep its codes with `boltzhash encode --features`, or fit a model on texts alone"
        )


def check_made_by(hasher: Hasher, model: str, shown: str) -> None:
    """Refuse a hasher that is not the one whose codes the collection holds."""
    if hasher.fingerprint() != model:
        raise CollectionError(
            f"{shown} was made by another model (fingerprint {model[:16]}…, this one has "
            f"{hasher.fingerprint()[:16]}…): open it with that one, or rehash it"
        )
