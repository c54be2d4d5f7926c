"""Models on disk: a folder with config.json, model.safetensors and vocabulary.json.

Files are data, never programs: nothing here is unpickled. A folder is written beside its
place and moved there whole, so a reader sees the old one or the new one, and a full disk loses nothing.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from boltzhash.errors import ModelError
from boltzhash.version import __version__

Arrays = dict[str, NDArray[Any]]

FORMAT_VERSION = 1
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
VOCABULARY = "vocabulary.json"


@contextmanager
def atomic_folder(target: Path, kind: str) -> Iterator[Path]:
    """A new folder to fill; it takes ``target``'s place when the block ends without an error.

    What is at ``target`` is replaced only if it is of the same ``kind`` (or an empty folder).
    """
    target = Path(os.path.realpath(target))
    check_output(target, kind)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    try:  # named before it is made: Ctrl-C in between must leave nothing behind
        fresh.mkdir()
        yield fresh
        for path in [*fresh.rglob("*"), fresh]:
            _flush_to_disk(path)
        _put_in_place(fresh, target)
        _flush_to_disk(target.parent)
    except OSError as error:
        raise _naming(target, error, fresh) from error
    finally:
        try:
            shutil.rmtree(fresh, ignore_errors=True)
        except KeyboardInterrupt:  # Ctrl-C right here must leave nothing behind either
            shutil.rmtree(fresh, ignore_errors=True)
            raise


def check_output(target: Path, kind: str) -> None:
    """Refuse a place where a folder cannot be written, or where something else would be lost."""
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"expected a folder to write, got {target}, which is a file")
    for parent in target.parents:
        if parent.exists():
            if not parent.is_dir():
                raise NotADirectoryError(
                    f"expected a folder to write in, got {parent}, which is a file"
                )
            break
    if target.is_dir() and any(target.iterdir()):
        try:
            read_config(target, kind)
        except ModelError as error:
            raise FileExistsError(f"{target} was not replaced: {error}") from error


def try_output(target: Path, kind: str) -> None:
    """The same, and really write there: before hours of work, not after them."""
    check_output(target, kind)
    parent = next(parent for parent in target.parents if parent.exists())
    trial = parent / f".{target.name}.{secrets.token_hex(8)}"
    try:
        trial.mkdir()
        (trial / CONFIG).write_bytes(bytes(4096))
    except OSError as error:
        raise _naming(target, error, trial) from error
    finally:
        shutil.rmtree(trial, ignore_errors=True)


def is_model(target: Path) -> bool:
    """Whether a model was saved there, which a new one would replace."""
    try:
        read_config(target, "boltzhash model")
    except ModelError:
        return False
    return True


def _naming(target: Path, error: OSError, unfinished: Path) -> OSError:
    """An error of writing, with the path that a user knows, not that of what is under construction."""
    if error.errno is None:
        return error
    if error.filename is not None and not Path(error.filename).is_relative_to(unfinished):
        return error
    return OSError(error.errno, error.strerror, str(target))


def _flush_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _put_in_place(fresh: Path, target: Path) -> None:
    """Move ``fresh`` to ``target``; what was there ends up at ``fresh``."""
    if not target.exists():
        os.rename(fresh, target)
    elif not _exchange(fresh, target):
        # Without an atomic exchange there is an instant with no folder; the old one waits beside it.
        old = fresh.with_name(fresh.name + ".old")
        os.rename(target, old)
        try:
            os.rename(fresh, target)
        except BaseException:
            os.rename(old, target)
            raise
        os.rename(old, fresh)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step (Linux ``renameat2``); False if that cannot be done."""
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
    if renameat2 is None:
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def write_model(
    folder: Path, *, kind: str, params: Mapping[str, Any], arrays: Arrays, words: list[str] | None
) -> None:
    """Write a model folder.

    ``arrays`` are of any shapes, by name; ``words`` is None if the model was fitted on a matrix.
    """
    with atomic_folder(folder, "boltzhash model") as fresh:
        (fresh / WEIGHTS).write_bytes(save({n: np.ascontiguousarray(a) for n, a in arrays.items()}))
        (fresh / VOCABULARY).write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")
        config = {
            "format": "boltzhash model",
            "format_version": FORMAT_VERSION,
            "boltzhash": __version__,
            "class": kind,
            "params": dict(params),
            "sha256": {
                "params": _digest_of([kind, dict(params)]),
                **{name: sha256(fresh / name) for name in (WEIGHTS, VOCABULARY)},
            },
        }
        (fresh / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def read_model(folder: Path) -> tuple[str, dict[str, Any], Arrays, list[str] | None]:
    """The class name, parameters, arrays and words of a model folder, or a :class:`ModelError`."""
    config = read_config(folder, "boltzhash model", FORMAT_VERSION)
    for key in ("class", "params", "sha256"):
        if key not in config:
            raise ModelError(f"{folder / CONFIG} is damaged: {key} is missing")
    for name in (WEIGHTS, VOCABULARY):
        path = folder / name
        if not path.is_file():
            raise ModelError(f"{folder} is not a complete model: {name} is missing")
        if sha256(path) != config["sha256"].get(name):
            raise ModelError(
                f"{path} is damaged: its contents are not those that were saved with {CONFIG}"
            )
    if _digest_of([config["class"], config["params"]]) != config["sha256"].get("params"):
        raise ModelError(f"{folder / CONFIG} is damaged: its params are not those that were saved")
    try:
        arrays = load_file(folder / WEIGHTS)
        words = json.loads((folder / VOCABULARY).read_text(encoding="utf-8"))
    except (SafetensorError, ValueError) as error:
        raise ModelError(f"{folder} cannot be read: {error}") from error
    return config["class"], config["params"], arrays, words


def _digest_of(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def fingerprint(params: Mapping[str, Any], arrays: Arrays, words: list[str] | None) -> str:
    """Identifies what a model computes: two that give different codes have different fingerprints."""
    digest = hashlib.sha256(json.dumps([dict(params), words], sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def read_config(
    folder: Path, expected_format: str, expected_version: int | None = None
) -> dict[str, Any]:
    """config.json of a folder, its format checked, and its version if one is expected."""
    path = folder / CONFIG
    if not folder.is_dir():
        raise ModelError(f"{folder} is not a folder; expected a {expected_format} folder")
    if not path.is_file():
        raise ModelError(f"{folder} is not a {expected_format} folder: {CONFIG} is missing")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{path} is damaged or not ours: {error!r}") from error
    return check_config(config, expected_format, expected_version, str(folder))


def check_config(
    config: Any, expected_format: str, expected_version: int | None, shown: str
) -> dict[str, Any]:
    """What a config.json says, its format and version checked; ``shown`` is where it is."""
    try:
        found, version = config["format"], config["format_version"]
    except (KeyError, TypeError) as error:
        raise ModelError(f"{shown}/{CONFIG} is damaged or not ours: {error!r}") from error
    if found != expected_format:
        raise ModelError(f"{shown} holds a {found!r}; expected a {expected_format!r}")
    if type(version) is not int:
        raise ModelError(f"{shown}/{CONFIG} is damaged: {version!r} is not a format version")
    if expected_version not in (None, version):
        raise ModelError(
            f"{shown} has format version {version}, this boltzhash reads {expected_version}: make it "
            "again"
        )
    if not isinstance(config.get("sha256", {}), dict):
        raise ModelError(f"{shown}/{CONFIG} is damaged: sha256 must be an object")
    return cast(dict[str, Any], config)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_checkpoint(
    folder: Path, fingerprint: str, arrays: Arrays, history: list[dict[str, Any]]
) -> None:
    """Keep the state of an unfinished fit."""
    with atomic_folder(folder, "boltzhash checkpoint") as fresh:
        (fresh / WEIGHTS).write_bytes(save(arrays))
        state = {
            "format": "boltzhash checkpoint",
            "format_version": FORMAT_VERSION,
            "fingerprint": fingerprint,
            "history": history,
            "sha256": {WEIGHTS: sha256(fresh / WEIGHTS)},
        }
        (fresh / CONFIG).write_text(json.dumps(state), encoding="utf-8")


def read_checkpoint(folder: Path, fingerprint: str) -> tuple[Arrays, list[dict[str, Any]]] | None:
    """The state kept for the same settings and data; None if there is none that fits."""
    if not folder.exists():
        return None
    state = read_config(folder, "boltzhash checkpoint", FORMAT_VERSION)
    if state["fingerprint"] != fingerprint:
        return None
    if sha256(folder / WEIGHTS) != state["sha256"].get(WEIGHTS):
        raise ModelError(f"{folder / WEIGHTS} is damaged; delete {folder} to start the fit over")
    return load_file(folder / WEIGHTS), state["history"]
