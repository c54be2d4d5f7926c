"""``boltzhash search``, in a folder of codes or in a collection: its arguments, and what it does."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from boltzhash.cli.arguments import (
    add_features,
    add_fields,
    add_json,
    add_where,
    read_documents,
    read_queries,
    read_vectors,
    with_progress,
)
from boltzhash.cli.opening import is_collection, opened
from boltzhash.cli.reporting import OK, say
from boltzhash.search.order import CANDIDATES, DEFAULT_ORDER, ORDERS

if TYPE_CHECKING:
    from boltzhash.search.hits import Answer


def add_parsers(subparsers: Any) -> None:
    """Hook the command into the command line."""
    parser = subparsers.add_parser(
        "search",
        help="find the documents most like a query",
        usage="%(prog)s [options] (MODEL CODES | COLLECTION) [QUERY ...]",
        description="Find the documents whose codes are nearest to the query's, in a folder of codes "
        "or in a collection. Prints rank, Hamming distance and id; for a collection, or with --corpus, "
        "also a line of the text.",
    )
    parser.add_argument("model", metavar="MODEL", help="folder written by fit, or COLLECTION")
    parser.add_argument("codes", metavar="CODES", nargs="?", help="folder written by encode")
    parser.add_argument(
        "queries",
        metavar="QUERY",
        nargs="*",
        help="text to look for; if none, one per line from stdin",
    )
    add_features(parser, "vectors of the queries, if the model was fitted with vectors")
    parser.add_argument("-k", type=int, default=10, help="hits per query (10)")
    parser.add_argument(
        "--corpus", metavar="CORPUS", help="the corpus that was encoded, to show and rerank texts"
    )
    parser.add_argument(
        "--rerank",
        action="store_true",
        help="reorder the nearest documents by their words (tf-idf cosine), or by another --order; a "
        "folder of codes needs --corpus for it",
    )
    parser.add_argument(
        "--order",
        choices=ORDERS,
        default=DEFAULT_ORDER,
        help=f"what to rerank by: {', '.join(ORDERS)} ({DEFAULT_ORDER})",
    )
    parser.add_argument(
        "--candidates",
        type=int,
        default=CANDIDATES,
        metavar="N",
        help=f"how many documents to rerank ({CANDIDATES})",
    )
    parser.add_argument(
        "--by",
        choices=("codes", "words", "both"),
        default="codes",
        help="rank a collection by codes, by words (BM25), or by both in one score (codes)",
    )
    add_where(parser)
    add_fields(parser)
    add_json(parser)
    parser.set_defaults(run=search, usage_error=parser.error)


def search(options: argparse.Namespace) -> int:
    if options.rerank and options.candidates < 1:
        raise ValueError(f"--candidates must be at least 1, got {options.candidates}")
    options.collection = _named_collection(options)
    if options.collection is not None:
        answers = _search_collection(options)
    elif options.codes is None:
        options.usage_error(
            f"{options.model} is not a collection: give a model and a folder of codes"
        )
    else:
        answers = _search_codes(options)
    for number, answer in enumerate(answers):
        if options.json:
            print(json.dumps(answer.as_json(), ensure_ascii=False))
        else:
            print(("\n" if number else "") + str(answer))
    return OK


def _named_collection(options: argparse.Namespace) -> str | None:
    """The collection, given alone or after a model that must then be its own; None for codes."""
    options.hasher = None
    if is_collection(options.model):
        options.queries = [*filter(None, [options.codes]), *options.queries]
        return str(options.model)
    if options.codes is None or not is_collection(options.codes):
        return None
    from boltzhash.hashers import load

    options.hasher = load(options.model)
    return str(options.codes)


def _search_collection(options: argparse.Namespace) -> Iterable[Answer]:
    if options.corpus is not None:
        raise ValueError("--corpus is for a folder of codes: a collection has its texts")
    rerank = options.candidates if options.rerank else False
    queries = _queries(options)
    with opened(options.collection, options.hasher) as collection:
        for query in queries:
            yield collection.search(
                query,
                options.k,
                by=options.by,
                where=options.where,
                rerank=rerank,
                order=options.order,
            )


def _search_codes(options: argparse.Namespace) -> Iterable[Answer]:
    from boltzhash.hashers import load
    from boltzhash.search.finder import Finder
    from boltzhash.storage.codes import read_codes

    if options.by != "codes":
        raise ValueError(f"--by {options.by} is for a collection: a folder of codes has no words")
    if options.where is not None:
        raise ValueError("--where is for a collection: a folder of codes has no metadata")
    if options.rerank and options.corpus is None:
        raise ValueError("--rerank compares texts: give the encoded corpus with --corpus")
    if options.corpus == "-" and not options.queries:
        raise ValueError("--corpus - and the queries cannot both come from standard input")
    hasher = load(options.model)
    stored = read_codes(options.codes, model=hasher.fingerprint())
    finder = Finder(hasher, stored.codes, stored.ids, no_known_word=stored.no_known_word)

    def corpus() -> Any:
        return with_progress(read_documents(options), "reading")

    return finder.find(
        _queries(options),
        options.k,
        features=read_vectors(options),
        rerank_from=options.candidates if options.rerank else None,
        order=options.order,
        corpus=None if options.corpus is None else corpus,
    )


def _queries(options: argparse.Namespace) -> list[str]:
    queries = read_queries(options)
    if not queries:
        say("no query came on standard input")
    return queries
