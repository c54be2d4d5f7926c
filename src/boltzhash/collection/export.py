"""The documents of a collection as JSON lines, and its codes as NumPy or Parquet."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from boltzhash.collection.store import Rows
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.errors import needs_extra
from boltzhash.storage.codes import write_codes


def write_jsonl(documents: Iterable[Document], target: Path | IO[str]) -> int:
    """Write JSONL to a file, the whole of it or nothing, or to an open one; returns how many."""
    if not isinstance(target, Path):
        return _write_lines(documents, target)
    with (
        _whole_or_nothing(target, "a JSONL file") as unfinished,
        unfinished.open("w", encoding="utf-8") as file,
    ):
        n = _write_lines(documents, file)
        file.flush()
        os.fsync(file.fileno())
    return n


def write_codes_of(rows: Rows, ids: Sequence[Id], model: str, target: Path) -> None:
    """Codes with their ids: a Parquet file if it is called so, else a folder as ``encode`` writes it."""
    if target.suffix == ".parquet":
        _write_parquet(rows, ids, model, target)
        return
    n_bits = rows.codes.shape[1] * 8
    with write_codes(target, n_bits=n_bits, model=model) as writer:
        if len(ids):
            writer.append(np.ascontiguousarray(rows.codes), ids, rows.known.astype(np.int64))


def _write_lines(documents: Iterable[Document], file: IO[str]) -> int:
    n = 0
    for document in documents:
        file.write(json.dumps(document._asdict(), ensure_ascii=False) + "\n")
        n += 1
    return n


def _write_parquet(rows: Rows, ids: Sequence[Id], model: str, target: Path) -> None:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
        pyarrow = importlib.import_module("pyarrow")
    except ImportError as error:
        raise needs_extra("Parquet", "pyarrow", "parquet") from error
    if len({type(id_) for id_ in ids}) > 1:
        raise ValueError(
            "some ids are strings and some are integers, and a column of Parquet has one type: write a "
            "folder of codes instead (a name without .parquet)"
        )
    codes = pyarrow.array(list(map(bytes, rows.codes)), pyarrow.binary(rows.codes.shape[1]))
    table = pyarrow.table({"id": pyarrow.array(ids), "code": codes, "known": rows.known})
    about = {"boltzhash.model": model}
    with _whole_or_nothing(target, "a Parquet file") as unfinished:
        parquet.write_table(table.replace_schema_metadata(about), unfinished)


@contextmanager
def _whole_or_nothing(target: Path, expected: str) -> Iterator[Path]:
    """A file to write beside ``target``, which takes its place at the end."""
    if target.is_dir():
        raise IsADirectoryError(f"expected {expected} to write, got {target}, which is a folder")
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        yield unfinished
        os.replace(unfinished, target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        if error.errno is None or error.filename not in (None, str(unfinished)):
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
