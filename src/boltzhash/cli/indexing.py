"""The commands that write a corpus into a collection: ``index`` and ``add``."""

from __future__ import annotations

import argparse
import shlex
import time
from typing import TYPE_CHECKING, Any

from boltzhash.cli.arguments import (
    COLLECTION,
    add_collection,
    add_corpus,
    add_features,
    add_json,
    add_metadata,
    count_documents,
    read_documents,
    read_vectors,
    with_fields_told,
    with_progress,
)
from boltzhash.cli.learning import add_learning, opened_or_learned, refuse_learning
from boltzhash.cli.opening import (
    forget_unfinished,
    is_collection,
    is_model_or_codes,
    opened,
    opened_if_there,
    unfinished_in,
)
from boltzhash.cli.reporting import NOTHING_KEPT, RESUMES, interruption_says, report, say
from boltzhash.cli.skipping import SkippedRecords, skipped_records
from boltzhash.errors import ChangedDocumentsError

if TYPE_CHECKING:
    from boltzhash.collection import Collection


def add_parsers(subparsers: Any) -> None:
    """Hook the commands into the command line."""
    parser = subparsers.add_parser(
        "index",
        help="make a collection of a corpus",
        usage="%(prog)s [options] [MODEL] CORPUS [CORPUS ...] -o COLLECTION",
        description="Make a collection of all documents of a corpus, with a copy of the model in it. "
        "MODEL is a folder written by fit; without it a model is learned from the corpus first. "
        "The fields of a record other than text and id become metadata. An interrupted index resumes "
        "where it stopped when the same command runs again; on a server, learning starts over.",
    )
    add_corpus(parser)
    add_features(parser, "vectors of the documents to make the codes from, if MODEL was fitted so")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="COLLECTION",
        help=f"where to make it: {COLLECTION}",
    )
    parser.add_argument(
        "--passages",
        type=int,
        metavar="WORDS",
        help="cut documents into passages of about so many words, such as 200, now and whenever some "
        "are added: long ones are found, and shown, by their best passage; in a folder only",
    )
    parser.add_argument(
        "--start-over",
        action="store_true",
        help="delete what an interrupted index has left there, and begin again",
    )
    add_metadata(parser)
    add_json(parser)
    add_learning(parser)
    # A corpus after options is not recognised if a model came before them: it is left for queries.
    parser.set_defaults(run=index, queries=[], usage_error=parser.error)

    parser = subparsers.add_parser(
        "add",
        help="add a corpus to a collection",
        description="Add the documents of a corpus. An interrupted add resumes where it stopped "
        "when the same command runs again.",
    )
    add_collection(parser)
    add_corpus(parser)
    add_features(parser, "vectors of the documents, if the model was fitted with vectors")
    parser.add_argument(
        "--upsert", action="store_true", help="overwrite documents whose id is already there"
    )
    add_metadata(parser)
    add_json(parser)
    parser.set_defaults(run=add)


def index(options: argparse.Namespace) -> int:
    before = RESUMES if is_collection(options.output) else NOTHING_KEPT
    with interruption_says(lambda: before):
        return _index(options)


def _index(options: argparse.Namespace) -> int:
    _tell_model_from_corpus(options)
    start = time.monotonic()
    name = f"index {_named_input(options)}"
    skipped = skipped_records(options, options.output)
    # Before a folder is made: it may not be there, or the vectors may not fit.
    corpus = with_fields_told(read_documents(options, skipped), options)
    vectors = read_vectors(options)
    total = None if vectors is None else count_documents(options, vectors)
    with (
        _opened_or_made(options, vectors) as collection,
        interruption_says(lambda: _what_is_kept(collection, learned=options.model is None)),
    ):
        if options.start_over and unfinished_in(collection) is not None:
            collection.delete(document.id for document in collection)
            forget_unfinished(collection)
        _check_new_or_resumed(collection, name, options.passages)
        shown = with_progress(corpus, "indexing", total or count_documents(options))
        try:
            added = collection.add_resumably(shown, name, features=vectors)
        except ChangedDocumentsError as error:
            raise ValueError(
                f"{error}. To start over, run the same command with --start-over: it deletes the "
                f"{len(collection)} documents that are in {collection.location}, and begins again"
            ) from None
        unknown = collection.stats()["no_known_word"]
        if unknown:
            say(
                f"{unknown} documents have no word that the model knows; they share the code of the "
                "empty document"
            )
        seconds = None if options.model is not None else time.monotonic() - start
        return _report_written(collection, options, added, skipped, seconds)


def add(options: argparse.Namespace) -> int:
    name = f"add {_named_input(options)}"
    with opened(options.collection) as collection:
        skipped = skipped_records(options, options.collection)
        corpus = with_fields_told(read_documents(options, skipped), options)
        vectors = read_vectors(options)
        total = count_documents(options, vectors)
        unfinished = unfinished_in(collection)
        goes_on = unfinished is not None and unfinished["name"] == name
        if options.upsert:
            with interruption_says(lambda: "what was written stays; run the same command again"):
                shown = with_progress(corpus, "writing", total)
                written = collection.upsert(shown, features=vectors)
            if goes_on:
                forget_unfinished(collection)
            return _report_written(collection, options, written, skipped)
        if unfinished is not None and goes_on:
            _say_where_it_resumes(unfinished)
        elif unfinished is not None:
            say(f"`{unfinished['name']}` was interrupted and can no longer resume where it stopped")
        with interruption_says(lambda: _what_is_kept(collection)):
            shown = with_progress(corpus, "adding", total)
            try:
                written = collection.add_resumably(shown, name, features=vectors)
            except ChangedDocumentsError as error:
                raise ValueError(
                    f"{error}. To start over, run the same command with --upsert: it overwrites the "
                    "documents that are already there, and adds the others"
                ) from None
        return _report_written(collection, options, written, skipped)


