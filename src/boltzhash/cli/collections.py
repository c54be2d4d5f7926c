"""The commands that work on collections: their arguments, and what they do."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boltzhash.cli.hashing import OK, say
from boltzhash.search.finder import Answer, Found

if TYPE_CHECKING:
    from boltzhash.collection import Collection, Matches
    from boltzhash.corpus import Document


def add_collection_parsers(
    subparsers: Any,
    add_corpus_arguments: Callable[[argparse.ArgumentParser], None],
    add_json: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Hook the commands into the command line."""
    parser = subparsers.add_parser(
        "index",
        help="make a collection of a corpus",
        description="Make a collection of all documents of a corpus, with a copy of the model in it. "
        "The fields of a record beside text and id become metadata. An interrupted index goes on "
        "where it stopped when the same command runs again.",
    )
    parser.add_argument("model", metavar="MODEL", help="folder written by fit")
    add_corpus_arguments(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="COLLECTION", help="folder to make"
    )
    _add_metadata(parser)
    add_json(parser)
    parser.set_defaults(run=index)

    parser = subparsers.add_parser(
        "add",
        help="add a corpus to a collection",
        description="Add the documents of a corpus. An interrupted add goes on where it stopped "
        "when the same command runs again.",
    )
    _add_collection(parser)
    add_corpus_arguments(parser)
    parser.add_argument(
        "--upsert", action="store_true", help="overwrite documents whose id is there already"
    )
    _add_metadata(parser)
    add_json(parser)
    parser.set_defaults(run=add)

    parser = subparsers.add_parser(
        "delete", help="delete documents from a collection", description="Delete documents by id."
    )
    _add_collection(parser)
    parser.add_argument(
        "queries",  # named so that they may also stand behind options
        metavar="ID",
        nargs="*",
        help="ids; none: one a line from stdin. 7 is the integer, or the string where there is no "
        "such integer; '\"7\"' is the string",
    )
    add_json(parser)
    parser.set_defaults(run=delete)

    parser = subparsers.add_parser(
        "duplicates",
        help="find near-duplicates in a collection",
        description="Print all groups of documents linked by steps of at most --radius bits, a "
        "group a line, ids separated by tabs.",
    )
    _add_collection(parser)
    parser.add_argument("--radius", type=int, required=True, help="bits in which codes may differ")
    add_json(parser)
    parser.set_defaults(run=duplicates)

    parser = subparsers.add_parser(
        "stats",
        help="what a collection holds and costs",
        description="Documents, model, and bytes, in all and a document.",
    )
    _add_collection(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="also read everything and compare it with its checksums",
    )
    add_json(parser)
    parser.set_defaults(run=stats)

    parser = subparsers.add_parser(
        "rehash",
        help="go over to another model",
        description="Hash all documents of a collection with another model. Until that is done, "
        "searches use the old codes. An interrupted rehash goes on where it stopped.",
    )
    _add_collection(parser)
    parser.add_argument("model", metavar="MODEL", help="folder written by fit")
    add_json(parser)
    parser.set_defaults(run=rehash)

    parser = subparsers.add_parser(
        "backup",
        help="copy a collection, also while it is written",
        description="Copy the last committed state of a collection to a new folder.",
    )
    _add_collection(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="folder to make")
    add_json(parser)
    parser.set_defaults(run=backup)

    parser = subparsers.add_parser(
        "export",
        help="write the documents of a collection as JSONL",
        description="Write id, text and metadata of every document, one JSON object a line.",
    )
    _add_collection(parser)
    parser.add_argument("-o", "--output", required=True, metavar="JSONL", help="file to write")
    add_json(parser)
    parser.set_defaults(run=export)


def add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--where",
        type=_json_object,
        metavar="JSON",
        help='filter a collection by metadata, e.g. \'{"year": {">=": 2020}, "lang": ["de", "en"]}\'',
    )


def is_collection(path: str) -> bool:
    from boltzhash.collection.sqlite.database import DATABASE

    return (Path(path) / DATABASE).is_file()


