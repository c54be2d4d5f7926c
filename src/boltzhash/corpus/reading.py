"""Reading what users have: JSONL, CSV, Parquet, a folder of text files, standard input.

Documents are read one at a time, so a corpus may be larger than memory. A record that cannot be
read is an error that says where it is; none is left out in silence.
"""

import codecs
import csv
import gzip
import importlib
import io
import json
import re
import reprlib
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TextIO

from boltzhash.errors import needs_extra

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_LINE_SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv")

# The csv module stops at 128 KiB, which documents do exceed. With no limit at all, a quote left
# open would read the rest of the corpus into memory before anyone noticed.
_LONGEST_CSV_FIELD = 2**27

_PARQUET_BATCH_ROWS = 256
# Both are needed to read a column piece by piece and not a row group, often the file, at once.
_PARQUET_STREAMING = {"pre_buffer": False, "buffer_size": 2**20}
_BINARY_PROBE_BYTES = 8192


_Record = Mapping[str, object]


class Document(NamedTuple):
    """A text, the name its owner knows it by and, where asked for, what else is known of it."""

    id: str | int
    text: str
    metadata: dict[str, object] | None = None


class CorpusError(ValueError):
    """A corpus cannot be read; the message says where, what was expected and what came."""


class _Fields(NamedTuple):
    """Where in a record the document is."""

    text: str
    id: str | None
    metadata: bool | Sequence[str]


def read_corpus(
    source: str | Path,
    *,
    text_field: str = "text",
    id_field: str | None = None,
    encoding: str = "utf-8",
    metadata: bool | Sequence[str] = False,
) -> Iterator[Document]:
    """Read the documents of a corpus one by one.

    Parameters
    ----------
    source
        A file of records (``.jsonl``, ``.ndjson``, ``.csv`` or ``.tsv``, each also with ``.gz``,
        or ``.parquet``), a folder, or ``-`` for JSONL on standard input. CSV needs a header row.
        In a folder each text file is a document, its relative path the id. Subfolders and links
        are followed. Hidden files and binary ones (a NUL byte in the first 8 KiB) are left out.
    text_field
        The field or column with the text.
    id_field
        The field or column with the id, a string or an integer. By default ``id`` where a record
        has that and it is one of the two, otherwise the number of the document, counted from 0.
    encoding
        The encoding of everything but Parquet. A UTF-8 byte order mark is skipped.
    metadata
        Which of a record's other fields become the document's metadata: these, all (True) or none.
        With all, the fields of an object ``metadata`` count as the record's own.

    Raises
    ------
    CorpusError
        At once if the source does not exist or its kind or the encoding is unknown; while reading,
        at the first record that is not a document.
    ImportError
        At once if the source is Parquet and pyarrow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "corpus.jsonl")
    >>> _ = path.write_text('{"id": "a", "text": "first"}\\n{"text": "second"}\\n')
    >>> [(document.id, document.text) for document in read_corpus(path)]
    [('a', 'first'), (1, 'second')]
    """
    fields = _Fields(text_field, id_field, metadata)
    encoding = _checked_encoding(encoding)
    if str(source) == "-":
        return _read_jsonl(None, fields, encoding)
    path = Path(source)
    if source == "" or not path.exists():  # Path("") would be the current folder
        raise CorpusError(f"{source or repr('')}: expected a file or a folder, got no such path")
    if path.is_dir():
        return _read_folder(path, encoding)
    kind = _kind(path)
    if kind == ".parquet":
        return _read_parquet(path, fields, _import_pyarrow())
    if kind in _DELIMITERS:
        return _read_csv(path, fields, encoding, _DELIMITERS[kind])
    return _read_jsonl(path, fields, encoding)


def _kind(path: Path) -> str:
    """The suffix that says how to read a file, without ``.gz``."""
    name = path.name.lower()
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix in _LINE_SUFFIXES or name.endswith(".parquet"):
        return suffix
    raise CorpusError(
        f"{path}: expected {', '.join(_LINE_SUFFIXES)} (also with .gz), .parquet or a folder of "
        f"text files, got a file with the suffix {path.suffix!r}"
    )


def _checked_encoding(encoding: str) -> str:
    try:
        "\n".encode(encoding)  # also refuses codecs that are not for text, such as base64
    except LookupError:
        raise CorpusError(f"encoding: expected one that Python knows, got {encoding!r}") from None
    # A byte order mark is skipped where there is one.
    return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding


# Records: what a document must have, whatever it is read from.


def _document(record: _Record, number: int, fields: _Fields, where: str) -> Document:
    text = _field(record, fields.text, where)
    if not isinstance(text, str):
        raise CorpusError(f"{where}: field {fields.text!r} must be a string, got {_shown(text)}")
    _check_characters(text, f"{where}: field {fields.text!r}")
    id_ = _document_id(record, number, fields.id, where)
    return Document(id_, text, _metadata(record, fields))