def _named_input(options: argparse.Namespace) -> str:
    """The corpus and its vectors as they were typed: what an interrupted command is known by."""
    vectors = [] if options.features is None else ["--features", options.features]
    return shlex.join([*options.corpus, *vectors])


def _check_new_or_resumed(collection: Collection, name: str, passages: int | None) -> None:
    """Refuse to index into what is finished, or was begun by another command or with other passages."""
    unfinished = unfinished_in(collection)
    if unfinished is None and len(collection):
        raise FileExistsError(
            f"{collection.location} is already a collection: add to it with `boltzhash add`"
        )
    if unfinished is not None and unfinished["name"] != name:
        raise ValueError(
            f"{collection.location} is unfinished: run `{unfinished['name']}` again, not `{name}`, or "
            "start over with --start-over"
        )
    if passages not in (None, collection.store.passages):
        was = (
            "out --passages"
            if collection.store.passages is None
            else f" --passages {collection.store.passages}"
        )
        raise ValueError(
            f"{collection.location} was begun with{was}, got --passages {passages}: give the same, or "
            "another --output"
        )
    if unfinished is not None:
        _say_where_it_resumes(unfinished)


def _what_is_kept(collection: Collection, *, learned: bool = False) -> str:
    """After an interruption, when the collection itself may not answer any more."""
    try:
        unfinished = unfinished_in(collection)
    except Exception:
        return RESUMES
    if unfinished is None:
        return (
            f"{collection.location} keeps what was learned; {RESUMES}" if learned else NOTHING_KEPT
        )
    return (
        f"{collection.location} keeps the first {unfinished['done']} documents; the same command "
        "resumes after them"
    )


def _tell_model_from_corpus(options: argparse.Namespace) -> None:
    """A folder that fit has written comes before the corpus; what is no such folder is a corpus."""
    options.corpus, options.model = [*options.corpus, *options.queries], None
    if is_model_or_codes(options.corpus[0]):
        options.model = options.corpus.pop(0)
    if not options.corpus:
        options.usage_error(f"{options.model} is not a corpus: name one after the model")
    for place in filter(is_collection, options.corpus):
        raise ValueError(
            f"{place} is a collection, not a corpus: `boltzhash export` writes its documents to a file"
        )
    if "-" in options.corpus and options.model is None:
        raise ValueError(
            "standard input can be read only once, to learn a model or to index: name a MODEL, or "
            "write it to a file first"
        )


def _opened_or_made(options: argparse.Namespace, vectors: Any) -> Collection:
    from boltzhash.collection import Collection
    from boltzhash.hashers import load
    from boltzhash.hashers.shared.features import check_finite

    if options.passages is not None:
        _check_can_cut(options, vectors)
    if options.model is None:
        return opened_or_learned(options, vectors, options.passages)
    refuse_learning(options)
    hasher = load(options.model)
    if hasher.checked_features(vectors) is not None:
        check_finite(vectors)
    begun = opened_if_there(options.output, hasher)
    if begun is not None:
        return begun
    return Collection.create(options.output, hasher, passages=options.passages)


def _check_can_cut(options: argparse.Namespace, vectors: Any) -> None:
    """Before anything is learned, or a server asked, what would be refused after it."""
    from boltzhash.collection.engines import parse_location
    from boltzhash.collection.locations import FOLDER
    from boltzhash.collection.store import has_no_passages
    from boltzhash.text.passages import check_passages

    check_passages(options.passages)
    location = parse_location(options.output)
    if location.kind != FOLDER:
        raise has_no_passages(location.shown())
    if vectors is not None:
        raise ValueError(
            "--passages: passages are hashed by their words, got --features: leave one out"
        )


def _say_where_it_resumes(unfinished: dict[str, Any]) -> None:
    say(f"resuming after the {unfinished['done']} documents that are already there")


def _report_written(
    collection: Collection,
    options: argparse.Namespace,
    n: int,
    skipped: SkippedRecords | None,
    seconds: float | None = None,
) -> int:
    """Report ``n`` documents, and the model if one was learned: it took the ``seconds``."""
    location, total = collection.location, len(collection)
    facts = {"collection": location, "written": n, "documents": total}
    text = f"{location}: {n} documents written, {total} in total"
    if seconds is not None:
        method, bits = type(collection.hasher).__name__, collection.hasher.n_bits
        facts |= {"method": method, "bits": bits, "seconds": round(seconds, 1)}
        text = (
            f"{location}: {total} documents, codes of {bits} bits ({method}), {facts['seconds']} s\n"
            f'ask it: boltzhash search {shlex.quote(location)} "…"'
            f"{' --features QUERY.npy' if options.features is not None else ''}"
        )
    if skipped is not None:
        facts.update(skipped.report())
    return report(options, facts, text)
