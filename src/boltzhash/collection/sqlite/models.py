"""The hashers of a collection: folders of data beside its database, named by their fingerprints."""

from __future__ import annotations

import shutil
from collections.abc import Collection as Names
from pathlib import Path

from boltzhash.errors import CollectionError, ModelError
from boltzhash.hashers import Hasher, load

MODELS = "models"


def model_folder(folder: Path, fingerprint: str) -> Path:
    return folder / MODELS / fingerprint[:16]


def check_reads_texts(hasher: Hasher) -> None:
    """A collection hashes texts, so its hasher must know words."""
    if not isinstance(hasher, Hasher):
        raise TypeError(f"hasher must be a fitted boltzhash hasher, got {type(hasher).__name__}")
    hasher.tfidf([])  # raises where it is not fitted, or was fitted on a matrix
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
            f"{hasher.fingerprint()[:16]}…): open it with that, or rehash it"
        )


def save_model(folder: Path, hasher: Hasher) -> None:
    hasher.save(model_folder(folder, hasher.fingerprint()))


def load_model(folder: Path, fingerprint: str) -> Hasher:
    """The hasher with that fingerprint; refused where it is damaged or not the one."""
    path = model_folder(folder, fingerprint)
    try:
        hasher = load(path)
    except ModelError as error:
        raise CollectionError(f"the model of {folder} is damaged: {error}") from error
    if hasher.fingerprint() != fingerprint:
        raise CollectionError(f"{path} is not the model that made the codes of {folder}")
    return hasher


def remove_models_but(folder: Path, fingerprints: Names[str | None]) -> None:
    kept = {model_folder(folder, f) for f in fingerprints if f is not None}
    for path in (folder / MODELS).iterdir():
        if path not in kept:
            shutil.rmtree(path, ignore_errors=True)
