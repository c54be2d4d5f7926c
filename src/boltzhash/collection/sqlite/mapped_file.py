"""Files of arrays that are mapped into memory: copies of what SQLite has, made to be scanned.

A header of one page (JSON), then the arrays one after the other. A file is written beside its place and
moved there, never changed, so what a process has mapped stays what it was; its checksum is compared when
it is opened. Large arrays can be left out of it, if who reads them compares them with sums of their own.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.collection.sqlite.database import DATABASE

_HEADER_BYTES = 4096
ABANDONED_AFTER = 3600  # seconds

_log = logging.getLogger("boltzhash")

Arrays = Sequence[NDArray[Any]]


def write_mapped(
    path: Path, header: dict[str, Any], arrays: Arrays, unchecked: Arrays = ()
) -> bool:
    """Replace the file; if it cannot be written, nothing is lost but time, and False is returned.

    ``unchecked`` are arrays that the checksum leaves out.
    """
    try:
        _remove_abandoned(path)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError:
        return False  # no permission
    try:
        with os.fdopen(descriptor, "wb") as file:
            shapes = [(array.dtype.str, array.shape) for array in (*arrays, *unchecked)]
            described = {**header, "database": _identity(path), "arrays": shapes}
            page = json.dumps({**described, "checksum": _checksum(described, arrays)}).encode()
            file.write(page.ljust(_HEADER_BYTES))
            for array in (*arrays, *unchecked):
                file.write(np.ascontiguousarray(array).data)
        shutil.copymode(_database_of(path), name)  # who may read the one may read the other
        os.replace(name, path)
        return True
    except OSError:  # a full disk, say
        Path(name).unlink(missing_ok=True)
        return False
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_mapped(
    path: Path, expected: dict[str, Any], n_unchecked: int = 0
) -> tuple[dict[str, Any], Arrays] | None:
    """Header and arrays, mapped; None if there is no file, or none that can be used.

    ``expected`` is what the header must say; a file that says otherwise is simply old. The last
    ``n_unchecked`` arrays are not compared with the checksum.
    """
    try:
        with path.open("rb") as file:
            header = json.loads(file.read(_HEADER_BYTES))
        wanted = {**expected, "database": _identity(path)}
        if any(header[name] != value for name, value in wanted.items()):
            return None
        arrays = _mapped(path, header["arrays"])
        checksum = header.pop("checksum")
        if checksum != _checksum(header, arrays[: len(arrays) - n_unchecked]):
            raise ValueError("its checksum is not that of its contents")
        return header, arrays
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("%s is damaged (%s): made again from the collection", path, error)
        return None


def _identity(path: Path) -> int:
    """Tells the database of the file from others: a file of another collection is not ours."""
    return _database_of(path).stat().st_ino


def _database_of(path: Path) -> Path:
    """Beside the file, or beside the folder that it is in."""
    beside = path.with_name(DATABASE)
    return beside if beside.exists() else path.parent.with_name(DATABASE)


def remove_mapped(path: Path) -> None:
    with contextlib.suppress(PermissionError):
        path.unlink(missing_ok=True)


def _remove_abandoned(path: Path) -> None:
    """Unfinished files of processes that were killed: those that nobody can still be writing."""
    for unfinished in path.parent.glob(f".{path.name}.*"):
        if time.time() - unfinished.stat().st_mtime > ABANDONED_AFTER:
            unfinished.unlink(missing_ok=True)


def _mapped(path: Path, shapes: list[tuple[str, list[int]]]) -> Arrays:
    dtypes = [np.dtype(dtype) for dtype, _ in shapes]
    sizes = [
        dtype.itemsize * int(np.prod(shape))
        for dtype, (_, shape) in zip(dtypes, shapes, strict=True)
    ]
    expected = _HEADER_BYTES + sum(sizes)
    if path.stat().st_size != expected:
        raise ValueError(f"expected {expected} bytes, got {path.stat().st_size}")
    if not sum(sizes):
        return [np.empty(shape, dtype) for dtype, (_, shape) in zip(dtypes, shapes, strict=True)]
    whole = np.memmap(path, dtype=np.uint8, mode="r", offset=_HEADER_BYTES)
    parts = np.split(whole, np.cumsum(sizes)[:-1])
    return [
        _aligned(part, dtype).reshape(shape)
        for part, dtype, (_, shape) in zip(parts, dtypes, shapes, strict=True)
    ]


def _aligned(part: NDArray[np.uint8], dtype: np.dtype[Any]) -> NDArray[Any]:
    return part.view(dtype) if len(part) else np.empty(0, dtype)


def _checksum(header: dict[str, Any], arrays: Arrays) -> int:
    checksum = zlib.crc32(json.dumps(header).encode())
    for array in arrays:
        checksum = zlib.crc32(np.ascontiguousarray(array).data, checksum)
    return checksum