def _metadata(record: _Record, fields: _Fields) -> dict[str, object] | None:
    if fields.metadata is False:
        return None
    if fields.metadata is not True:
        return {name: record[name] for name in fields.metadata if name in record}
    others = {n: v for n, v in record.items() if n not in (fields.text, fields.id or "id")}
    nested = others.get("metadata")
    if isinstance(nested, dict):
        del others["metadata"]
        others.update(nested)
    return others


def _document_id(record: _Record, number: int, field: str | None, where: str) -> str | int:
    value = record.get("id") if field is None else _field(record, field, where)
    if isinstance(value, str):
        _check_characters(value, f"{where}: field {field or 'id'!r}")
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if field is None:
        return number
    raise CorpusError(
        f"{where}: field {field!r} must be a string or an integer, got {_shown(value)}"
    )


def _field(record: _Record, name: str, where: str) -> object:
    if name not in record:
        raise _missing_field(name, list(record), where)
    return record[name]


def _missing_field(name: str, present: Sequence[str], where: str) -> CorpusError:
    fields = ", ".join(map(repr, present)) or "none"
    return CorpusError(f"{where}: expected a field {name!r}, got the fields: {fields}")


def _check_characters(text: str, what: str) -> None:
    """Refuse half a surrogate pair: JSON can spell it, but UTF-8 cannot store it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = ascii(text[error.start])
        raise CorpusError(f"{what} must be Unicode, got the unpaired surrogate {half}") from None


def _check_columns(columns: Sequence[str], fields: _Fields, where: str) -> None:
    chosen = () if isinstance(fields.metadata, bool) else fields.metadata
    for name in filter(None, (fields.text, fields.id, *chosen)):
        count = columns.count(name)
        if count == 0:
            raise _missing_field(name, columns, where)
        if count > 1:
            raise CorpusError(f"{where}: expected one field {name!r}, got {count} of that name")


def _shown(value: object) -> str:
    """A value in an error message.

    >>> _shown(None), _shown(1.5)
    ('null', 'float 1.5')
    """
    return "null" if value is None else f"{type(value).__name__} {reprlib.repr(value)}"


# Files of lines: JSONL and CSV.


def _read_jsonl(path: Path | None, fields: _Fields, encoding: str) -> Iterator[Document]:
    number, name = 0, path or "standard input"
    for line_number, line in enumerate(_lines(path, encoding), start=1):
        if line.strip():
            where = f"{name}, line {line_number}"
            yield _document(_json_object(line, where), number, fields, where)
            number += 1


def _json_object(line: str, where: str) -> dict[str, object]:
    try:
        value = json.loads(line.rstrip())  # so that an error at the end has its column
    except json.JSONDecodeError as error:
        problem = f"{error.msg} (column {error.colno})"
        raise CorpusError(f"{where}: not valid JSON: {problem}") from None
    except (ValueError, RecursionError) as error:  # a number or a nesting beyond Python's limits
        raise CorpusError(f"{where}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise CorpusError(f"{where}: expected a JSON object, got {_shown(value)}")
    return value


def _read_csv(path: Path, fields: _Fields, encoding: str, delimiter: str) -> Iterator[Document]:
    rows = _csv_rows(path, encoding, delimiter)
    line_number, header = next(rows, (0, None))
    if header is None:
        return
    _check_columns(header, fields, f"{path}, line {line_number}")
    for number, (line_number, row) in enumerate(rows):
        where = f"{path}, line {line_number}"
        if len(row) != len(header):
            raise CorpusError(f"{where}: expected {len(header)} fields (header), got {len(row)}")
        yield _document(dict(zip(header, row, strict=True)), number, fields, where)


def _csv_rows(path: Path, encoding: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the number of the line it begins on."""
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CSV_FIELD))  # is global: never lower
    reader = csv.reader(_csv_lines(path, encoding), delimiter=delimiter, strict=True)
    while True:
        line_number = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise CorpusError(
                f"{path}, line {line_number}: not a valid row: {error} "
                f"(read up to line {reader.line_num}; is a quote not closed or not doubled?)"
            ) from None
        if row:
            yield line_number, row


def _csv_lines(path: Path, encoding: str) -> Iterator[str]:
    for line_number, line in enumerate(_lines(path, encoding), start=1):
        if "\0" in line:  # newer csv modules would take it for text
            raise CorpusError(
                f"{path}, line {line_number}: expected text, got a NUL byte; is the file binary, "
                "or in an encoding such as utf-16?"
            )
        yield line


def _lines(path: Path | None, encoding: str) -> Iterator[str]:
    """The lines of a text file or of standard input (``None``), with their line ends."""
    count, name = 0, str(path or "standard input")
    try:
        with _open_text(path, encoding) as stream:
            for line in stream:
                count += 1
                yield line
    except UnicodeError as error:
        raise _decoding_error(name, count, encoding, error) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        where = f"{name}, line {count + 1}"
        raise CorpusError(f"{where}: expected intact gzip data, got: {error}") from None


