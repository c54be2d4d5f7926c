"""The commands that make and maintain collections: their arguments, and what they do."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from typing import TYPE_CHECKING, Any

from boltzhash.cli import duplicates
from boltzhash.cli.arguments import (
    COLLECTION,
    add_collection,
    add_corpus,
    add_features,
    add_json,
    add_metadata,
    add_model,
    count_documents,
    read_documents,
    read_queries,
    read_vectors,
    with_fields_told,
    with_progress,
)
from boltzhash.cli.learning import add_learning, opened_or_learned, refuse_learning
from boltzhash.cli.opening import (
    is_collection,
    is_model_or_codes,
    meant_id,
    opened,
    opened_or_created,
)
from boltzhash.cli.reporting import NOTHING_KEPT, OK, RESUMES, interruption_says, report, say
from boltzhash.cli.skipping import SkippedRecords, skipped_records
from boltzhash.errors import ChangedDocumentsError, CollectionError

if TYPE_CHECKING:
    from boltzhash.collection import Collection
    from boltzhash.collection.drift import Drift
    from boltzhash.hashers import Hasher


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

    parser = subparsers.add_parser(
        "delete", help="delete documents from a collection", description="Delete documents by id."
    )
    add_collection(parser)
    parser.add_argument(
        "queries",  # named so that they may also follow options
        metavar="ID",
        nargs="*",
        help="ids; if none are given, one per line from stdin. 7 is the integer, or the string if there "
        "is no such integer; '\"7\"' is the string",
    )
    add_json(parser)
    parser.set_defaults(run=delete)

    duplicates.add_parser(subparsers)

    parser = subparsers.add_parser(
        "stats",
        help="what a collection holds and costs",
        description="Documents, model, and bytes, in total and per document; how far the documents "
        "added last are from those that the model was fitted on, and whether fitting again is worth it.",
    )
    add_collection(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="also read everything and compare it with its checksums",
    )
    add_json(parser)
    parser.set_defaults(run=stats)

    parser = subparsers.add_parser(
        "rehash",
        help="switch to another model",
        description="Hash all documents of a collection with another model. Until that is done, "
        "searches use the old codes. An interrupted rehash resumes where it stopped.",
    )
    add_collection(parser)
    add_model(parser)
    add_json(parser)
    parser.set_defaults(run=rehash)

    parser = subparsers.add_parser(
        "backup",
        help="copy a collection, even while it is being written",
        description="Copy the last committed state of a collection to a new folder.",
    )
    add_collection(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="folder to make")
    add_json(parser)
    parser.set_defaults(run=backup)

    parser = subparsers.add_parser(
        "export",
        help="write the documents of a collection as JSONL, or its codes",
        description="Write id, text and metadata of every document, one JSON object per line. With "
        "--codes, ids and packed codes: a folder as encode writes it (NumPy), or a Parquet file if its "
        "name ends in .parquet.",
    )
    add_collection(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="where to write; - is standard output"
    )
    parser.add_argument("--codes", action="store_true", help="the codes instead of the documents")
    add_json(parser)
    parser.set_defaults(run=export)


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
        if options.start_over and collection.unfinished() is not None:
            collection.delete(document.id for document in collection)
            collection.forget_unfinished()
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
        if options.model is not None:
            return _report_written(collection, options, added, skipped)
        return _report_learned(collection, options, added, skipped, time.monotonic() - start)


def add(options: argparse.Namespace) -> int:
    name = f"add {_named_input(options)}"
    with opened(options.collection) as collection:
        skipped = skipped_records(options, options.collection)
        corpus = with_fields_told(read_documents(options, skipped), options)
        vectors = read_vectors(options)
        total = count_documents(options, vectors)
        unfinished = collection.unfinished()
        goes_on = unfinished is not None and unfinished["name"] == name
        if options.upsert:
            with interruption_says(lambda: "what was written stays; run the same command again"):
                shown = with_progress(corpus, "writing", total)
                written = collection.upsert(shown, features=vectors)
            if goes_on:
                collection.forget_unfinished()
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


def delete(options: argparse.Namespace) -> int:
    given = read_queries(options)
    with opened(options.collection) as collection:
        ids = [meant_id(text, collection) for text in given]
        deleted = collection.delete(ids)
        facts = {
            "deleted": deleted,
            "not_there": len(set(ids)) - deleted,
            "documents": len(collection),
        }
    not_there = f"; {facts['not_there']} ids were not there" if facts["not_there"] else ""
    return report(
        options, facts, f"deleted {deleted} documents, {facts['documents']} are left{not_there}"
    )


def stats(options: argparse.Namespace) -> int:
    with opened(options.collection) as collection:
        if options.check:
            collection.check()
        facts = collection.stats()
        drift = drift_of(collection)
        about_drift = drift_lines(drift, collection)
    facts["drift"] = None if isinstance(drift, str) else drift.as_json()
    made_from = f" from {facts['features']} features" if facts["features"] else ""
    passages = ""
    if facts["passages"]:
        passages = " in {passages} passages of about {words} words".format(**facts["passages"])
    lines = [
        f"{facts['documents']} documents{passages}, {facts['bits']} bits "
        f"({facts['method']}{made_from}), generation {facts['generation']}"
    ]
    for name, size in facts["bytes"].items():
        each = facts["bytes_per_document"].get(name)
        lines.append(f"{name:<12} {size:>14} bytes" + (f" {each:>10} per document" if each else ""))
    if facts["unfinished"]:
        lines.append(f"unfinished: {facts['unfinished']['name']}")
    if facts["rehash"]:
        lines.append(f"rehash under way: {facts['rehash']['documents']} documents done")
    lines += about_drift
    if options.check:
        facts["checked"] = True
        lines.append("checked: " + what_was_checked(options.collection, facts))
    return report(options, facts, "\n".join(lines))


def drift_of(collection: Collection) -> Drift | str:
    """How far a collection is from what its model was fitted on, or why nobody knows."""
    try:
        return collection.drift() or "there are no documents"
    except CollectionError as error:  # stats says what it can of a damaged collection
        return str(error)


def drift_lines(drift: Drift | str, collection: Collection) -> list[str]:
    """What :func:`drift_of` has found, for people; the last line says whether to fit again."""
    from boltzhash.collection.drift import ENOUGH

    if isinstance(drift, str):
        return [f"drift: not known, since {drift}"]
    lines = []
    if drift.unknown_words is not None and drift.unknown_words_expected is not None:
        lines.append(
            f"unknown words: {drift.unknown_words:.1%} in the latest {drift.documents} documents, "
            f"{drift.unknown_words_expected:.1%} expected by the model"
        )
    lines.append(
        f"bits: balance {drift.bit_balance:.2f}, {drift.bit_balance_expected:.2f} in what the model was "
        f"fitted on; shares moved by {drift.bit_shift:.3f}, {drift.bit_shift_by_chance:.3f} by chance"
    )
    if drift.is_worth_fitting is None:
        why = (
            "are too few" if drift.documents < ENOUGH else "have codes that are not made from words"
        )
        lines.append(f"fitting again: cannot be told, {drift.documents} documents {why}")
    elif not drift.is_worth_fitting:
        lines.append("fitting again: not worth it yet")
    else:
        place = shlex.quote(collection.location)
        lines.append(
            f"fitting again: worth it. boltzhash export {place} -o all.jsonl; "
            f"{_fit_again(collection.hasher)}; boltzhash rehash {place} newer"
        )
    return lines


def _fit_again(hasher: Hasher) -> str:
    """The command that fits a model of the same method, length and language."""
    options = f"--method {type(hasher).__name__} --bits {hasher.n_bits}"
    options += f" --language {hasher.language or 'none'}{' --stem' if hasher.stem else ''}"
    return f"boltzhash fit all.jsonl {options} -o newer"


def what_was_checked(location: str, facts: dict[str, Any]) -> str:
    """What a check that found no damage says of a collection."""
    from boltzhash.collection.engines import parse_location
    from boltzhash.collection.locations import FOLDER

    if facts["features"] is None or parse_location(location).kind == FOLDER:
        return "everything is as it was written"
    return (
        "documents are as they were written; codes were counted, but not made again: their vectors are "
        "not kept"
    )


def rehash(options: argparse.Namespace) -> int:
    from boltzhash.hashers import load
    from boltzhash.progress import progress

    hasher = load(options.model)
    with (
        interruption_says(lambda: RESUMES),
        opened(options.collection) as collection,
        progress("rehashing", "documents", total=len(collection)) as bar,
    ):
        collection.rehash(hasher, on_batch=lambda done, _: bar.update(done - bar.n))
        facts = {"documents": len(collection), "bits": hasher.n_bits}
    return report(
        options, facts, f"{facts['documents']} documents have new codes of {facts['bits']} bits"
    )


def backup(options: argparse.Namespace) -> int:
    with opened(options.collection) as collection:
        collection.backup(options.output)
    return report(options, {"backup": options.output}, f"wrote {options.output}")


def export(options: argparse.Namespace) -> int:
    with opened(options.collection) as collection:
        if options.output == "-":
            if options.codes or options.json:
                raise ValueError("-o - writes documents: leave out --codes and --json")
            collection.export(sys.stdout)
            return OK
        write = collection.export_codes if options.codes else collection.export
        n = write(options.output)
    facts = {"export": options.output, "documents": n}
    return report(options, facts, f"wrote {options.output}: {n} documents")


def _named_input(options: argparse.Namespace) -> str:
    """The corpus and its vectors as they were typed: what an interrupted command is known by."""
    vectors = [] if options.features is None else ["--features", options.features]
    return shlex.join([*options.corpus, *vectors])


def _check_new_or_resumed(collection: Collection, name: str, passages: int | None) -> None:
    """Refuse to index into what is finished, or was begun by another command or with other passages."""
    unfinished = collection.unfinished()
    if unfinished is None and len(collection):
        raise FileExistsError(
            f"{collection.location} is already a collection: add to it with `boltzhash add`"
        )
    if unfinished is not None and unfinished["name"] != name:
        raise ValueError(
            f"{collection.location} is unfinished: run `{unfinished['name']}` again, not `{name}`, or "
            "start over with --start-over"
        )
    if passages not in (None, collection.passages):
        was = (
            "out --passages"
            if collection.passages is None
            else f" --passages {collection.passages}"
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
        unfinished = collection.unfinished()
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
    return opened_or_created(options.output, hasher, options.passages)


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
    collection: Collection, options: argparse.Namespace, n: int, skipped: SkippedRecords | None
) -> int:
    facts = {"collection": collection.location, "written": n, "documents": len(collection)}
    if skipped is not None:
        facts.update(skipped.report())
    return report(
        options,
        facts,
        f"{collection.location}: {n} documents written, {facts['documents']} in total",
    )


def _report_learned(
    collection: Collection,
    options: argparse.Namespace,
    n: int,
    skipped: SkippedRecords | None,
    seconds: float,
) -> int:
    facts = {
        "collection": collection.location,
        "written": n,
        "documents": len(collection),
        "method": type(collection.hasher).__name__,
        "bits": collection.hasher.n_bits,
        "seconds": round(seconds, 1),
    }
    if skipped is not None:
        facts.update(skipped.report())
    return report(
        options,
        facts,
        f"{collection.location}: {facts['documents']} documents, codes of {facts['bits']} bits "
        f"({facts['method']}), {facts['seconds']} s\n"
        f'ask it: boltzhash search {shlex.quote(collection.location)} "…"'
        f"{' --features QUERY.npy' if options.features is not None else ''}",
    )
