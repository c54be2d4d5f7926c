"""The commands that maintain collections: their arguments, and what they do."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING, Any

from boltzhash.cli import duplicates
from boltzhash.cli.arguments import add_collection, add_json, add_model, read_queries
from boltzhash.cli.opening import meant_id, opened
from boltzhash.cli.reporting import OK, RESUMES, interruption_says, report
from boltzhash.errors import CollectionError

if TYPE_CHECKING:
    from boltzhash.collection import Snapshot
    from boltzhash.collection.drift import Drift
    from boltzhash.hashers import Hasher


def add_parsers(subparsers: Any) -> None:
    """Hook the commands into the command line."""
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
    with opened(options.collection) as collection, collection.snapshot() as now:
        if options.check:
            now.check()
        facts = now.stats()
        drift = drift_of(now)
        about_drift = drift_lines(drift, now)
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


def drift_of(collection: Snapshot) -> Drift | str:
    """How far a collection is from what its model was fitted on, or why nobody knows."""
    try:
        return collection.drift() or "there are no documents"
    except CollectionError as error:  # stats says what it can of a damaged collection
        return str(error)


def drift_lines(drift: Drift | str, collection: Snapshot) -> list[str]:
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
    options += f" --language {hasher.language or 'none'}"
    options += " --stem" if hasher.get_params()["text__stem"] else ""
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
    with opened(options.collection) as collection, collection.snapshot() as now:
        if options.output == "-":
            if options.codes or options.json:
                raise ValueError("-o - writes documents: leave out --codes and --json")
            now.export(sys.stdout)
            return OK
        write = now.export_codes if options.codes else now.export
        n = write(options.output)
    facts = {"export": options.output, "documents": n}
    return report(options, facts, f"wrote {options.output}: {n} documents")
