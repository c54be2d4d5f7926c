"""Reading what users have: JSONL, CSV, Parquet, a folder of text files, standard input.

Documents are read one at a time, so a corpus may be larger than memory. A record that cannot be
read is an error that says where it is; none is silently left out.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from boltzhash.corpus import jsonl
from boltzhash.corpus.folder import read_folder
from boltzhash.corpus.formats import FORMATS, suffix_of
from boltzhash.corpus.lines import text_encoding
from boltzhash.corpus.records import CorpusError, Document, Fields, documents


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
        In a folder each text file is a document whose id is its relative path. Subfolders and links
        are followed. Hidden files and binary ones (a NUL byte in the first 8 KiB) are left out.
    text_field
        The field or column with the text.
    id_field
        The field or column with the id, a string or an integer. By default ``id`` if a record
        has one of either type, otherwise the number of the document, counted from 0.
    encoding
        The encoding of everything but Parquet. A UTF-8 byte order mark is skipped.
    metadata
        Which of a record's other fields become the document's metadata: those named, all (True) or none.
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
    fields = Fields(text_field, id_field, metadata)
    encoding = text_encoding(encoding)
    if str(source) == "-":
        return documents(jsonl.read(None, fields, encoding), fields)
    path = Path(source)
    if source == "" or not path.exists():  # Path("") would be the current folder
        raise CorpusError(f"{source or repr('')}: expected a file or a folder, got no such path")
    if path.is_dir():
        return read_folder(path, encoding)
    return documents(FORMATS[suffix_of(path)].read(path, fields, encoding), fields)
