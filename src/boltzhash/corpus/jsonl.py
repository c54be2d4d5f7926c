"""JSONL: one JSON object per line, read whole by its lines or in ranges of its bytes."""

import gzip
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from boltzhash.corpus.lines import (
    broken_gzip,
    is_gzip,
    lines_as_they_are,
    name_of,
    undecodable,
    visible,
)
from boltzhash.corpus.records import Fields, Record, Records, Unreadable, shown

_NAME_THE_FORMAT = "; if it is CSV, say so with format='csv' (--format csv on the command line)"


def read(path: Path | None, fields: Fields, encoding: str) -> Records:
    """The records of a file, or of standard input if ``path`` is None."""
    for number, line in enumerate(lines_as_they_are(path, encoding), start=1):
        if line.strip():
            record = _record(line, encoding)
            if path is None and number == 1 and isinstance(record, Unreadable):
                record = record._replace(problem=record.problem + _NAME_THE_FORMAT)
            yield record, f"{name_of(path)}, line {number}"


def _record(line: str, encoding: str) -> Record | Unreadable:
    problem = undecodable(line, encoding)
    return json_object(line) if problem is None else Unreadable(problem, visible(line.rstrip()))


def json_object(line: str) -> Record | Unreadable:
    """A line as a record.

    >>> json_object('{"text": "words"}')
    {'text': 'words'}
    >>> json_object("[1]").problem
    'expected a JSON object, got list [1]'
    """
    line = line.rstrip()  # so that an error at the end has its column
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        return Unreadable(f"not valid JSON: {error.msg} (column {error.colno})", line)
    except (ValueError, RecursionError) as error:  # a number or a nesting beyond Python's limits
        return Unreadable(f"not valid JSON: {error}", line)
    if not isinstance(value, dict):
        return Unreadable(f"expected a JSON object, got {shown(value)}", line)
    return value


def plan_ranges(path: Path, shard_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of ``shard_bytes`` bytes that together are the file; all of it if it is compressed."""
    if is_gzip(path):  # cannot be entered in the middle
        yield 0, sys.maxsize
        return
    size = path.stat().st_size
    for start in range(0, size, shard_bytes):
        yield start, min(start + shard_bytes, size)


def read_range(path: Path, fields: Fields, start: int, stop: int) -> Records:
    """The records whose first byte is from ``start`` to before ``stop``; the file must be UTF-8."""
    position = start
    try:
        with gzip.open(path) if is_gzip(path) else path.open("rb") as file:
            if position:
                file.seek(position - 1)
                position += len(file.readline()) - 1
            while position < stop:
                line = file.readline()
                if not line:
                    return
                if line.strip():
                    encoding = "utf-8" if position else "utf-8-sig"
                    text = line.decode(encoding, "surrogateescape")
                    yield _record(text, encoding), f"{path}, byte {position}"
                position += len(line)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise broken_gzip(f"{path}, byte {position}", error) from None
