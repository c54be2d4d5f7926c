"""The formats of files of records, by suffix.

A further format is a file in this room with a function that reads its records, and a line in the table.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from boltzhash.corpus import delimited, jsonl, parquet
from boltzhash.corpus.lines import read_lines
from boltzhash.corpus.records import CorpusError, Fields, Records


class Spans(NamedTuple):
    """How a file is cut into spans that can be read separately, each from a start to before a stop."""

    plan: Callable[[Path, int], Iterator[tuple[int, int]]]  # path, bytes of a span → spans
    read: Callable[[Path, Fields, int, int], Records]  # path, fields, start, stop


class Format(NamedTuple):
    """How files with one suffix are read."""

    read: Callable[[Path | None, Fields, str], Records]  # path, fields, encoding
    spans: Spans | None = None  # None: such a file can only be read whole
    may_be_gzip: bool = True


_JSONL = Format(jsonl.read, Spans(jsonl.plan_ranges, jsonl.read_range))

FORMATS = {
    ".jsonl": _JSONL,
    ".ndjson": _JSONL,
    ".csv": Format(delimited.read_csv),  # a line of it may be in the middle of a row
    ".tsv": Format(delimited.read_tsv),
    ".parquet": Format(
        parquet.read, Spans(parquet.plan_row_groups, parquet.read_row_groups), may_be_gzip=False
    ),
}


LINES, FILES = "lines", "files"  # a document a line, and a document a file
NAMES = (*(suffix.removeprefix(".") for suffix in FORMATS), LINES, FILES)


def named_format(name: str) -> Format:
    """The format that a user names, whatever the name of the file says."""
    if name == LINES:
        return Format(read_lines)
    if f".{name}" not in FORMATS:
        raise CorpusError(f"format: expected one of {', '.join(NAMES)}, got {name!r}")
    return FORMATS[f".{name}"]


def is_file_of_records(path: Path) -> bool:
    """Whether a file is one of records, by its name."""
    return _suffix(path) is not None


def suffix_of(path: Path) -> str:
    """The suffix that says how to read a file, without ``.gz``.

    >>> suffix_of(Path("corpus.CSV.gz"))
    '.csv'
    """
    suffix = _suffix(path)
    if suffix is not None:
        return suffix
    either = ", ".join(s for s, format in FORMATS.items() if format.may_be_gzip)
    plain = ", ".join(s for s, format in FORMATS.items() if not format.may_be_gzip)
    raise CorpusError(
        f"{path}: expected {either} (also with .gz), {plain} or a folder, got a file with the suffix "
        f"{path.suffix!r}; if each of its lines is a document, say so with format='lines' (--lines on "
        "the command line), else name its format with format= (--format)"
    )


def _suffix(path: Path) -> str | None:
    name = path.name.lower()
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix in FORMATS and (FORMATS[suffix].may_be_gzip or not name.endswith(".gz")):
        return suffix
    return None
