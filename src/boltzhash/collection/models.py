"""The hasher of a collection: what it must be able to do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from boltzhash.errors import CollectionError
from boltzhash.hashers import Hasher
from boltzhash.text.analyzer import Analyzer, analyzer_of
from boltzhash.text.passages import check_passages


@dataclass(frozen=True)
class Coder:
    """A hasher and its fingerprint, which takes time to compute, so both are replaced together."""

    model: str
    hasher: Hasher

    @cached_property
    def words(self) -> Analyzer:
        """The analyzer that cuts texts into the words that find them."""
        return analyzer_of(self.hasher.language)


def check_knows_words(hasher: Hasher) -> None:
    """Documents of a collection have texts, so its hasher must know words."""
    if not isinstance(hasher, Hasher):
        raise TypeError(f"hasher must be a fitted boltzhash hasher, got {type(hasher).__name__}")
    hasher.tfidf([])  # raises if it is not fitted, or was fitted on a matrix


def check_reads_texts(hasher: Hasher) -> None:
    """What a collection can hash anew is what it keeps: texts, and not features."""
    check_knows_words(hasher)
    if hasher.n_feature_columns is not None:
        raise ValueError(
            f"a collection keeps no features, so it cannot be rehashed with this "
            f"{type(hasher).__name__}, which was fitted with features: make a new collection with "
            "Collection.create and add(…, features=…), or `boltzhash index MODEL CORPUS --features "
            "FILE.npy`"
        )


def check_cut_for(hasher: Hasher, passages: object) -> None:
    """Passages are cut from texts, so their codes are made from texts too."""
    check_passages(passages)
    if hasher.n_feature_columns is not None:
        raise ValueError(
            f"passages are hashed by their words, and this {type(hasher).__name__} was fitted with "
            "features: cut the documents yourself, and give each part its own id and features"
        )


def check_made_by(hasher: Hasher, model: str, shown: str) -> None:
    """Refuse a hasher that is not the one whose codes the collection holds."""
    if hasher.fingerprint() != model:
        raise CollectionError(
            f"{shown} was made by another model (fingerprint {model[:16]}…, this one has "
            f"{hasher.fingerprint()[:16]}…): open it with that one, or rehash it"
        )
