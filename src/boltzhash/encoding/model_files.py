"""Hashers as files of data with their digests, which an engine keeps so that any client can hash."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from boltzhash.errors import CollectionError, ModelError
from boltzhash.hashers import Hasher, load


class ModelFile(NamedTuple):
    """One file of a saved model."""

    name: str
    sha256: str
    contents: bytes

    @classmethod
    def of(cls, name: str, contents: bytes) -> ModelFile:
        return cls(name, hashlib.sha256(contents).hexdigest(), contents)


def model_to_files(hasher: Hasher) -> list[ModelFile]:
    """The folder that ``save`` writes: JSON and safetensors.

    >>> from boltzhash import LSH
    >>> files = model_to_files(LSH(n_bits=8).fit(["one text", "another text"]))
    >>> [file.name for file in files]
    ['config.json', 'model.safetensors', 'vocabulary.json']
    """
    with tempfile.TemporaryDirectory(prefix="boltzhash-") as folder:
        hasher.save(Path(folder) / "model")
        contents = [(path.name, path.read_bytes()) for path in Path(folder, "model").iterdir()]
    return [ModelFile.of(name, data) for name, data in sorted(contents)]


def model_from_files(files: Iterable[ModelFile], fingerprint: str, where: str) -> Hasher:
    """The hasher with that fingerprint; refused if a file is damaged or it is a different hasher."""
    with tempfile.TemporaryDirectory(prefix="boltzhash-") as folder:
        for file in files:
            if hashlib.sha256(file.contents).hexdigest() != file.sha256:
                raise CollectionError(f"the model of {where} is damaged: {file.name}")
            if Path(file.name).name != file.name:
                raise CollectionError(f"the model of {where} is damaged: a file {file.name!r}")
            Path(folder, file.name).write_bytes(file.contents)
        try:
            hasher = load(folder)
        except ModelError as error:
            raise CollectionError(f"the model of {where} is damaged: {error}") from error
    if hasher.fingerprint() != fingerprint:
        raise CollectionError(f"the model stored in {where} is not the one that made its codes")
    return hasher
