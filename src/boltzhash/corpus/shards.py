"""A corpus in shards that can be read apart: ranges of bytes of JSONL, row groups of Parquet, files."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from boltzhash.corpus.reading import (
    CorpusError,
    Document,
    _check_columns,
    _document,
    _Fields,
    _import_pyarrow,
    _json_object,
    _kind,
    _wanted_columns,
    read_corpus,
)

SHARD_BYTES = 16 << 20


class RowNumber(int):
    """The id of a document that has none: its number within the shard."""


class Shard(NamedTuple):
    """Part of a file: ``start`` to ``stop`` are bytes (JSONL) or row groups (Parquet); 0, 0 is all."""

    path: str
    kind: str
    start: int
    stop: int
    stamp: tuple[int, int]  # size and time of the file: what was read then is not read for now

    def name(self, number: int, model: str, fields: Sequence[Any]) -> str:
        """Names what it becomes: another input, model or choice of fields gets another name."""
        digest = hashlib.sha256(json.dumps([self, model, fields]).encode()).hexdigest()
        return f"shard-{number:06d}-{digest[:16]}"


def plan_shards(sources: Iterable[str | Path], shard_bytes: int = SHARD_BYTES) -> list[Shard]:
    """The shards of files, or of the JSONL, CSV and Parquet files of folders, in order.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "corpus.jsonl")
    >>> _ = path.write_text('{"text": "one"}\\n{"text": "two"}\\n{"text": "three"}\\n')
    >>> shards = plan_shards([path], shard_bytes=20)
    >>> [[document.text for document in read_shard(shard)] for shard in shards]
    [['one', 'two'], ['three'], []]
    """
    if isinstance(sources, str | Path):
        raise TypeError(f"sources must be a list of paths, got {sources!r}: put it into a list")
    shards = [
        s
        for source in sources
        for path in _files(Path(source))
        for s in _of_file(path, shard_bytes)
    ]
    if not shards:
        raise CorpusError("there is nothing to read: no JSONL, CSV or Parquet file was given")
    return shards


def read_shard(
    shard: Shard,
    *,
    text_field: str = "text",
    id_field: str | None = None,
    metadata: bool | Sequence[str] = False,
) -> Iterator[Document]:
    """Its documents; those without an id have a :class:`RowNumber`."""
    fields = _Fields(text_field, id_field, metadata)
    if shard.kind == ".parquet":
        records = _parquet_records(shard, fields)
    elif shard.stop:
        records = _json_records(shard)
    else:
        yield from _csv_file(shard, fields)
        return
    for number, (record, where) in enumerate(records):
        yield _document(record, RowNumber(number), fields, where)


def _files(source: Path) -> Iterator[Path]:
    if not source.exists():
        raise CorpusError(f"{source}: expected a file or a folder of files, got no such path")
    if source.is_dir():
        yield from sorted(path for path in source.iterdir() if not path.name.startswith("."))
    else:
        yield source


def _of_file(path: Path, shard_bytes: int) -> Iterator[Shard]:
    kind = _kind(path)
    status = path.stat()
    stamp = (status.st_size, status.st_mtime_ns)
    whole = str(path.resolve())
    if kind == ".parquet":
        yield from (Shard(whole, kind, *span, stamp) for span in _row_groups(path, shard_bytes))
    elif kind not in (".jsonl", ".ndjson"):
        yield Shard(whole, kind, 0, 0, stamp)  # a line of CSV may be in the middle of a row
    elif _is_gzip(path):
        yield Shard(whole, kind, 0, sys.maxsize, stamp)  # nor can this be entered in the middle
    else:
        for start in range(0, status.st_size, shard_bytes):
            yield Shard(whole, kind, start, min(start + shard_bytes, status.st_size), stamp)


def _row_groups(path: Path, shard_bytes: int) -> Iterator[tuple[int, int]]:
    """Neighbouring row groups that together have about so many bytes."""
    pyarrow = _import_pyarrow()
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            sizes = [file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)]
    except (pyarrow.ArrowException, OSError) as error:
        raise CorpusError(f"{path}: expected intact Parquet data, got: {error}") from None
    first, size = 0, 0
    for i, more in enumerate(sizes):
        if i > first and size + more > shard_bytes:
            yield first, i
            first, size = i, 0
        size += more
    if sizes:
        yield first, len(sizes)


def _json_records(shard: Shard) -> Iterator[tuple[dict[str, object], str]]:
    """A line belongs to the shard in which its first byte is."""
    path = Path(shard.path)
    with gzip.open(path) if _is_gzip(path) else path.open("rb") as file:
        position = shard.start
        if position:
            file.seek(position - 1)
            position += len(file.readline()) - 1
        while position < shard.stop:
            line = file.readline()
            if not line:
                return
            where = f"{shard.path}, byte {position}"
            if line.strip():
                yield _json_object(_decoded(line, position == 0, where), where), where
            position += len(line)


def _is_gzip(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _decoded(line: bytes, is_first: bool, where: str) -> str:
    try:
        return line.decode("utf-8-sig" if is_first else "utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{where}: expected utf-8 text, got {error.reason}") from None


def _parquet_records(shard: Shard, fields: _Fields) -> Iterator[tuple[dict[str, object], str]]:
    pyarrow = _import_pyarrow()
    try:
        with pyarrow.parquet.ParquetFile(shard.path) as file:
            columns = file.schema_arrow.names
            _check_columns(columns, fields, shard.path)
            wanted = _wanted_columns(columns, fields)
            groups = list(range(shard.start, shard.stop))
            for batch in file.iter_batches(1024, row_groups=groups, columns=wanted):
                for record in batch.to_pylist():
                    yield record, f"{shard.path}, row groups {shard.start} to {shard.stop - 1}"
    except (pyarrow.ArrowException, OSError) as error:
        raise CorpusError(f"{shard.path}: expected intact Parquet data, got: {error}") from None


def _csv_file(shard: Shard, fields: _Fields) -> Iterator[Document]:
    documents = read_corpus(
        shard.path, text_field=fields.text, id_field=fields.id, metadata=fields.metadata
    )
    for document in documents:  # ids of CSV are strings: an integer is the number of the row
        is_number = isinstance(document.id, int)
        yield document._replace(id=RowNumber(document.id)) if is_number else document
