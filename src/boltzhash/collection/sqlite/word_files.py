"""The folder ``words`` of a collection: segments of its inverted index, each in a file of its own.

``segments.map`` names those that count, in order, and says up to which generation and place they go. It
is replaced whole, after the files that it names were written; those that it no longer names are then
removed. All of it is a copy: SQLite is the truth.

When a segment is opened, its words and the lengths of its documents are compared with their checksum.
The postings are most of the file, so each block of them is compared when it is first read.
"""

from __future__ import annotations

import contextlib
import secrets
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.collection.sqlite.mapped_file import (
    ABANDONED_AFTER,
    read_mapped,
    remove_mapped,
    write_mapped,
)
from boltzhash.collection.store import Version
from boltzhash.search.segments import DamagedSegmentError, Segment

WORDS_FOLDER = "words"

LIST = "segments.map"
_FORMAT = "boltzhash words 3"
_BLOCK = 8192  # postings


class Contents(NamedTuple):
    """What the folder holds: the segments of all documents up to ``last_place`` in a generation."""

    rules: str  # how texts became words
    version: Version
    last_place: int
    names: tuple[str, ...]


def read_contents(folder: Path) -> Contents | None:
    """Return the contents of segments.map; None if it does not exist or is damaged."""
    found = read_mapped(folder / WORDS_FOLDER / LIST, {"format": _FORMAT})
    if found is None:
        return None
    header, (names,) = found
    named = tuple(names.tobytes().decode().split())
    return Contents(header["rules"], Version(*header["version"]), header["last_place"], named)


def write_contents(folder: Path, contents: Contents) -> bool:
    """Replace segments.map; False if that is not possible."""
    header = {
        **_header(contents.rules),
        "version": contents.version,
        "last_place": contents.last_place,
    }
    names = np.frombuffer(" ".join(contents.names).encode(), dtype=np.uint8)
    return write_mapped(folder / WORDS_FOLDER / LIST, header, [names])


def write_segment(folder: Path, rules: str, segment: Segment) -> str | None:
    """Put a segment into a new file; its name, or None if it cannot be written."""
    try:
        (folder / WORDS_FOLDER).mkdir(exist_ok=True)
    except OSError:
        return None
    name = f"{len(segment.places)}-{secrets.token_hex(8)}.map"
    words, ends, places, lengths, places_of_words, counts, _ = segment
    checked = (words, ends, places, lengths, _sums(places_of_words, counts))
    path = folder / WORDS_FOLDER / name
    is_written = write_mapped(path, _header(rules), checked, (places_of_words, counts))
    return name if is_written else None


def n_documents_of(name: str) -> int:
    """How many documents a segment has, from the name of its file."""
    return int(name.partition("-")[0])


def read_segment(folder: Path, name: str) -> Segment | None:
    """A segment, mapped; None if it is not there or damaged."""
    path = folder / WORDS_FOLDER / name
    found = read_mapped(path, {"format": _FORMAT}, n_unchecked=2)
    if found is None:
        return None
    words, ends, places, lengths, sums, places_of_words, counts = found[1]
    check = _Check(path, places_of_words, counts, sums)
    return Segment(words, ends, places, lengths, places_of_words, counts, check)


def remove_segments(folder: Path, superseded: Sequence[str], contents: Contents) -> None:
    """Remove segments that were superseded, and those that nobody has named for an hour."""
    for name in superseded:
        remove_mapped(folder / WORDS_FOLDER / name)
    for path in (folder / WORDS_FOLDER).glob("*.map"):
        with contextlib.suppress(OSError):
            if (
                path.name not in (LIST, *contents.names)
                and time.time() - path.stat().st_mtime > ABANDONED_AFTER
            ):
                remove_mapped(path)


def words_bytes(folder: Path) -> int:
    """The size of all files."""
    if not (folder / WORDS_FOLDER).is_dir():
        return 0
    total = 0
    for path in (folder / WORDS_FOLDER).iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process merges
            total += path.stat().st_size
    return total


def _header(rules: str) -> dict[str, Any]:
    return {"format": _FORMAT, "rules": rules}


def _sums(places: NDArray[np.uint32], counts: NDArray[np.uint8]) -> NDArray[np.uint32]:
    starts = range(0, len(counts), _BLOCK)
    return np.array([_sum(places, counts, start) for start in starts], dtype=np.uint32)


def _sum(places: NDArray[np.uint32], counts: NDArray[np.uint8], start: int) -> int:
    block = slice(start, start + _BLOCK)
    return zlib.crc32(counts[block].tobytes(), zlib.crc32(places[block].tobytes()))


class _Check:
    """Compares each block of postings with its sum before it is first read."""

    def __init__(
        self,
        path: Path,
        places: NDArray[np.uint32],
        counts: NDArray[np.uint8],
        sums: NDArray[np.uint32],
    ) -> None:
        self._path, self._places, self._counts, self._sums = path, places, counts, sums
        self._is_checked = bytearray(len(sums))

    def __call__(self, start: int, end: int) -> None:
        """Of postings start..end."""
        first, last = start // _BLOCK, -(-end // _BLOCK)
        block = self._is_checked.find(0, first, last)
        while block >= 0:
            if _sum(self._places, self._counts, block * _BLOCK) != self._sums[block]:
                raise DamagedSegmentError(f"{self._path}: block {block} is not as it was written")
            self._is_checked[block] = 1
            block = self._is_checked.find(0, block, last)
