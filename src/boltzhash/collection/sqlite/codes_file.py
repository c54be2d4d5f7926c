"""codes.map: the packed codes of a collection in one file, to be mapped into memory and scanned.

int64 places, uint8 codes, and a byte per code that says whether the model knew any word of the document.
passages.map holds the same of passages, with their numbers for places. Both are copies: SQLite is the
truth, and a file that is damaged, of another model or too old is made again.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from boltzhash.collection.sqlite.mapped_file import read_mapped, write_mapped
from boltzhash.collection.store import Rows

CODES_FILE = "codes.map"
PASSAGES_FILE = "passages.map"

_FORMAT = "boltzhash codes map 2"


class CodesFile(NamedTuple):
    """What a file holds: all codes of ``model`` in ``generation``, up to ``last_place``."""

    model: str
    generation: int
    last_place: int
    rows: Rows


def write_codes_file(path: Path, contents: CodesFile) -> None:
    """Replace the file; if it cannot be written, the next reader has to make it anew."""
    header = {
        "format": _FORMAT,
        "model": contents.model,
        "n_bytes": contents.rows.codes.shape[1],
        "generation": contents.generation,
        "last_place": contents.last_place,
    }
    write_mapped(path, header, contents.rows)


def read_codes_file(path: Path, model: str, n_bytes: int) -> CodesFile | None:
    """The file, mapped; None if there is none, or none that can be used."""
    expected = {"format": _FORMAT, "model": model, "n_bytes": n_bytes}
    found = read_mapped(path, expected)
    if found is None:
        return None
    header, (places, codes, known) = found
    return CodesFile(model, header["generation"], header["last_place"], Rows(places, codes, known))


def no_rows(n_bytes: int) -> Rows:
    empty = np.empty((0, n_bytes), dtype=np.uint8)
    return Rows(np.empty(0, dtype=np.int64), empty, np.empty(0, dtype=np.bool_))
