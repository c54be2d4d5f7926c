"""Parquet: read whole, or a few row groups at a time."""

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from boltzhash.corpus.records import CorpusError, Fields, Records, check_columns
from boltzhash.errors import needs_extra

_BATCH_ROWS = 256
# Both are needed to read a column piece by piece instead of a whole row group, often the file, at once.
_STREAMING = {"pre_buffer": False, "buffer_size": 2**20}


def read(path: Path | None, fields: Fields, encoding: str) -> Records:
    """The records of a file, with only the columns that ``fields`` asks for."""
    if path is None:
        raise CorpusError("standard input: expected text, Parquet can only be read from a file")
    return _records(path, fields, slice(None), _import_pyarrow())


def read_row_groups(path: Path, fields: Fields, start: int, stop: int) -> Records:
    """The records of the row groups from ``start`` to before ``stop``."""
    return _records(path, fields, slice(start, stop), _import_pyarrow())


def _records(path: Path, fields: Fields, part: slice, pyarrow: ModuleType) -> Records:
    row = 0  # of the file, wherever reading starts
    try:
        with pyarrow.parquet.ParquetFile(path, **_STREAMING) as file:
            columns = file.schema_arrow.names
            check_columns(columns, fields, str(path))
            groups = range(file.num_row_groups)[part]
            row = sum(file.metadata.row_group(i).num_rows for i in range(groups.start))
            for batch in file.iter_batches(
                _BATCH_ROWS, row_groups=list(groups), columns=_wanted(columns, fields)
            ):
                for record in batch.to_pylist():
                    row += 1
                    yield record, f"{path}, row {row}"
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        where = f"{path}, row {row + 1}"
        raise CorpusError(f"{where}: expected intact Parquet data, got: {error}") from None


def _wanted(columns: Sequence[str], fields: Fields) -> list[str]:
    if fields.metadata is True:
        return list(columns)
    chosen = fields.metadata or ()
    return sorted({fields.text, fields.id_of(columns) or "", *chosen}.intersection(columns))


def plan_row_groups(path: Path, shard_bytes: int) -> Iterator[tuple[int, int]]:
    """Runs of neighbouring row groups that together have about ``shard_bytes`` bytes."""
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


def _import_pyarrow() -> ModuleType:
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise needs_extra("Parquet", "pyarrow", "parquet") from error
