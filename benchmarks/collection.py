"""What a collection costs: bytes a document, documents added a second, time to open and to search.

    python benchmarks/collection.py --documents 1000000

The texts are made up: words of a Zipf vocabulary of 30,000, each text from one of 200 topics, 20 to 60
words long, with a year, a language and a price. Prints a table and writes JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from boltzhash import ITQ
from boltzhash.collection import Collection
from boltzhash.search.compiled import kernel_name
from boltzhash.version import __version__

N_WORDS = 30_000
N_TOPICS = 200
TOPIC_WORDS = 300
BLOCK = 10_000
QUERIES = 500

OPEN_AND_SEARCH = """
import sys, time
from boltzhash.collection import Collection
start = time.perf_counter()
collection = Collection.open(sys.argv[1])
opened = time.perf_counter()
collection.search(sys.argv[2])
print(opened - start, time.perf_counter() - opened)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--folder", help="where to make the collection (a temporary folder)")
    parser.add_argument("--output", default="benchmarks/results/collection.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = measure(Path(folder) / "collection", options.documents, options.bits)
    Path(options.output).parent.mkdir(parents=True, exist_ok=True)
    Path(options.output).write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    for name, value in results.items():
        print(f"{name:<34} {value}")


def measure(path: Path, n: int, n_bits: int) -> dict[str, Any]:
    sample = [document["text"] for document in made_up(min(n, 20_000), seed=1)]
    hasher = ITQ(n_bits).fit(sample)
    with Collection.create(path, hasher) as collection:
        start = time.perf_counter()
        collection.add(_counted(made_up(n, seed=2), n))
        added = time.perf_counter() - start
        making = _seconds(lambda: sum(1 for _ in made_up(min(n, 50_000), seed=2)))
    queries = [document["text"] for document in made_up(QUERIES, seed=3)]
    opening, first = _in_a_new_process(path, queries[0])
    (path / "codes.map").unlink(missing_ok=True)
    opening_without_map, first_without_map = _in_a_new_process(path, queries[0])
    with Collection.open(path) as collection:
        stats = collection.stats()  # with all codes in codes.map, which was made anew
        searches = _searches(collection, queries)
        one_added = _times(
            lambda i: collection.add([{"id": f"new-{i}", "text": queries[i]}]), min(100, QUERIES)
        )
        groups = _seconds(lambda: collection.duplicates(2))
    return {
        "documents": n,
        "bits": n_bits,
        "seconds to add": round(added, 1),
        "documents a second": round(n / added),
        "of that, making up the texts": round(making * n / min(n, 50_000), 1),
        "bytes a document": stats["bytes_per_document"],
        "bytes": stats["bytes"],
        "open, s": round(opening, 3),
        "first search, s": round(first, 3),
        "open without codes.map, s": round(opening_without_map, 3),
        "first search without codes.map, s": round(first_without_map, 3),
        **searches,
        "add one document, ms": one_added,
        "duplicates within 2 bits, s": round(groups, 2),
        "peak memory, MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "load average of the last minutes": [round(load, 1) for load in os.getloadavg()],
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "kernel": kernel_name(),
        "boltzhash": __version__,
    }


def made_up(n: int, seed: int) -> Iterator[dict[str, Any]]:
    """Documents with topics, years, languages and prices."""
    rng = np.random.default_rng(seed)
    words = np.array([_word(i) for i in range(N_WORDS)])
    zipf = 1 / np.arange(1, N_WORDS + 1)
    cumulated = np.cumsum(zipf / zipf.sum())
    topics = np.random.default_rng(0).integers(100, N_WORDS, size=(N_TOPICS, TOPIC_WORDS))
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        lengths = rng.integers(20, 61, size=size)
        topic = np.repeat(rng.integers(0, N_TOPICS, size=size), lengths)
        of_topic = topics[topic, (rng.random(len(topic)) ** 2 * TOPIC_WORDS).astype(int)]
        common = np.searchsorted(cumulated, rng.random(len(topic)))
        text = words[
            np.where(rng.random(len(topic)) < 0.4, of_topic, np.minimum(common, N_WORDS - 1))
        ]
        years, prices = rng.integers(2000, 2025, size), rng.random(size)
        languages = rng.choice(["en", "de", "fr"], p=[0.7, 0.2, 0.1], size=size)
        for i, some in enumerate(np.split(text, np.cumsum(lengths)[:-1])):
            metadata = {"year": int(years[i]), "lang": str(languages[i]), "price": float(prices[i])}
            yield {"id": f"doc-{start + i}", "text": " ".join(some), "metadata": metadata}


def _word(number: int) -> str:
    """A word that can be pronounced; short ones for common words."""
    syllables = []
    number += 14
    while number:
        number, syllable = divmod(number, 70)
        syllables.append("bdfgklmnprstvz"[syllable // 5] + "aeiou"[syllable % 5])
    return "".join(syllables)


def _counted(documents: Iterator[dict[str, Any]], n: int) -> Iterator[dict[str, Any]]:
    start = time.perf_counter()
    for number, document in enumerate(documents, start=1):
        yield document
        if number % 100_000 == 0:
            rate = number / (time.perf_counter() - start)
            print(f"{number} of {n}, {rate:.0f} a second", file=sys.stderr, flush=True)


def _searches(collection: Collection, queries: list[str]) -> dict[str, Any]:
    codes = collection.hasher.transform(queries)
    n = len(queries)

    def search(i: int, where: dict[str, Any] | None = None) -> object:
        return collection.search(queries[i], by="codes", where=where)

    return {
        "search by code, ms": _times(lambda i: collection.search(codes[i]), n),
        "search, ms": _times(lambda i: collection.search(queries[i]), n),
        "search by codes, ms": _times(search, n),
        "search by codes, order words, ms": _times(
            lambda i: collection.search(queries[i], order="words"), n // 2
        ),
        "search by codes, same filter, ms": _times(
            lambda i: search(i, {"lang": "fr", "year": 2020}),
            n // 2,
        ),
        "search by codes, new filter (1/250), ms": _times(
            lambda i: search(i, {"lang": "fr", "year": [2020, -i]}),
            n // 5,
        ),
        "search by codes, new filter (half), ms": _times(
            lambda i: search(i, {"price": {">=": 0.5 + i / 10_000}}),
            n // 5,
        ),
        "within 8 bits, ms": _times(lambda i: collection.within(queries[i], 8), n // 2),
        "get, ms": _times(lambda i: collection.get(f"doc-{i * 97 % 1000}"), n),
    }


def _times(action: Callable[[int], object], n: int) -> dict[str, float]:
    action(0)  # warm
    times = []
    for i in range(1, n):
        start = time.perf_counter()
        action(i)
        times.append(1000 * (time.perf_counter() - start))
    return {
        name: round(float(np.percentile(times, p)), 2) for name, p in (("p50", 50), ("p99", 99))
    }


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _in_a_new_process(path: Path, query: str) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", OPEN_AND_SEARCH, str(path), query],
        capture_output=True,
        text=True,
        check=True,
    )
    opening, first = map(float, done.stdout.split())
    return opening, first


if __name__ == "__main__":
    main()