@contextmanager
def _open_text(path: Path | None, encoding: str) -> Iterator[TextIO]:
    """Open for reading with line ends as they are, which is what the csv module wants."""
    if path is None:
        stream = io.TextIOWrapper(sys.stdin.buffer, encoding=encoding, newline="")
        try:
            yield stream
        finally:
            stream.detach()  # or standard input would be closed with the wrapper
    elif path.name.lower().endswith(".gz"):
        with gzip.open(path, "rt", encoding=encoding, newline="") as stream:
            yield stream
    else:
        with path.open(encoding=encoding, newline="") as stream:
            yield stream


def _decoding_error(name: str, lines: int, encoding: str, error: UnicodeError) -> CorpusError:
    """Say which line and byte cannot be decoded, where ``lines`` came before what failed."""
    line, problem = lines + 1, str(error)
    if isinstance(error, UnicodeDecodeError):
        before = error.object[: error.start].decode(error.encoding, "replace")
        line += len(re.findall(r"\r\n|\r|\n", before))
        problem = f"byte 0x{error.object[error.start]:02x} ({error.reason})"
    return CorpusError(
        f"{name}, line {line}: expected {encoding.removesuffix('-sig')} text, got {problem}; "
        "if it has another encoding, name that with encoding= (--encoding on the command line)"
    )


# Parquet


def _import_pyarrow() -> ModuleType:
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise needs_extra("Parquet", "pyarrow", "parquet") from error


def _read_parquet(path: Path, fields: _Fields, pyarrow: ModuleType) -> Iterator[Document]:
    for number, record in enumerate(_parquet_records(path, fields, pyarrow)):
        yield _document(record, number, fields, f"{path}, row {number + 1}")


def _parquet_records(path: Path, fields: _Fields, pyarrow: ModuleType) -> Iterator[_Record]:
    """The records with only the columns that are needed."""
    row = 0
    try:
        with pyarrow.parquet.ParquetFile(path, **_PARQUET_STREAMING) as file:
            columns = file.schema_arrow.names
            _check_columns(columns, fields, str(path))
            wanted = _wanted_columns(columns, fields)
            for batch in file.iter_batches(_PARQUET_BATCH_ROWS, columns=wanted):
                for record in batch.to_pylist():
                    row += 1
                    yield record
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        where = f"{path}, row {row + 1}"
        raise CorpusError(f"{where}: expected intact Parquet data, got: {error}") from None


def _wanted_columns(columns: Sequence[str], fields: _Fields) -> list[str]:
    if fields.metadata is True:
        return list(columns)
    chosen = fields.metadata or ()
    return sorted({fields.text, fields.id or "id", *chosen}.intersection(columns))


# A folder of text files


def _read_folder(root: Path, encoding: str) -> Iterator[Document]:
    is_empty = True
    for path in _visible_files(root):
        text = _file_text(path, encoding)
        if text is not None:
            is_empty = False
            name = path.relative_to(root).as_posix()
            _check_characters(name, f"{root}: file name {name!a}")
            yield Document(name, text)
    if is_empty:
        raise CorpusError(
            f"{root}: expected a folder with text files, got one without any "
            "(hidden and binary files do not count)"
        )


def _visible_files(root: Path) -> Iterator[Path]:
    """The files under a folder that are not hidden, in the order of their relative paths."""
    outermost: frozenset[tuple[int, int]] = frozenset()
    pending = [(root, True, outermost)]
    while pending:
        path, is_folder, inside = pending.pop()
        if not is_folder:
            yield path
            continue
        status = path.stat()
        folder = (status.st_dev, status.st_ino)
        if folder in inside:  # a link back to a folder it is in would go round for ever
            continue
        children = [child for child in path.iterdir() if not child.name.startswith(".")]
        entries = [(child, child.is_dir(), inside | {folder}) for child in children]
        # The slash of the whole path takes part in the order: a-b, a.txt, a/b, ab.
        pending += sorted(entries, key=lambda entry: entry[0].name + "/" * entry[1], reverse=True)


def _file_text(path: Path, encoding: str) -> str | None:
    """The text of a file, or ``None`` if it is binary or not a regular file."""
    if not path.is_file():
        if path.is_symlink() and not path.exists():
            raise CorpusError(f"{path}: expected a file, got a link that leads nowhere")
        return None  # opening a named pipe would wait for a writer
    with path.open("rb") as file:
        content = file.read(_BINARY_PROBE_BYTES)
        has_nul_in_text = b"\0" in "\n".encode(encoding)  # utf-16 and utf-32
        if b"\0" in content and not has_nul_in_text:
            return None
        content += file.read()
    try:
        return content.decode(encoding)
    except UnicodeError as error:
        raise _decoding_error(str(path), 0, encoding, error) from None
