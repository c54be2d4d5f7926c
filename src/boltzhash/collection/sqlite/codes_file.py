"""codes.map: the packed codes of a collection in one file, to be mapped into memory and scanned.

int64 keys, uint8 codes, and a byte per code that says whether the model knew any word of the document.
passages.map holds the same of passages, with their numbers for places. Both are copies: SQLite is the
truth, and a file that is damaged, of another model or too old is made again.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from boltzhash.collection.sqlite.mapped_file import read_mapped, write_mapped
from boltzhash.collection.store import Rows, Version

CODES_FILE = "codes.map"
PASSAGES_FILE = "passages.map"

_FORMAT = "boltzhash codes map 3"


class CodesFile(NamedTuple):
    """The contents of a file: all codes of ``model`` in a generation, up to the key ``last``."""

    model: str
    version: Version
    last: int
    rows: Rows


def write_codes_file(path: Path, contents: CodesFile) -> None:
    """Replace the file; if it cannot be written, the next reader has to make it anew."""
    header = {
        "format": _FORMAT,
        "model": contents.model,
        "n_bytes": contents.rows.codes.shape[1],
        "version": contents.version,
        "last": contents.last,
    }
    write_mapped(path, header, contents.rows)


def read_codes_file(path: Path, model: str, n_bytes: int) -> CodesFile | None:
    """The file, mapped; None if there is none, or none that can be used."""
    expected = {"format": _FORMAT, "model": model, "n_bytes": n_bytes}
    found = read_mapped(path, expected)
    if found is None:
        return None
    header, (places, codes, known) = found
    return CodesFile(model, Version(*header["version"]), header["last"], Rows(places, codes, known))


def no_rows(n_bytes: int) -> Rows:
    empty = np.empty((0, n_bytes), dtype=np.uint8)
    return Rows(np.empty(0, dtype=np.int64), empty, np.empty(0, dtype=np.bool_))
