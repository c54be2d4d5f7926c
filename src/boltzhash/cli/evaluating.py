"""``boltzhash evaluate``: its arguments, and what it does."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from boltzhash.cli.arguments import add_collection, add_json
from boltzhash.cli.opening import opened
from boltzhash.cli.reporting import report, say

if TYPE_CHECKING:
    from boltzhash.collection import Collection
    from boltzhash.metrics.asking import Way

HITS = 100  # per question
_BEIR_ID = "_id"
_BATCH = 1000  # documents looked up at a time
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # as a string, one that an id may be


def add_parsers(subparsers: Any) -> None:
    """Hook the command into the command line."""
    parser = subparsers.add_parser(
        "evaluate",
        help="measure how good a collection's codes or answers are",
        description="Without questions and labels: how far the codes of a collection agree on what is "
        "near to the two halves of its documents, and, with --bits or --method, which length or method "
        "agrees best. With questions and judged documents: ask every question in each way the "
        "collection can be searched, and measure nDCG@10, recall@100, MRR and MAP. All with 95 % "
        "intervals.",
    )
    add_collection(parser)
    _add_codes(parser.add_argument_group("codes"))
    _add_answers(parser.add_argument_group("answers to questions"))
    help_ = f"hits per question, or that --labels looks at ({HITS})"
    parser.add_argument("-k", type=int, default=HITS, help=help_)
    add_json(parser)
    parser.set_defaults(run=evaluate)


def _add_codes(group: Any) -> None:
    group.add_argument(
        "--labels",
        metavar="FIELD",
        help="metadata field with a label or a list of labels: also measure by it the precision of the "
        "nearest",
    )
    group.add_argument(
        "--bits",
        type=_lengths,
        metavar="LENGTHS",
        help="such as 16,32,64,128: fit a model of each length, with the settings of the collection's "
        "own, on nine tenths of the documents (all but 1,000 of many), and compare them on the others",
    )
    group.add_argument(
        "--method",
        dest="methods",
        type=_names,
        metavar="NAMES",
        help="such as SemanticHasher,ITQ: the same for methods; see `boltzhash methods`",
    )


def _add_answers(group: Any) -> None:
    group.add_argument(
        "--queries",
        dest="questions",  # "queries" would take what stands behind the options
        metavar="JSONL",
        help='questions, one per line: {"id" or "_id": ..., "text": ...}; in BEIR\'s layout',
    )
    group.add_argument(
        "--qrels",
        metavar="TSV",
        help="judged documents: query, document, grade; or TREC's four columns",
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _lengths(text: str) -> list[int]:
    try:
        return [int(length) for length in _names(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected lengths of codes such as 16,32,64, got {text!r}"
        ) from None


def evaluate(options: argparse.Namespace) -> int:
    """Measure answers if there are questions, else codes."""
    if options.questions is None and options.qrels is None:
        return _evaluate_codes(options)
    for name, given in (("--queries", options.questions), ("--qrels", options.qrels)):
        if given is None:
            raise ValueError(
                f"{name} is missing: questions and their judged documents come together; without both, "
                "codes are measured"
            )
    for name in ("labels", "bits", "method"):
        if getattr(options, "methods" if name == "method" else name) is not None:
            raise ValueError(
                f"--{name} measures codes: leave it out, or leave out --queries and --qrels"
            )
    return _evaluate_answers(options)


def _evaluate_codes(options: argparse.Namespace) -> int:
    from boltzhash.metrics import CodesReport, compare_hashers, evaluate_codes, variants
    from boltzhash.metrics.own_texts import check_has_halves, documents_of
    from boltzhash.progress import counted, heartbeat

    if options.k != HITS and options.labels is None:
        raise ValueError("-k is for --labels, or for --queries and --qrels: leave it out")
    found: CodesReport
    with opened(options.collection) as collection, heartbeat("evaluating"):
        facts = {"collection": collection.location, "documents": len(collection)}
        if options.bits is None and options.methods is None:
            found = evaluate_codes(collection, options.labels, top=options.k)
        else:
            check_has_halves(collection)
            hashers = variants(collection.hasher, options.bits or (), methods=options.methods or ())
            texts, values = documents_of(collection, options.labels)
            found = compare_hashers(
                counted(hashers, "fitting", "models", len(hashers)),
                texts,
                labels=values if options.labels is not None else None,
                field=options.labels or "",
                top=options.k,
            )
    return report(options, {**facts, **found.as_json()}, str(found))


def _evaluate_answers(options: argparse.Namespace) -> int:
    from boltzhash.corpus.judgements import read_judgements, read_questions
    from boltzhash.metrics.asking import evaluate_answers, ways_of_searching
    from boltzhash.progress import progress

    questions, judgements = read_questions(options.questions), read_judgements(options.qrels)
    with opened(options.collection) as collection:
        missing = _missing(collection, [judgements.get(id_, {}) for id_ in questions])
        if collection.hasher.n_feature_columns is not None:
            say(
                f"{collection.location} makes codes from vectors, which the questions do not have: they "
                "are asked by words alone"
            )
        with progress("asking", "searches") as bar:
            ways = {n: _counted(way, bar) for n, way in ways_of_searching(collection).items()}
            answers = evaluate_answers(ways, questions, judgements=judgements, k=options.k)
        facts = {"collection": collection.location, "documents": len(collection), "k": options.k}
    found = replace(answers, missing_documents=missing)
    return report(options, {**facts, **found.as_json()}, str(found))


def _counted(way: Way, bar: Any) -> Way:
    def search(text: str, k: int) -> Sequence[str | int]:
        bar.update()
        return way(text, k)

    return search


def _missing(collection: Collection, judged: list[dict[str, int]]) -> int:
    """How many relevant documents are not in the collection, of which at least one must be."""
    relevant = {id_ for grades in judged for id_, grade in grades.items() if grade > 0}
    there = set(_found(collection, relevant))
    if relevant and not there:
        own = next((f"such as {document.id!r}" for document in collection), "it is empty")
        raise ValueError(
            f"no relevant document is in the collection: the judgements name ids such as "
            f"{min(relevant)!r}, {collection.location} has {len(collection)} documents ({own}); if "
            "its corpus keeps ids in another field, index it with --id-field"
        )
    return len(relevant - there)


def _found(collection: Collection, ids: Iterable[str]) -> Iterator[str]:
    """Those of the ids that the collection has, as strings or as integers."""
    rest = iter(ids)
    while batch := list(islice(rest, _BATCH)):
        numbers = [int(id_) for id_ in batch if _INTEGER.fullmatch(id_)]
        with collection.snapshot() as now:
            found = now.find([*batch, *numbers])
        for id_, coded in found.items():
            _check_own_id(id_, coded.document.metadata or {})
            yield str(id_)


def _check_own_id(id_: str | int, metadata: dict[str, object]) -> None:
    """Refuse row numbers in the place of BEIR's ids: figures would be wrong, and look right.

    >>> _check_own_id(7, {"_id": "8"})
    Traceback (most recent call last):
    ...
    ValueError: document 7 of the collection has '8' in its field '_id', which judgements in BEIR's \
layout mean: index the corpus with --id-field _id
    """
    own = metadata.get(_BEIR_ID)
    if isinstance(own, str | int) and str(own) != str(id_):
        raise ValueError(
            f"document {id_!r} of the collection has {own!r} in its field {_BEIR_ID!r}, which "
            f"judgements in BEIR's layout mean: index the corpus with --id-field {_BEIR_ID}"
        )
