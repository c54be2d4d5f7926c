"""The hashers of a collection: folders of data beside its database, named by their fingerprints."""

from __future__ import annotations

import shutil
from collections.abc import Collection as Names
from pathlib import Path

from boltzhash.collection.models import Coder
from boltzhash.errors import CollectionError, ModelError
from boltzhash.hashers import Hasher, load

MODELS = "models"


def model_folder(folder: Path, fingerprint: str) -> Path:
    return folder / MODELS / fingerprint[:16]


def save_model(folder: Path, coder: Coder) -> None:
    coder.hasher.save(model_folder(folder, coder.model))


def load_model(folder: Path, fingerprint: str) -> Hasher:
    """The hasher with that fingerprint; refused if it is damaged or a different one."""
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
