"""codes.map: the packed codes of a collection in one file, to be mapped into memory and scanned.

A header of one page (JSON), then int64 places, uint8 codes, and one byte per code that says whether
the model knew any word of the document. It is a copy: SQLite is the truth, and a file that is damaged,
of another model or too old is rebuilt. It is written beside its place and moved there, never
changed, so what a process has mapped stays as it was.
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
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from boltzhash.collection.sqlite.database import DATABASE
from boltzhash.collection.store import Rows

CODES_FILE = "codes.map"

_FORMAT = "boltzhash codes map 1"
_HEADER_BYTES = 4096
_ABANDONED_AFTER = 3600  # seconds

_log = logging.getLogger("boltzhash")


class CodesFile(NamedTuple):
    """What codes.map holds: all codes of ``model`` in ``generation``, up to ``last_place``."""

    model: str
    generation: int
    last_place: int
    rows: Rows


def write_codes_file(folder: Path, contents: CodesFile) -> None:
    """Replace codes.map; if it cannot be written, the next reader has to build it."""
    try:
        _remove_abandoned(folder)
        descriptor, name = tempfile.mkstemp(prefix=f".{CODES_FILE}.", dir=folder)
    except OSError:
        return  # no permission: nothing is lost but time
    try:
        with os.fdopen(descriptor, "wb") as file:
            _write(file, contents)
        shutil.copymode(folder / DATABASE, name)  # whoever may read one may read the other
        os.replace(name, folder / CODES_FILE)
    except OSError:  # a full disk, say
        Path(name).unlink(missing_ok=True)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_codes_file(folder: Path, model: str, n_bytes: int) -> CodesFile | None:
    """codes.map, mapped; None if there is none that can be used."""
    path = folder / CODES_FILE
    try:
        with path.open("rb") as file:
            page = file.read(_HEADER_BYTES)
        header = json.loads(page)
        if header["format"] != _FORMAT or (header["model"], header["n_bytes"]) != (model, n_bytes):
            return None  # of another version or model: simply old
        rows = _mapped(path, header["n_documents"], n_bytes)
        checksum = header.pop("checksum")
        if checksum != _checksum(header, rows):
            raise ValueError("its checksum is not that of its contents")
        return CodesFile(model, header["generation"], header["last_place"], rows)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("%s is damaged (%s): rebuilt from the collection", path, error)
        return None


def remove_codes_file(folder: Path) -> None:
    with contextlib.suppress(PermissionError):
        (folder / CODES_FILE).unlink(missing_ok=True)


def _remove_abandoned(folder: Path) -> None:
    """Remove unfinished files of processes that were killed: those that nobody can still be writing."""
    for path in folder.glob(f".{CODES_FILE}.*"):
        if time.time() - path.stat().st_mtime > _ABANDONED_AFTER:
            path.unlink(missing_ok=True)


def _write(file: BinaryIO, contents: CodesFile) -> None:
    rows = contents.rows
    header = {
        "format": _FORMAT,
        "model": contents.model,
        "n_bytes": rows.codes.shape[1],
        "n_documents": len(rows.places),
        "generation": contents.generation,
        "last_place": contents.last_place,
    }
    page = json.dumps({**header, "checksum": _checksum(header, rows)}).encode()
    file.write(page.ljust(_HEADER_BYTES))
    for part in rows:
        file.write(np.ascontiguousarray(part).data)


def _mapped(path: Path, n: int, n_bytes: int) -> Rows:
    expected = _HEADER_BYTES + n * (8 + n_bytes + 1)
    if path.stat().st_size != expected:
        raise ValueError(f"expected {expected} bytes, got {path.stat().st_size}")
    if n == 0:
        return no_rows(n_bytes)
    whole = np.memmap(path, dtype=np.uint8, mode="r", offset=_HEADER_BYTES)
    places, codes, known = np.split(whole, [8 * n, (8 + n_bytes) * n])
    return Rows(places.view(np.int64), codes.reshape(n, n_bytes), known.view(np.bool_))


def no_rows(n_bytes: int) -> Rows:
    empty = np.empty((0, n_bytes), dtype=np.uint8)
    return Rows(np.empty(0, dtype=np.int64), empty, np.empty(0, dtype=np.bool_))


def _checksum(header: dict[str, Any], rows: Rows) -> int:
    checksum = zlib.crc32(json.dumps(header).encode())
    for part in rows:
        checksum = zlib.crc32(np.ascontiguousarray(part).data, checksum)
    return checksum
