"""JSONL: one JSON object per line, read whole by its lines or in ranges of its bytes."""

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from boltzhash.corpus.lines import is_gzip, text_lines
from boltzhash.corpus.records import CorpusError, Fields, Records, shown


def read(path: Path | None, fields: Fields, encoding: str) -> Records:
    """The records of a file, or of standard input if ``path`` is None."""
    name = path or "standard input"
    for number, line in enumerate(text_lines(path, encoding), start=1):
        if line.strip():
            where = f"{name}, line {number}"
            yield json_object(line, where), where


def json_object(line: str, where: str) -> dict[str, object]:
    """A line as a record; ``where`` says where it is, for error messages.

    >>> json_object('{"text": "words"}', "corpus.jsonl, line 1")
    {'text': 'words'}
    """
    try:
        value = json.loads(line.rstrip())  # so that an error at the end has its column
    except json.JSONDecodeError as error:
        problem = f"{error.msg} (column {error.colno})"
        raise CorpusError(f"{where}: not valid JSON: {problem}") from None
    except (ValueError, RecursionError) as error:  # a number or a nesting beyond Python's limits
        raise CorpusError(f"{where}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise CorpusError(f"{where}: expected a JSON object, got {shown(value)}")
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
    with gzip.open(path) if is_gzip(path) else path.open("rb") as file:
        position = start
        if position:
            file.seek(position - 1)
            position += len(file.readline()) - 1
        while position < stop:
            line = file.readline()
            if not line:
                return
            where = f"{path}, byte {position}"
            if line.strip():
                yield json_object(_decoded(line, position == 0, where), where), where
            position += len(line)


def _decoded(line: bytes, is_first: bool, where: str) -> str:
    try:
        return line.decode("utf-8-sig" if is_first else "utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{where}: expected utf-8 text, got {error.reason}") from None