def index(options: argparse.Namespace) -> int:
    from boltzhash.collection import Collection
    from boltzhash.hashers import load

    name = f"index {options.corpus}"
    hasher = load(options.model)
    corpus = _documents(options)  # before a folder is made: the corpus may not be there
    make = Collection.open if is_collection(options.output) else Collection.create
    with make(options.output, hasher) as collection:
        unfinished = collection.unfinished()
        if unfinished is None and len(collection):
            raise FileExistsError(
                f"{options.output} is a collection already: add to it with `boltzhash add`"
            )
        if unfinished is not None and unfinished["name"] != name:
            raise ValueError(
                f"{options.output} is unfinished: run `{unfinished['name']}` again, not `{name}`"
            )
        if unfinished is not None:
            _say_where_it_goes_on(unfinished)
        added = collection.add_resumably(_progress(corpus, options, "indexing"), name)
        unknown = collection.stats()["no_known_word"]
        if unknown:
            say(
                f"{unknown} documents have no word that the model knows; they share the code of the "
                "empty document"
            )
        return _report_written(collection, options, added)


def add(options: argparse.Namespace) -> int:
    name = f"add {options.corpus}"
    with _opened(options) as collection:
        documents = _documents(options)
        if options.upsert:
            written = collection.upsert(_progress(documents, options, "writing"))
            return _report_written(collection, options, written)
        unfinished = collection.unfinished()
        if unfinished is not None and unfinished["name"] == name:
            _say_where_it_goes_on(unfinished)
        elif unfinished is not None:
            say(
                f"`{unfinished['name']}` was interrupted and can now no longer go on where it stopped"
            )
        written = collection.add_resumably(_progress(documents, options, "adding"), name)
        return _report_written(collection, options, written)


def delete(options: argparse.Namespace) -> int:
    given = options.queries or [line.strip() for line in sys.stdin or () if line.strip()]
    with _opened(options) as collection:
        ids = [_id(text, collection) for text in given]
        deleted = collection.delete(ids)
        report = {
            "deleted": deleted,
            "not_there": len(set(ids)) - deleted,
            "documents": len(collection),
        }
    not_there = f"; {report['not_there']} ids were not there" if report["not_there"] else ""
    return _report(
        options, report, f"deleted {deleted} documents, {report['documents']} are left{not_there}"
    )


def names_collection(options: argparse.Namespace) -> bool:
    """Whether ``search`` was given a collection, alone or behind a model that must then be its own."""
    options.hasher = None
    if is_collection(options.model):
        options.collection = options.model
        options.queries = [*filter(None, [options.codes]), *options.queries]
        return True
    if options.codes is None or not is_collection(options.codes):
        return False
    from boltzhash.hashers import load

    options.collection, options.hasher = options.codes, load(options.model)
    return True


def search(options: argparse.Namespace) -> int:
    """``boltzhash search`` in a collection."""
    if options.corpus is not None:
        raise ValueError("--corpus is for a folder of codes: a collection has its texts")
    if options.candidates < 1:
        raise ValueError(f"--candidates must be at least 1, got {options.candidates}")
    rerank = options.candidates if options.rerank else False
    queries = options.queries or [line.strip() for line in sys.stdin or () if line.strip()]
    if not queries:
        say("no query came on standard input")
    with _opened(options) as collection:
        for number, query in enumerate(queries):
            matches = collection.search(query, options.k, where=options.where, rerank=rerank)
            answer = _answer(query, matches, collection)
            if options.json:
                print(json.dumps(answer.as_json(), ensure_ascii=False))
            else:
                print(("\n" if number else "") + str(answer))
    return OK


def duplicates(options: argparse.Namespace) -> int:
    with _opened(options) as collection:
        groups = collection.duplicates(options.radius)
    for group in groups:
        print(json.dumps(group, ensure_ascii=False) if options.json else "\t".join(map(str, group)))
    if not options.json:
        n_extra = sum(len(group) - 1 for group in groups)
        say(f"{len(groups)} groups; without repetitions there would be {n_extra} documents fewer")
    return OK


