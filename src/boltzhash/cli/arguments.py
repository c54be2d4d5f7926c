"""Arguments that several commands share, and the corpus that they name."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boltzhash.corpus import Document

COLLECTION = (
    "a folder, or a URL such as postgresql://host/database#name or milvus://host:19530#name"
)


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="folder written by fit")


def add_collection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("collection", metavar="COLLECTION", help=f"made by index: {COLLECTION}")


def add_corpus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "corpus",
        metavar="CORPUS",
        help="JSONL, CSV or TSV (each also .gz), Parquet, a folder of text files, or - for JSONL "
        "on standard input",
    )
    add_fields(parser)


def add_fields(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text-field", default="text", help="field that holds the text (text)")
    parser.add_argument("--id-field", help="field that holds the id (id, else the row number)")
    parser.add_argument("--encoding", default="utf-8", help="of text files (utf-8)")


def add_metadata(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metadata",
        metavar="FIELDS",
        help="which fields become metadata, separated by commas (all but text and id)",
    )


def add_features(parser: argparse.ArgumentParser, meaning: str) -> None:
    parser.add_argument("--features", metavar="FILE.npy", help=f"{meaning}; rows in the same order")


def add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--where",
        type=_json_object,
        metavar="JSON",
        help='filter a collection by metadata, e.g. \'{"year": {">=": 2020}, "lang": ["de", "en"]}\'; '
        "there are = != < <= > >= in, not in, contains, exists, and $and, $or, $not",
    )


@contextmanager
def without_filter_warnings() -> Iterator[None]:
    """Python's warnings about filters kept quiet: the command says it in its own words."""
    from boltzhash.collection import FilterWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FilterWarning)
        yield


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


def read_documents(options: argparse.Namespace) -> Iterator[Document]:
    """The documents of the corpus that the options name, with metadata if the command takes any."""
    from boltzhash.corpus import read_corpus

    wanted: bool | list[str] = hasattr(options, "metadata")
    if wanted and options.metadata is not None:
        wanted = [name for name in options.metadata.split(",") if name]
    return read_corpus(
        options.corpus,
        text_field=options.text_field,
        id_field=options.id_field,
        encoding=options.encoding,
        metadata=wanted,
    )


def with_progress(
    documents: Iterator[Document], doing: str, total: int | None = None
) -> Iterator[Document]:
    """The documents, counted on a terminal."""
    from tqdm import tqdm

    return iter(tqdm(documents, desc=doing, unit=" documents", total=total, disable=None))


def count_on_a_terminal(options: argparse.Namespace) -> int | None:
    """How many documents the corpus has, to tell the time left; None if nobody would see it."""
    if sys.stderr is None or not sys.stderr.isatty() or options.corpus == "-":
        return None
    return sum(1 for _ in with_progress(read_documents(options), "counting"))


def read_queries(options: argparse.Namespace) -> list[str]:
    """The queries on the command line, or else one per line of standard input."""
    return options.queries or [line.strip() for line in sys.stdin or () if line.strip()]


def read_vectors(options: argparse.Namespace) -> Any:
    """The features that the options name, or None."""
    from boltzhash.hashers.shared.features import read_features

    return None if options.features is None else read_features(options.features)
