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

_BEIR_ID = "_id"
_BATCH = 1000  # documents looked up at a time
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # as a string, one that an id may be


def add_parsers(subparsers: Any) -> None:
    """Hook the command into the command line."""
    parser = subparsers.add_parser(
        "evaluate",
        help="measure how good a collection's answers are",
        description="Ask a collection every question in each way it can be searched, and measure the "
        "answers by judged documents: nDCG@10, recall@100, MRR and MAP, with 95 % intervals. Files in "
        "the layout of BEIR or TREC are read as they are.",
    )
    add_collection(parser)
    parser.add_argument(
        "--queries",
        dest="questions",  # "queries" would take what stands behind the options
        required=True,
        metavar="JSONL",
        help='questions, one per line: {"id" or "_id": ..., "text": ...}',
    )
    parser.add_argument(
        "--qrels",
        required=True,
        metavar="TSV",
        help="judged documents: query, document, grade; or TREC's four columns",
    )
    parser.add_argument("-k", type=int, default=100, help="hits per question (100)")
    add_json(parser)
    parser.set_defaults(run=evaluate)


def evaluate(options: argparse.Namespace) -> int:
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
            answers = evaluate_answers(ways, questions, judgements, k=options.k)
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
        for id_, coded in collection.find([*batch, *numbers]).items():
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