def stats(options: argparse.Namespace) -> int:
    with _opened(options) as collection:
        if options.check:
            collection.check()
        report = collection.stats()
    lines = [
        f"{report['documents']} documents, {report['bits']} bits ({report['method']}), "
        f"generation {report['generation']}"
    ]
    for name, size in report["bytes"].items():
        each = report["bytes_per_document"].get(name)
        lines.append(f"{name:<12} {size:>14} bytes" + (f" {each:>10} a document" if each else ""))
    if report["unfinished"]:
        lines.append(f"unfinished: {report['unfinished']['name']}")
    if report["rehash"]:
        lines.append(f"rehash under way: {report['rehash']['documents']} documents done")
    return _report(options, report, "\n".join(lines))


def rehash(options: argparse.Namespace) -> int:
    from tqdm import tqdm

    from boltzhash.hashers import load

    hasher = load(options.model)
    with (
        _opened(options) as collection,
        tqdm(total=len(collection), desc="rehashing", unit=" documents", disable=None) as bar,
    ):
        collection.rehash(hasher, on_batch=lambda done, _: bar.update(done - bar.n))
        report = {"documents": len(collection), "bits": hasher.n_bits}
    return _report(
        options, report, f"{report['documents']} documents have new codes of {report['bits']} bits"
    )


def backup(options: argparse.Namespace) -> int:
    with _opened(options) as collection:
        collection.backup(options.output)
    return _report(options, {"backup": options.output}, f"wrote {options.output}")


def export(options: argparse.Namespace) -> int:
    with _opened(options) as collection:
        n = collection.export(options.output)
    report = {"export": options.output, "documents": n}
    return _report(options, report, f"wrote {options.output}: {n} documents")


def _add_collection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("collection", metavar="COLLECTION", help="folder made by index")


def _add_metadata(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metadata",
        metavar="FIELDS",
        help="which fields become metadata, separated by commas (all but text and id)",
    )


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text!r}: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text!r}")
    return value


def _say_where_it_goes_on(unfinished: dict[str, Any]) -> None:
    say(f"going on behind the {unfinished['done']} documents that are there")


def _opened(options: argparse.Namespace) -> Collection:
    from boltzhash.collection import Collection

    return Collection.open(options.collection, getattr(options, "hasher", None))


def _documents(options: argparse.Namespace) -> Iterator[Document]:
    from boltzhash.corpus import read_corpus

    chosen = options.metadata
    return read_corpus(
        options.corpus,
        text_field=options.text_field,
        id_field=options.id_field,
        encoding=options.encoding,
        metadata=True if chosen is None else [name for name in chosen.split(",") if name],
    )


def _progress(
    documents: Iterable[Document], options: argparse.Namespace, doing: str
) -> Iterator[Document]:
    """The documents, counted on a terminal; those of a file beforehand, to tell the time left."""
    from tqdm import tqdm

    total = None
    if sys.stderr is not None and sys.stderr.isatty() and options.corpus != "-":
        counted = tqdm(_documents(options), desc="counting", unit=" documents", leave=False)
        total = sum(1 for _ in counted)
    return iter(tqdm(documents, desc=doing, unit=" documents", total=total, disable=None))


def _id(text: str, collection: Collection) -> str | int:
    """The id that was meant: JSON where it is an id in the collection, else the text as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) or value in collection else text


def _answer(query: str, matches: Matches, collection: Collection) -> Answer:
    from boltzhash.search import snippet

    known = collection.hasher.known_word_counts(d.text for d in matches.documents)
    found = [
        Found(
            rank,
            match.distance,
            match.id,
            snippet(match.document.text, query),
            None if is_known else True,
        )
        for rank, (match, is_known) in enumerate(zip(matches, known, strict=True), start=1)
    ]
    return Answer(query, matches.known_words or 0, found)


def _report_written(collection: Collection, options: argparse.Namespace, n: int) -> int:
    report = {"collection": str(collection.path), "written": n, "documents": len(collection)}
    return _report(
        options,
        report,
        f"{collection.path}: {n} documents written, {report['documents']} in all",
    )


def _report(options: argparse.Namespace, report: dict[str, Any], text: str) -> int:
    print(json.dumps(report, ensure_ascii=False) if options.json else text)
    return OK
