"""The command that finds near-duplicates, and deletes them if it is told to twice."""

from __future__ import annotations

import argparse
import json
from math import floor
from typing import TYPE_CHECKING, Any

from boltzhash.cli.arguments import add_collection, add_json
from boltzhash.cli.opening import opened
from boltzhash.cli.reporting import OK, say

if TYPE_CHECKING:
    from boltzhash.collection import Collection, DuplicateGroup


def add_parser(subparsers: Any) -> None:
    """Hook the command into the command line."""
    parser = subparsers.add_parser(
        "duplicates",
        help="find near-duplicates in a collection, and delete them",
        description="Print the documents whose texts are near-duplicates of one that is kept, one per "
        "line: its id, its similarity and the id that is kept, separated by tabs. Similarity is the "
        "share of word trigrams that two texts have in common.",
    )
    add_collection(parser)
    parser.add_argument(
        "--min-similarity",
        type=float,
        default=0.8,
        metavar="SHARE",
        help="above 0, up to 1: the same words in the same order (default: 0.8)",
    )
    parser.add_argument(
        "--keep",
        choices=["first", "longest", "newest"],
        default="first",
        help="which one of several is kept (default: the one that was inserted first)",
    )
    parser.add_argument(
        "--delete",
        action="store_true",
        help="delete all but those that are kept; without --yes it is only said how many that would be",
    )
    parser.add_argument("--yes", action="store_true", help="with --delete: do delete them")
    add_json(parser)
    parser.set_defaults(run=duplicates)


def duplicates(options: argparse.Namespace) -> int:
    if options.yes and not options.delete:
        raise ValueError("--yes confirms --delete: give both, or neither")
    with opened(options.collection) as collection:
        groups = _found(collection, options)
        n_left = len(collection)
    for group in groups:
        _print_group(group, options)
    n_extra = sum(len(group.duplicates) for group in groups)
    if not options.json:
        say(f"{len(groups)} groups; {_summary(options, n_extra, n_left)}")
    elif options.delete:
        done = (
            {"deleted": n_extra, "documents": n_left} if options.yes else {"would_delete": n_extra}
        )
        print(json.dumps(done))
    return OK


def _found(collection: Collection, options: argparse.Namespace) -> list[DuplicateGroup]:
    from tqdm import tqdm

    with (
        collection.snapshot() as now,
        tqdm(total=len(now), desc="reading", unit=" documents", disable=None) as bar,
    ):
        find = collection.delete_duplicates if options.yes else now.duplicates
        return find(
            options.min_similarity,
            keep=options.keep,
            on_batch=lambda done, _: bar.update(done - bar.n),
        )


def _print_group(group: DuplicateGroup, options: argparse.Namespace) -> None:
    if options.json:
        members = [{"id": id_, "similarity": value} for id_, value in group.duplicates]
        print(json.dumps({"kept": group.kept, "duplicates": members}, ensure_ascii=False))
        return
    for id_, value in group.duplicates:  # rounded down: 1.000 is said of the same words only
        print(id_, f"{floor(1000 * value + 1e-9) / 1000:.3f}", group.kept, sep="\t")


def _summary(options: argparse.Namespace, n_extra: int, n_left: int) -> str:
    if not options.delete:
        return f"{n_extra} documents are near-duplicates of one that is kept"
    if not options.yes:
        return f"would delete {n_extra} documents: add --yes to delete them"
    return f"deleted {n_extra} documents, {n_left} are left"
