"""``boltzhash serve`` and ``boltzhash map``: their arguments, and what they do."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from boltzhash.cli.arguments import add_collection, add_json
from boltzhash.cli.opening import is_collection, opened, warn_about_password
from boltzhash.cli.reporting import FILE_ERROR, OK, report, say

HOST, PORT = "127.0.0.1", 8000


def add_parsers(subparsers: Any) -> None:
    """Hook the commands into the command line."""
    parser = subparsers.add_parser(
        "serve",
        help="search a collection over HTTP, and on a page",
        description="Serve a collection: an HTTP API and a page to search in. Adding and deleting "
        "need a key, which is taken from the environment (BOLTZHASH_API_KEY); without one they are "
        "disabled. With a key in BOLTZHASH_READ_KEY, reading needs one as well. With --mcp, tools for "
        "assistants instead, which only read.",
    )
    add_collection(parser)
    parser.add_argument(
        "--mcp",
        action="store_true",
        help="speak MCP over standard input and output instead of HTTP: an assistant starts it",
    )
    parser.add_argument("--host", default=HOST, help=f"address to listen on ({HOST})")
    parser.add_argument("--port", type=int, default=PORT, help=f"port to listen on ({PORT})")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (1)")
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="a site whose pages may use the service, or the name under which a proxy serves it, such "
        "as https://search.example.org; may be given several times",
    )
    parser.add_argument(
        "--allowed-hosts",
        action="append",
        default=[],
        metavar="NAMES",
        help="names, with commas between them, that the service answers to besides localhost and IP "
        "addresses; * is any; may be given several times",
    )
    parser.set_defaults(run=serve)

    parser = subparsers.add_parser(
        "map",
        help="make the map that the page shows of a collection",
        description="Give each document a point on a map, near those with similar codes (UMAP on at "
        "most 100,000 codes). The points are kept with the collection; documents added "
        "later are placed among their nearest.",
    )
    add_collection(parser)
    parser.add_argument("--seed", type=int, default=0, help="same seed, same map (0)")
    add_json(parser)
    parser.set_defaults(run=make_map)


def serve(options: argparse.Namespace) -> int:
    from boltzhash.collection.engines import parse_location
    from boltzhash.collection.locations import FOLDER
    from boltzhash.errors import needs_extra
    from boltzhash.server.metrics import share_between_processes
    from boltzhash.server.settings import KEY_VARIABLE, READ_KEY_VARIABLE, Settings

    if options.mcp:
        return _serve_tools(options)
    if options.workers < 1:
        raise ValueError(f"--workers must be at least 1, got {options.workers}")
    if not 0 <= options.port <= 65535:
        raise ValueError(f"--port must be between 0 and 65535, got {options.port}")
    location = parse_location(options.collection)
    warn_about_password(options.collection)
    is_folder = location.kind == FOLDER
    settings = Settings(
        str(Path(location.url).absolute()) if is_folder else options.collection,
        tuple(options.allow_origin),
        tuple(name.strip() for names in options.allowed_hosts for name in names.split(",")),
        os.environ.get(KEY_VARIABLE),
        os.environ.get(READ_KEY_VARIABLE),
    )
    if not is_collection(options.collection):
        say(f"{options.collection} is not a collection (yet): the page says how to make one")
    _check_readable(settings.collection)
    with share_between_processes():
        try:
            from boltzhash.server.run import run
        except ModuleNotFoundError:
            raise needs_extra("serve", "FastAPI and uvicorn", "serve") from None
        has_started = run(settings, options.host, options.port, options.workers, announce=say)
        return OK if has_started else FILE_ERROR


def _serve_tools(options: argparse.Namespace) -> int:
    given = {
        "--host": options.host != HOST,
        "--port": options.port != PORT,
        "--workers": options.workers != 1,
        "--allow-origin": options.allow_origin,
        "--allowed-hosts": options.allowed_hosts,
    }
    if superfluous := [name for name, is_given in given.items() if is_given]:
        raise ValueError(
            f"--mcp speaks over standard input and output: leave out {', '.join(superfluous)}"
        )
    from boltzhash.server.assistants import serve_tools

    warn_about_password(options.collection)
    serve_tools(options.collection)
    return OK


def _check_readable(location: str) -> None:
    """Refuse to start with a collection that is damaged; one that is not there yet may come."""
    from boltzhash.collection import Collection
    from boltzhash.errors import (
        CollectionBusyError,
        CollectionError,
        ModelError,
        NoSuchCollectionError,
    )

    try:
        Collection.open(location).close()
    except (NoSuchCollectionError, CollectionBusyError):
        pass
    except (CollectionError, ModelError) as error:
        raise OSError(str(error)) from error  # of a file: the exit code says so


def make_map(options: argparse.Namespace) -> int:
    from boltzhash.server.map_file import fit_map, save_map, with_names

    with opened(options.collection) as collection:
        shows_progress = sys.stderr is not None and sys.stderr.isatty()
        with collection.snapshot() as now:
            rows, model = now.rows(), now.state.model
            fitted = fit_map(rows, model, seed=options.seed, verbose=shows_progress)
            stored = with_names(now, fitted)
        save_map(collection, stored)
        location, n = collection.location, len(stored.numbers)
    return report(options, {"map": location, "documents": n}, f"{location}: a map of {n} documents")
