"""A corpus in shards that can be read separately: ranges of JSONL bytes, Parquet row groups, files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from boltzhash.corpus.folder import all_files, files_of_records
from boltzhash.corpus.formats import FORMATS, suffix_of
from boltzhash.corpus.lines import text_encoding
from boltzhash.corpus.places import STANDARD_INPUT, places_of
from boltzhash.corpus.records import USUAL_FIELDS, CorpusError, Document, Fields, documents

SHARD_BYTES = 16 << 20


class RowNumber(int):
    """The id of a document that has none: its number within the shard."""


class Shard(NamedTuple):
    """Part of a file: ``start`` to ``stop`` are bytes (JSONL) or row groups (Parquet); 0, 0 is all."""

    path: str
    kind: str  # the suffix that says how to read it
    start: int
    stop: int
    stamp: tuple[
        int, int
    ]  # size and time of the file, so that a changed file makes a different shard

    def name(self, number: int, model: str, fields: Sequence[Any]) -> str:
        """A name for what it becomes: a different input, model or choice of fields, a different name.

        Parameters
        ----------
        number
            Which shard of the corpus it is.
        model
            What identifies the model that encodes it.
        fields
            Which fields are read.
        """
        digest = hashlib.sha256(json.dumps([self, model, fields]).encode()).hexdigest()
        return f"shard-{number:06d}-{digest[:16]}"


def plan_shards(sources: Iterable[str | Path], shard_bytes: int = SHARD_BYTES) -> list[Shard]:
    """The shards of files, or of the files of records in folders, in order.

    Parameters
    ----------
    sources
        Files of records that :func:`~boltzhash.corpus.read_corpus` reads, folders and patterns of them.
    shard_bytes
        About how many bytes a shard has; a file that can only be read whole is one shard.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "corpus.jsonl")
    >>> _ = path.write_text('{"text": "one"}\\n{"text": "two"}\\n{"text": "three"}\\n')
    >>> shards = plan_shards([path], shard_bytes=20)
    >>> [[document.text for document in read_shard(shard)] for shard in shards]
    [['one', 'two'], ['three'], []]
    """
    if isinstance(sources, str | Path):
        raise TypeError(f"sources must be a list of paths, got {sources!r}: put it into a list")
    files = (path for place in places_of(sources) for path in _files(place))
    shards = [shard for path in files for shard in _of_file(path, shard_bytes)]
    if not shards:
        raise CorpusError("there is nothing to read: no JSONL, CSV or Parquet file was given")
    return shards


def read_shard(shard: Shard, fields: Fields = USUAL_FIELDS) -> Iterator[Document]:
    """The documents of a shard; those without an id have a :class:`RowNumber`.

    Parameters
    ----------
    shard
        One that :func:`plan_shards` made. JSONL, CSV and TSV must be UTF-8.
    fields
        Which fields of a record are what.
    """
    path, format = Path(shard.path), FORMATS[shard.kind]
    if format.spans is None:
        records = format.read(path, fields, text_encoding("utf-8"))
    else:
        records = format.spans.read(path, fields, shard.start, shard.stop)
    return documents(records, fields, RowNumber)


def _files(place: str | Path) -> list[Path]:
    if str(place) == STANDARD_INPUT:
        raise CorpusError("standard input: expected files, which can be shared out")
    path = Path(place)
    if not path.is_dir():
        return [path]
    return files_of_records(path, text_encoding("utf-8")) or all_files(path)


def _of_file(path: Path, shard_bytes: int) -> Iterator[Shard]:
    kind = suffix_of(path)
    status = path.stat()
    spans = FORMATS[kind].spans
    for start, stop in spans.plan(path, shard_bytes) if spans else [(0, 0)]:
        yield Shard(str(path.resolve()), kind, start, stop, (status.st_size, status.st_mtime_ns))
