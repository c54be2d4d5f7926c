"""``boltzhash card``: its arguments, and what it does."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from boltzhash.cli.arguments import add_json
from boltzhash.cli.reporting import report


def add_parsers(subparsers: Any) -> None:
    """Hook the command into the command line."""
    parser = subparsers.add_parser(
        "card",
        help="write a model card, so that a model can be given away",
        description="Write README.md into the folder of a model: what it was fitted on, its settings, "
        "its fingerprint, and how it was measured. The folder can then be uploaded to a hub as it is. "
        "No text of the corpus is in it.",
    )
    parser.add_argument("model", metavar="MODEL", help="folder written by fit")
    parser.add_argument(
        "--corpus", metavar="TEXT", help="what it was fitted on, in your words: name, source, date"
    )
    parser.add_argument(
        "--evaluation",
        metavar="FILE",
        help="how it was measured: a file with what `boltzhash evaluate` printed, or any text",
    )
    parser.add_argument("--license", metavar="NAME", help="such as mit or cc-by-4.0")
    parser.add_argument("--force", action="store_true", help="replace a card that is there")
    add_json(parser)
    parser.set_defaults(run=card)


def card(options: argparse.Namespace) -> int:
    from boltzhash.hashers.card import NAME, write_card

    path = Path(options.evaluation) if options.evaluation is not None else None
    target = Path(options.model, NAME)
    if target.exists() and not options.force:
        raise FileExistsError(f"{target} is already there: replace it with --force, or move it")
    written = write_card(
        options.model,
        corpus=options.corpus,
        evaluation=None if path is None else path.read_text(encoding="utf-8"),
        license=options.license,
        replace=options.force,
    )
    return report(options, {"card": str(written)}, f"wrote {written}")
