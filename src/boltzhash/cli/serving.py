"""``boltzhash serve`` and ``boltzhash map``: their arguments, and what they do."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from boltzhash.cli.hashing import OK, say


def add_server_parsers(subparsers: Any) -> None:
    """Hook the commands into the command line."""
    parser = subparsers.add_parser(
        "serve",
        help="search a collection over HTTP, and on a page",
        description="Serve a collection: an HTTP API and a page to search in. Adding and deleting "
        "need a key, which is taken from the environment (BOLTZHASH_API_KEY); without one they are "
        "off.",
    )
    parser.add_argument("collection", metavar="COLLECTION", help="folder made by index")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (8000)")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (1)")
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="a site whose pages may use the service, or the name under which a proxy shows it, such "
        "as https://search.example.org; may be given several times",
    )
    parser.set_defaults(run=serve)

    parser = subparsers.add_parser(
        "map",
        help="make the map of a collection that the page shows",
        description="Give each document a point on a map, near those with near codes (UMAP on at "
        "most 100,000 codes). The points are kept in the collection's folder; documents that come "
        "later are put among their nearest.",
    )
    parser.add_argument("collection", metavar="COLLECTION", help="folder made by index")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same map (0)")
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    parser.set_defaults(run=make_map)


def serve(options: argparse.Namespace) -> int:
    from boltzhash.cli.collections import is_collection
    from boltzhash.errors import needs_extra
    from boltzhash.server.metrics import share_between_processes
    from boltzhash.server.settings import KEY_VARIABLE, Settings, is_loopback

    if options.workers < 1:
        raise ValueError(f"--workers must be at least 1, got {options.workers}")
    if not 0 <= options.port <= 65535:
        raise ValueError(f"--port must be between 0 and 65535, got {options.port}")
    settings = Settings(
        Path(options.collection).absolute(),
        tuple(options.allow_origin),
        is_loopback(options.host),
        os.environ.get(KEY_VARIABLE),
    )
    if not is_collection(options.collection):
        say(f"{options.collection} is no collection (yet): the page says how to make one")
    with share_between_processes():
        try:
            from boltzhash.server.run import run
        except ModuleNotFoundError:
            raise needs_extra("serve", "FastAPI and uvicorn", "serve") from None
        return run(settings, options.host, options.port, options.workers)


def make_map(options: argparse.Namespace) -> int:
    from boltzhash.server.map_file import fit_map, write_map
    from boltzhash.server.reader import Reader

    with Reader.open(options.collection) as reader:
        with reader.one_generation() as state:
            rows, model = reader.rows(), state.model
        shows_progress = sys.stderr is not None and sys.stderr.isatty()
        stored = fit_map(rows, model, seed=options.seed, verbose=shows_progress)
        write_map(reader.path, stored)
    n = len(stored.places)
    report = {"map": options.collection, "documents": n}
    print(json.dumps(report) if options.json else f"{options.collection}: a map of {n} documents")
    return OK
