"""Arguments that several commands share, and the corpus that they name."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boltzhash.corpus import Document
    from boltzhash.corpus.records import OnBad

COLLECTION = "a folder, or a URL such as postgresql://host/database#name"


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="folder written by fit")


def add_collection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("collection", metavar="COLLECTION", help=f"made by index: {COLLECTION}")


def add_corpus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "corpus",
        metavar="CORPUS",
        nargs="+",
        help="JSONL, CSV or TSV (each also .gz), Parquet, a folder of these or of text files, a pattern "
        "such as 'data/*.jsonl', or - for JSONL on standard input; several are read as one",
    )
    add_fields(parser)


def add_fields(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text-field", default="text", help="field that holds the text (text)")
    parser.add_argument(
        "--id-field", help="field that holds the id (id, else _id, else the row number)"
    )
    parser.add_argument(
        "--id-as-string",
        action="store_true",
        help="make every id a string, also one that is neither a string nor an integer",
    )
    parser.add_argument("--encoding", default="utf-8", help="of text files (utf-8)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--format",
        metavar="NAME",
        help="how to read files, whatever their names say, and standard input: jsonl, csv, tsv, "
        "parquet, lines or files (a document a file)",
    )
    how.add_argument(
        "--lines",
        dest="format",
        action="store_const",
        const="lines",
        help="each line of a text is a document",
    )
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="leave out records that are no documents, say how many and why, and write them to a file "
        "beside the output: OUTPUT.skipped.jsonl",
    )


def add_metadata(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metadata",
        metavar="FIELDS",
        help="which fields become metadata, separated by commas (all but text and id)",
    )


def add_features(parser: argparse.ArgumentParser, meaning: str) -> None:
    parser.add_argument("--features", metavar="FILE.npy", help=f"{meaning}; rows in the same order")


def add_words(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Which words a model learns. Not given: None."""
    parser.add_argument(
        "--stop-words",
        metavar="FILE",
        help="words to leave out, separated by blanks or line ends, in place of the language's",
    )
    parser.add_argument(
        "--min-df", type=int, metavar="N", help="leave out words of fewer documents than this (1)"
    )
    parser.add_argument(
        "--max-df",
        type=float,
        metavar="SHARE",
        help="leave out words of more than this share of the documents (0.5)",
    )


def given_words(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of a hasher that the options of :func:`add_words` name."""
    given: dict[str, Any] = {"text__min_df": options.min_df, "text__max_df": options.max_df}
    if options.stop_words is not None:
        words = Path(options.stop_words).read_text(encoding="utf-8").split()
        given["text__stop_words"] = tuple(words)
    return {name: value for name, value in given.items() if value is not None}


def add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--where",
        type=_json_object,
        metavar="JSON",
        help='filter a collection by metadata, e.g. \'{"year": {">=": 2020}, "lang": ["de", "en"]}\'; '
        "there are = != < <= > >= in, not in, contains, exists, and $and, $or, $not",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for machines")


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text!r}: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text!r}")
    return value


def read_documents(
    options: argparse.Namespace, on_bad: OnBad | None = None, field: str | None = None
) -> Iterator[Document]:
    """The documents of the corpus that the options name, with metadata if the command takes any.

    ``on_bad`` is told of records that ``--skip-bad`` leaves out; ``field`` is all the metadata that a
    command wants which has no option for them.
    """
    from boltzhash.corpus import read_corpus

    wanted: bool | list[str] = hasattr(options, "metadata")
    if field is not None:
        wanted = [field]
    elif wanted and options.metadata is not None:
        wanted = [name for name in options.metadata.split(",") if name]
    return read_corpus(
        options.corpus,
        text_field=options.text_field,
        id_field=options.id_field,
        id_as_string=options.id_as_string,
        encoding=options.encoding,
        metadata=wanted,
        format=options.format,
        on_bad=on_bad or (_ignored if options.skip_bad else None),
    )


def with_fields_told(
    documents: Iterator[Document], options: argparse.Namespace
) -> Iterator[Document]:
    """The documents; at the end, names in ``--metadata`` that no record has are pointed out."""
    wanted = [name for name in (options.metadata or "").split(",") if name]
    unseen, seen = dict.fromkeys(wanted), False
    for document in documents:
        seen = True
        for name in [name for name in unseen if name in (document.metadata or {})]:
            del unseen[name]
        yield document
    if unseen and seen:
        names = ", ".join(map(repr, unseen))
        logging.getLogger("boltzhash").warning("--metadata: no record has a field %s", names)


def _ignored(_: object) -> None:
    """A bad record where it has been told of before."""


def with_progress(
    documents: Iterator[Document], doing: str, total: int | None = None
) -> Iterator[Document]:
    """The documents, counted as they are read."""
    from boltzhash.progress import counted

    return counted(documents, doing, "documents", total)


def count_documents(options: argparse.Namespace, vectors: Any = None) -> int | None:
    """How many documents the corpus has, to tell the time left, and to compare with its vectors.

    None if nobody would see it, or if the corpus can be read only once or is broken, which is told
    when it is read. Vectors that are not as many are refused.
    """
    from boltzhash.corpus import CorpusError
    from boltzhash.corpus.places import places_of
    from boltzhash.hashers.shared.features import check_rows
    from boltzhash.progress import is_quiet

    paths = [Path(place) for place in places_of(options.corpus)]
    is_seen = vectors is not None or not is_quiet()
    if not is_seen or not all(path.is_file() or path.is_dir() for path in paths):
        return None
    logger = logging.getLogger("boltzhash")
    reading = argparse.Namespace(**{**vars(options), "skip_bad": vectors is None})
    logger.addFilter(_is_no_warning)  # those come when it is read for good
    try:
        n = sum(1 for _ in with_progress(read_documents(reading), "counting"))
    except (CorpusError, OSError):
        return None
    finally:
        logger.removeFilter(_is_no_warning)
    if vectors is not None:
        check_rows(len(vectors), n)
    return n


def _is_no_warning(record: logging.LogRecord) -> bool:
    return record.levelno < logging.WARNING


def read_queries(options: argparse.Namespace) -> list[str]:
    """The queries on the command line, or else one per line of standard input."""
    return options.queries or [line.strip() for line in sys.stdin or () if line.strip()]


def read_vectors(options: argparse.Namespace) -> Any:
    """The features that the options name, or None."""
    from boltzhash.hashers.shared.features import read_features

    return None if options.features is None else read_features(options.features)


def read_vector_queries(options: argparse.Namespace) -> tuple[list[str] | list[None], Any]:
    """The queries, and their vectors if the options name some; vectors may come without a text.

    Standard input is not waited for if it is a terminal and there are vectors to search for.
    """
    from boltzhash.hashers.shared.features import check_rows, read_query_features

    if options.features is None:
        return read_queries(options), None
    vectors = read_query_features(options.features)
    is_typed = sys.stdin is not None and sys.stdin.isatty()
    texts = options.queries if is_typed else read_queries(options)
    if not texts:
        return [None] * len(vectors), vectors
    check_rows(len(vectors), len(texts))
    return texts, vectors
