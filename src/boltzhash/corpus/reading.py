"""Reading what users have: JSONL, CSV, Parquet, lines of text, folders of any of these, standard input.

Documents are read one at a time, so a corpus may be larger than memory. A record that cannot be
read is an error that says where it is; none is silently left out.
"""

import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from boltzhash.corpus import jsonl
from boltzhash.corpus.folder import (
    all_files,
    files_of_records,
    read_file,
    read_folder,
)
from boltzhash.corpus.formats import FILES, FORMATS, named_format, suffix_of
from boltzhash.corpus.frames import Frame, column_names, read_frame
from boltzhash.corpus.lines import text_encoding
from boltzhash.corpus.places import STANDARD_INPUT, places_of
from boltzhash.corpus.records import CorpusError, Document, Fields, OnBad, Records, documents

logger = logging.getLogger("boltzhash")

_OF_TEXTS = Fields("text", "id", metadata=False)  # how folder.py names what is in a text file


def read_corpus(
    source: str | Path | Iterable[str | Path] | Frame,
    *,
    text_field: str = "text",
    id_field: str | None = None,
    id_as_string: bool = False,
    encoding: str = "utf-8",
    metadata: bool | Sequence[str] = False,
    format: str | None = None,
    on_bad: OnBad | None = None,
) -> Iterator[Document]:
    """Read the documents of a corpus one by one.

    Parameters
    ----------
    source
        A file of records (``.jsonl``, ``.ndjson``, ``.csv`` or ``.tsv``, each also with ``.gz``,
        or ``.parquet``), a folder, a pattern such as ``"data/*.jsonl"``, ``-`` for JSONL on standard
        input, which may be compressed, or a list of these. CSV needs a header row. Or a data frame of
        pandas or polars, or a dataset of Hugging Face.
        The records of a folder are those of its files; in a folder without files of records each text
        file is a document whose id is its relative path. Subfolders and links are followed. Hidden files
        and binary ones (a NUL byte in the first 8 KiB) are left out, links that lead nowhere with a
        warning.
    text_field
        The field or column with the text.
    id_field
        The field or column with the id, a string or an integer. By default ``id``, or else ``_id``, if
        a record has it, otherwise the number of the record, counted from 0 over the whole corpus.
    id_as_string
        Make every id a string, also what is neither a string nor an integer: 1.5 becomes "1.5", and
        12.0, a whole number, "12". A missing value remains an error.
    encoding
        The encoding of everything but Parquet. A UTF-8 byte order mark is skipped.
    metadata
        Which of a record's other fields become the document's metadata: those named, all (True) or none.
        With all, the fields of an object ``metadata`` count as the record's own. Dates, decimals and
        missing values become what JSON can say (:mod:`boltzhash.corpus.values`).
    format
        How to read files, whatever their names say: ``"jsonl"``, ``"csv"``, ``"tsv"``, ``"parquet"``,
        ``"lines"`` (each line of a text is a document) or ``"files"`` (each file is one).
    on_bad
        Is called with each record that is not a document, a
        :class:`~boltzhash.corpus.records.BadRecord`, which is then left out.

    Raises
    ------
    CorpusError
        At once if the source does not exist or its kind or the encoding is unknown; while reading,
        at the first record that is not a document, unless there is ``on_bad``.
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
    fields = Fields(text_field, id_field, metadata, id_as_string)
    columns = column_names(source)
    if columns is not None:
        if format is not None:
            raise CorpusError(f"format= is for files, got {format!r} and a {type(source).__name__}")
        return documents(read_frame(source, columns, fields), fields, on_bad=on_bad)
    encoding = text_encoding(encoding)
    counted = itertools.count()  # over all files
    parts = [
        documents(records, meaning, lambda _: next(counted), on_bad)
        for place in places_of(source)
        for records, meaning in _parts(place, fields, encoding, format)
    ]
    return itertools.chain.from_iterable(parts)


def _parts(
    place: str | Path, fields: Fields, encoding: str, format: str | None
) -> Iterator[tuple[Records, Fields]]:
    """The records of a file, or those of each file of a folder, and which of their fields are what."""
    path = Path(place)
    if str(place) == STANDARD_INPUT:
        yield _of_standard_input(format, fields, encoding), fields
    elif format == FILES:
        whole = (
            read_folder(path, encoding) if path.is_dir() else read_file(path, str(path), encoding)
        )
        yield whole, _OF_TEXTS
    elif path.is_dir():
        files = all_files(path) if format else files_of_records(path, encoding)
        if files is None:
            yield read_folder(path, encoding), _OF_TEXTS
        for file in files or ():
            yield _of_file(file, format, fields, encoding), fields
    else:
        yield _of_file(path, format, fields, encoding), fields


def _of_file(path: Path, format: str | None, fields: Fields, encoding: str) -> Records:
    how = FORMATS[suffix_of(path)] if format is None else named_format(format)
    return _told(how.read(path, fields, encoding), path)


def _told(records: Records, path: Path) -> Records:
    logger.debug("reading %s", path)
    yield from records


def _of_standard_input(format: str | None, fields: Fields, encoding: str) -> Records:
    if format is None:
        return jsonl.read(None, fields, encoding)
    if format == FILES:
        raise CorpusError("standard input: expected a format of records, got 'files'")
    return named_format(format).read(None, fields, encoding)
