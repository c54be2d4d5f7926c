"""The commands that make and maintain collections: their arguments, and what they do."""

from __future__ import annotations

import argparse
import json
import shlex
import time
from typing import TYPE_CHECKING, Any

from boltzhash.cli.arguments import (
    COLLECTION,
    add_collection,
    add_corpus,
    add_json,
    add_metadata,
    add_model,
    count_on_a_terminal,
    read_documents,
    read_queries,
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
from boltzhash.cli.reporting import OK, report, say

if TYPE_CHECKING:
    from boltzhash.collection import Collection


def add_parsers(subparsers: Any) -> None:
    """Hook the commands into the command line."""
    parser = subparsers.add_parser(
        "index",
        help="make a collection of a corpus",
        description="Make a collection of all documents of a corpus, with a copy of the model in it. "
        "Without a MODEL one is learned from the corpus first. "
        "The fields of a record other than text and id become metadata. An interrupted index resumes "
        "where it stopped when the same command runs again; on a server, learning starts over.",
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        nargs="?",
        help="folder written by fit, if the codes should come from that",
    )
    add_corpus(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="COLLECTION",
        help=f"where to make it: {COLLECTION}",
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

    parser = subparsers.add_parser(
        "duplicates",
        help="find near-duplicates in a collection",
        description="Print all groups of documents linked by steps of at most --radius bits, one "
        "group per line, ids separated by tabs.",
    )
    add_collection(parser)
    parser.add_argument("--radius", type=int, required=True, help="bits in which codes may differ")
    add_json(parser)
    parser.set_defaults(run=duplicates)

    parser = subparsers.add_parser(
        "stats",
        help="what a collection holds and costs",
        description="Documents, model, and bytes, in total and per document.",
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
        help="write the documents of a collection as JSONL",
        description="Write id, text and metadata of every document, one JSON object per line.",
    )
    add_collection(parser)
    parser.add_argument("-o", "--output", required=True, metavar="JSONL", help="file to write")
    add_json(parser)
    parser.set_defaults(run=export)


def index(options: argparse.Namespace) -> int:
    _tell_model_from_corpus(options)
    start = time.monotonic()
    name = f"index {options.corpus}"
    corpus = read_documents(options)  # before a folder is made: the corpus may not be there
    with _opened_or_made(options) as collection:
        unfinished = collection.unfinished()
        if unfinished is None and len(collection):
            raise FileExistsError(
                f"{collection.location} is already a collection: add to it with `boltzhash add`"
            )
        if unfinished is not None and unfinished["name"] != name:
            raise ValueError(
                f"{collection.location} is unfinished: run `{unfinished['name']}` again, not "
                f"`{name}`"
            )
        if unfinished is not None:
            _say_where_it_resumes(unfinished)
        shown = with_progress(corpus, "indexing", count_on_a_terminal(options))
        added = collection.add_resumably(shown, name)
        unknown = collection.stats()["no_known_word"]
        if unknown:
            say(
                f"{unknown} documents have no word that the model knows; they share the code of the "
                "empty document"
            )
        if options.model is not None:
            return _report_written(collection, options, added)
        return _report_learned(collection, options, added, time.monotonic() - start)


def add(options: argparse.Namespace) -> int:
    name = f"add {options.corpus}"
    with opened(options.collection) as collection:
        corpus = read_documents(options)
        total = count_on_a_terminal(options)
        if options.upsert:
            written = collection.upsert(with_progress(corpus, "writing", total))
            return _report_written(collection, options, written)
        unfinished = collection.unfinished()
        if unfinished is not None and unfinished["name"] == name:
            _say_where_it_resumes(unfinished)
        elif unfinished is not None:
            say(f"`{unfinished['name']}` was interrupted and can no longer resume where it stopped")
        written = collection.add_resumably(with_progress(corpus, "adding", total), name)
        return _report_written(collection, options, written)


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


def duplicates(options: argparse.Namespace) -> int:
    with opened(options.collection) as collection:
        groups = collection.duplicates(options.radius)
    for group in groups:
        print(json.dumps(group, ensure_ascii=False) if options.json else "\t".join(map(str, group)))
    if not options.json:
        n_extra = sum(len(group) - 1 for group in groups)
        say(f"{len(groups)} groups; without repetitions there would be {n_extra} fewer documents")
    return OK


def stats(options: argparse.Namespace) -> int:
    with opened(options.collection) as collection:
        if options.check:
            collection.check()
        facts = collection.stats()
    lines = [
        f"{facts['documents']} documents, {facts['bits']} bits ({facts['method']}), "
        f"generation {facts['generation']}"
    ]
    for name, size in facts["bytes"].items():
        each = facts["bytes_per_document"].get(name)
        lines.append(f"{name:<12} {size:>14} bytes" + (f" {each:>10} per document" if each else ""))
    if facts["unfinished"]:
        lines.append(f"unfinished: {facts['unfinished']['name']}")
    if facts["rehash"]:
        lines.append(f"rehash under way: {facts['rehash']['documents']} documents done")
    return report(options, facts, "\n".join(lines))


def rehash(options: argparse.Namespace) -> int:
    from tqdm import tqdm

    from boltzhash.hashers import load

    hasher = load(options.model)
    with (
        opened(options.collection) as collection,
        tqdm(total=len(collection), desc="rehashing", unit=" documents", disable=None) as bar,
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
        n = collection.export(options.output)
    facts = {"export": options.output, "documents": n}
    return report(options, facts, f"wrote {options.output}: {n} documents")


def _tell_model_from_corpus(options: argparse.Namespace) -> None:
    """One argument is a corpus, two are a model and a corpus."""
    if options.queries:
        if options.model is not None or len(options.queries) > 1:
            options.usage_error(f"unrecognized arguments: {' '.join(options.queries)}")
        options.model, options.corpus = options.corpus, options.queries[0]
    if options.model is not None:
        return
    if is_model_or_codes(options.corpus):
        options.usage_error(f"{options.corpus} is not a corpus: name one after the model")
    if is_collection(options.corpus):
        raise ValueError(
            f"{options.corpus} is a collection, not a corpus: `boltzhash export` writes its documents "
            "to a file"
        )
    if options.corpus == "-":
        raise ValueError(
            "standard input can be read only once, to learn a model or to index: name a MODEL, or "
            "write it to a file first"
        )


def _opened_or_made(options: argparse.Namespace) -> Collection:
    from boltzhash.hashers import load

    if options.model is None:
        return opened_or_learned(options)
    refuse_learning(options)
    return opened_or_created(options.output, load(options.model))


def _say_where_it_resumes(unfinished: dict[str, Any]) -> None:
    say(f"resuming after the {unfinished['done']} documents that are already there")


def _report_written(collection: Collection, options: argparse.Namespace, n: int) -> int:
    facts = {"collection": collection.location, "written": n, "documents": len(collection)}
    return report(
        options,
        facts,
        f"{collection.location}: {n} documents written, {facts['documents']} in total",
    )


def _report_learned(
    collection: Collection, options: argparse.Namespace, n: int, seconds: float
) -> int:
    facts = {
        "collection": collection.location,
        "written": n,
        "documents": len(collection),
        "method": type(collection.hasher).__name__,
        "bits": collection.hasher.n_bits,
        "seconds": round(seconds, 1),
    }
    return report(
        options,
        facts,
        f"{collection.location}: {facts['documents']} documents, codes of {facts['bits']} bits "
        f"({facts['method']}), {facts['seconds']} s\n"
        f'ask it: boltzhash search {shlex.quote(collection.location)} "…"',
    )
