"""``boltzhash search``, in a folder of codes or in a collection: its arguments, and what it does."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boltzhash.cli.arguments import (
    add_features,
    add_fields,
    add_json,
    add_where,
    read_documents,
    read_vector_queries,
    with_progress,
)
from boltzhash.cli.caching import cached_collection
from boltzhash.cli.opening import is_collection, is_model_or_codes, meant_id, opened
from boltzhash.cli.reporting import OK, say
from boltzhash.search.order import DEFAULT_ORDER, ORDERS

if TYPE_CHECKING:
    from boltzhash.collection import Collection
    from boltzhash.search.hits import Answer


def add_parsers(subparsers: Any) -> None:
    """Hook the command into the command line."""
    parser = subparsers.add_parser(
        "search",
        help="find the documents most like a query",
        usage="%(prog)s [options] (COLLECTION | CORPUS | MODEL CODES) [QUERY ...]",
        description="Find the documents that answer a query best, by their words and their codes, in a "
        "collection, in a corpus (which is read into a cache first, and again when it has changed), "
        "or in a folder of codes with its --corpus. Prints rank, score, id and a line of the "
        'text. In a query "a phrase" in quotes must occur and a word after a -minus must not. A '
        "folder of codes alone is searched by them, and the Hamming distance is printed for the score.",
    )
    parser.add_argument(
        "model",
        metavar="COLLECTION",
        help="folder or URL made by index; or a CORPUS, as for index; or a MODEL, written by fit",
    )
    parser.add_argument("codes", metavar="CODES", nargs="?", help="folder written by encode")
    parser.add_argument(
        "queries",
        metavar="QUERY",
        nargs="*",
        help="text to look for; if none, one per line from stdin",
    )
    add_features(
        parser,
        "vectors of the queries, if the model was fitted with vectors; QUERY may then be left out",
    )
    parser.add_argument("-k", type=int, default=10, help="hits per query (10)")
    parser.add_argument(
        "--corpus",
        metavar="CORPUS",
        help="the corpus that was encoded: its texts are shown, and its words searched too",
    )
    parser.add_argument(
        "--by",
        choices=("both", "words", "codes"),
        help="find and rank by words and codes in one score, by words (BM25), or by codes; both if "
        "there are texts, else codes",
    )
    parser.add_argument(
        "--order",
        choices=ORDERS,
        help="by codes: rank the nearest by Hamming distance, by how sure the model is of the query's "
        f"bits, or by words (tf-idf cosine) ({DEFAULT_ORDER})",
    )
    parser.add_argument(
        "--like",
        metavar="ID",
        help="instead of a query: the documents most like this one of the collection",
    )
    add_where(parser)
    add_fields(parser)
    add_json(parser)
    parser.set_defaults(run=search, usage_error=parser.error)


def search(options: argparse.Namespace) -> int:
    options.collection = _named_collection(options)
    if options.collection is not None and options.like is not None:
        return _search_like(options)
    if options.collection is not None:
        answers = _search_collection(options)
    elif options.codes is None:
        options.usage_error(
            f"{options.model} is not a collection and not a corpus: give one of these, or a model and a "
            "folder of codes"
        )
    else:
        answers = _search_codes(options)
    for number, answer in enumerate(answers):
        if answer.warning is not None:
            say(f"nothing found: {answer.warning}")
        if options.json:
            print(json.dumps(answer.as_json(), ensure_ascii=False))
        else:
            vector = f"row {number} of {options.features}" if answer.query is None else ""
            print(("\n" if number else "") + vector + str(answer))
    return OK


def _named_collection(options: argparse.Namespace) -> str | None:
    """The collection: given alone, after a model that must be its own, or a corpus'. None for codes."""
    options.hasher = None
    is_there = is_collection(options.model)
    if is_there or _is_corpus(options.model, options.codes):
        if options.corpus is not None:
            raise ValueError(
                f"--corpus is for a folder of codes: {options.model} has its own texts"
            )
        if not is_there and options.features is not None:
            raise ValueError(
                f"--features: {options.model} is a corpus, which is searched with a model of its words; "
                "make a collection with vectors of its documents (`boltzhash index CORPUS --features "
                "FILE.npy -o COLLECTION`), and search that"
            )
        first = [] if options.codes is None else [options.codes]
        options.queries = [*first, *options.queries]
        return options.model if is_there else cached_collection(options.model, options)
    if options.codes is None or not is_collection(options.codes):
        return None
    from boltzhash.hashers import load

    options.hasher = load(options.model)
    return str(options.codes)


def _is_corpus(path: str, next_to_it: str | None) -> bool:
    """Whether what was named first is a corpus, and not a model before its codes."""
    if path == "-":
        raise ValueError(
            "a corpus to search is read more than once, and standard input cannot be: write it to a file"
        )
    if next_to_it is not None and is_model_or_codes(next_to_it):
        return False
    there = Path(path)
    return bool(path) and (there.is_file() or there.is_dir()) and not is_model_or_codes(path)


def _search_collection(options: argparse.Namespace) -> Iterable[Answer]:
    from boltzhash.collection import FilterWarning

    queries, vectors = _questions(options)
    with (
        opened(options.collection, options.hasher) as collection,
        warnings.catch_warnings(action="ignore", category=FilterWarning),  # answers have them
    ):
        if queries:
            _say_if_not_by_both(collection, options)
        for number, query in enumerate(queries):
            yield collection.search(
                query,
                options.k,
                features=None if vectors is None else vectors[number],
                by=options.by,
                where=options.where,
                order=options.order,
            )


def _search_like(options: argparse.Namespace) -> int:
    others = {"a query": options.queries, "--order": options.order, "--features": options.features}
    for what in (name for name, value in others.items() if value):
        raise ValueError(f"--like looks for documents like one, got {what} as well: leave one out")
    with opened(options.collection, options.hasher) as collection:
        _say_if_not_by_both(collection, options)
        id_ = meant_id(options.like, collection)
        try:
            answer = collection.more_like(id_, options.k, by=options.by, where=options.where)
        except KeyError as error:
            raise ValueError(error.args[0]) from None
    if options.json:
        print(json.dumps({"like": id_, **answer.as_json()}, ensure_ascii=False))
    else:
        print(f"like {id_}{answer}")  # an answer to no question begins with an empty line
    return OK


def _say_if_not_by_both(collection: Collection, options: argparse.Namespace) -> None:
    if options.by is not None or options.order is not None:
        return
    has_code = options.features is not None or options.like is not None
    if not has_code and collection.hasher.n_feature_columns is not None:
        say(
            f"{collection.location} makes codes from vectors: without --features it is searched by "
            "words alone"
        )


def _search_codes(options: argparse.Namespace) -> Iterable[Answer]:
    from boltzhash.hashers import load
    from boltzhash.search.finder import Finder
    from boltzhash.storage.codes import read_codes

    if options.like is not None:
        raise ValueError("--like is for a collection: a folder of codes has no documents")
    if options.where is not None:
        raise ValueError("--where is for a collection: a folder of codes has no metadata")
    compares_words = options.by in ("both", "words") or options.order == "words"
    if compares_words and options.corpus is None:
        raise ValueError("words are compared in the texts: give the encoded corpus with --corpus")
    if options.corpus == "-" and not options.queries:
        raise ValueError("--corpus - and the queries cannot both come from standard input")
    hasher = load(options.model)
    stored = read_codes(options.codes, model=hasher.fingerprint())
    finder = Finder(hasher, stored.codes, stored.ids, no_known_word=stored.no_known_word)

    def corpus() -> Any:
        return with_progress(read_documents(options), "reading")

    queries, vectors = _questions(options)
    return finder.find(
        queries,
        options.k,
        features=vectors,
        by=options.by,
        order=options.order,
        corpus=None if options.corpus is None else corpus,
    )


def _questions(options: argparse.Namespace) -> tuple[list[str] | list[None], Any]:
    queries, vectors = read_vector_queries(options)
    if not queries:
        say("no query came on standard input")
    return queries, vectors
