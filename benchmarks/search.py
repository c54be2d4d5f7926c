"""Speed and memory of search, as ratios to faiss and to reading memory, measured in one run.

    python benchmarks/search.py            # 1 M and 10 M codes; about ten minutes on a quiet machine
    python benchmarks/search.py --small    # some minutes

Writes JSON to benchmarks/results and prints each ratio beside its bar; search_report.py makes the
section of README.md and the plots from that JSON. What is compared takes turns and is repeated; the
fastest round of each counts, which others on the machine have disturbed least.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from boltzhash import ITQ
from boltzhash.codes import Codes
from boltzhash.corpus.docstrings import docstring_corpus
from boltzhash.search import ApproximateIndex, ExactIndex, compiled, kernel_name, multi_index
from boltzhash.search.exact import read_only
from search_report import bars_of, describe_machine, print_bars

RESULTS = Path(__file__).parent / "results"
THREADS = 2
K = 100
BATCH = 256
FEW = 1000  # hits within a radius
SINGLES = 50  # queries asked one by one for a radius
PAUSE = 0.05  # seconds
WIDTHS = (64, 128, 256)


def topical_codes(n: int, n_bits: int, seed: int) -> Codes:
    """Codes of any width, quickly: topics, topics within topics, documents around those.

    The topics are the same for every seed, so that another seed gives new documents of one collection.
    """
    n_bytes = n_bits // 8
    fixed = np.random.default_rng(7)
    topics = fixed.integers(0, 256, (500, n_bytes), dtype=np.uint8)
    within = np.repeat(topics, 40, axis=0)
    within ^= fixed.integers(0, 256, within.shape, dtype=np.uint8) & fixed.integers(
        0, 256, within.shape, dtype=np.uint8
    )
    rng = np.random.default_rng([n_bits, seed])
    codes = np.empty((n, n_bytes), dtype=np.uint8)
    step = (1 << 24) // n_bytes
    for first in range(0, n, step):
        block = codes[first : first + step]
        flips = rng.integers(0, 256, (3, *block.shape), dtype=np.uint8)
        noisy = flips[0] & flips[1] & (flips[2] | (rng.random(len(block)) < 0.5)[:, None] * 255)
        block[:] = within[rng.integers(0, len(within), len(block))] ^ noisy.astype(np.uint8)
    return codes


class Documents:
    """Codes of documents: Python's docstrings, each with two fifths of its words left out at random.

    Hashed by an :class:`ITQ` that was fitted on the whole ones, so codes lie as a hasher puts them.
    """

    def __init__(self, n_bits: int) -> None:
        texts = [document.text for document in docstring_corpus()]
        self._hasher = ITQ(n_bits).fit(texts)
        self._tfidf = self._hasher.tfidf(texts)

    def codes(self, n: int, seed: int) -> Codes:
        rng = np.random.default_rng(seed)
        blocks = []
        for first in range(0, n, 100_000):
            rows = rng.integers(0, self._tfidf.shape[0], min(100_000, n - first))
            noised = self._tfidf[rows]
            noised.data *= rng.random(noised.nnz) < 0.6
            noised.eliminate_zeros()
            blocks.append(self._hasher.transform(noised))
        return np.concatenate(blocks)


def seconds(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    action()
    return clock() - start


def in_turns(
    actions: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each action in each round, after one round that does not count.

    Every action begins on idle CPUs: OpenMP's threads keep theirs busy for some milliseconds after their
    work is done, waiting for more, and what comes next would pay for it.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds + 1):
        for name, action in actions.items():
            time.sleep(PAUSE)
            spent = seconds(action, clock)
            if number:
                times[name].append(spent)
    return times


def ratio(times: dict[str, list[float]], slow: str, fast: str) -> float:
    return min(times[slow]) / min(times[fast])


def compare_with_faiss(n: int, n_bits: int, rounds: int) -> dict[str, Any]:
    """Batched and single queries of both on the same codes, and one plain read of these."""
    codes, queries = topical_codes(n, n_bits, 0), topical_codes(BATCH, n_bits, 1)
    flat = faiss.IndexBinaryFlat(n_bits)
    flat.add(codes)
    index = ExactIndex(read_only(codes))
    singles = [query[None] for query in queries[:10]]
    rows, _ = index.search_rows(queries, K, threads=THREADS)
    assert np.array_equal(rows, flat.search(queries, K)[1]), "answers differ"
    times = in_turns(
        {
            "faiss, batched": lambda: flat.search(queries, K),
            "ours, batched": lambda: index.search_rows(queries, K, threads=THREADS),
            "faiss, single": lambda: [flat.search(query, K) for query in singles],
            "ours, single": lambda: [index.search_rows(q, K, threads=THREADS) for q in singles],
            "read": lambda: [compiled.read(codes, THREADS) for _ in singles],
        },
        rounds,
    )
    least = {name: min(spent) for name, spent in times.items()}
    return {
        "n": n,
        "bits": n_bits,
        "batched": ratio(times, "faiss, batched", "ours, batched"),
        "single": ratio(times, "faiss, single", "ours, single"),
        "of_read": ratio(times, "ours, single", "read"),
        "faiss_queries_per_s": BATCH / least["faiss, batched"],
        "queries_per_s": BATCH / least["ours, batched"],
        "faiss_single_ms": 1e3 * least["faiss, single"] / len(singles),
        "single_ms": 1e3 * least["ours, single"] / len(singles),
        "read_ms": 1e3 * least["read"] / len(singles),
        "read_gb_per_s": codes.nbytes * len(singles) / least["read"] / 1e9,
        **({"one_thread": one_thread(flat, codes, queries, rounds)} if n_bits == 64 else {}),
    }


def one_thread(flat: Any, codes: Codes, queries: Codes, rounds: int) -> dict[str, Any]:
    """Batched, times faiss, in CPU time: what others do on the machine hardly matters.

    faiss's threads wait for each other, and on a busy machine they wait long.
    """
    paths = [name for name in compiled.kernel_names() if name != compiled.NONE]
    actions: dict[str, Callable[[], object]] = {
        path: partial(compiled.top_k, path, codes, queries, K, None, 1) for path in paths
    }
    load = os.getloadavg()[0]
    faiss.omp_set_num_threads(1)
    times = in_turns(
        {"faiss": lambda: flat.search(queries, K), **actions}, rounds, time.thread_time
    )
    faiss.omp_set_num_threads(THREADS)
    return {
        "load_before": load,
        "times_faiss": {path: ratio(times, "faiss", path) for path in paths},
    }


def compare_paths(n: int, rounds: int) -> list[dict[str, Any]]:
    """Queries per second of every path of the kernel that runs here."""
    results = []
    for n_bits in WIDTHS:
        codes, queries = topical_codes(n, n_bits, 0), topical_codes(64, n_bits, 1)
        names = [name for name in compiled.kernel_names() if name != compiled.NONE]
        actions = {
            name: partial(compiled.top_k, name, codes, queries, K, None, THREADS) for name in names
        }
        times = in_turns(actions, rounds)
        for name in names:
            speed = len(queries) / min(times[name])
            results.append({"path": name, "n": n, "bits": n_bits, "queries_per_s": speed})
    return results


def cost_curves(largest: int, rounds: int) -> dict[str, list[dict[str, float]]]:
    """Milliseconds per query, batched and single, against each of N, k and width."""

    def cost(n: int, n_bits: int, k: int) -> dict[str, float]:
        codes, queries = topical_codes(n, n_bits, 0), topical_codes(64, n_bits, 1)
        index = ExactIndex(read_only(codes))
        times = in_turns(
            {
                "batched": lambda: index.search_rows(queries, k, threads=THREADS),
                "single": lambda: [
                    index.search_rows(query[None], k, threads=THREADS) for query in queries[:8]
                ],
            },
            rounds,
        )
        batched, single = (min(times[name]) for name in ("batched", "single"))
        return {"batched_ms": 1e3 * batched / 64, "single_ms": 1e3 * single / 8}

    middle = largest // 10
    sizes = [int(largest / 10**e * m) for e in (3, 2, 1) for m in (1, 3)] + [largest]
    return {
        "n": [{"n": n, **cost(n, 64, K)} for n in sizes],
        "k": [{"k": k, **cost(middle, 64, k)} for k in (1, 10, 100, 1000, 10_000)],
        "bits": [
            {"bits": bits, **cost(middle, bits, K)}
            for bits in (8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096)
            if middle * bits / 8 <= 1.1e9
        ],
    }


def compare_radius(kind: str, codes: Codes, queries: Codes, rounds: int) -> dict[str, Any]:
    """All codes within a radius of one query that has few: by tables, beside a scan.

    A scan in between leaves nothing of the tables in the caches. Times are sums over the queries.
    """
    index = ExactIndex(read_only(codes))
    index.within_rows(queries[: multi_index.SCANS_A_BUILD], 0, threads=THREADS)  # makes tables
    key_bits = multi_index._key_bits(len(codes), codes.shape[1])
    make = partial(compiled.tables_of, codes, key_bits, multi_index.LOOKUP_COST, THREADS)
    rows = []
    for radius in (0, 1, 2, 3):
        answers = index.within_rows(queries, radius, threads=THREADS)
        few = [row for row, (found, _) in enumerate(answers) if len(found) < FEW][:SINGLES]
        scans, lookups = np.zeros((2, rounds, len(few)))
        for turn in np.ndindex(scans.shape):
            query = queries[few[turn[1]]][None]
            scan = partial(compiled.within, kernel_name(), codes, query, radius, None, THREADS)
            scans[turn] = seconds(scan)
            lookups[turn] = seconds(partial(index.within_rows, query, radius, threads=THREADS))
        scan_s, lookup_s = (float(spent.min(axis=0).sum()) for spent in (scans, lookups))
        rows.append(
            {
                "radius": radius,
                "queries": len(few),
                "hits": float(np.mean([len(answers[row][0]) for row in few])),
                "scan_ms": 1e3 * scan_s / len(few),
                "tables_ms": 1e3 * lookup_s / len(few),
                "times_scan": scan_s / lookup_s,
            }
        )
    return {
        "kind": kind,
        "n": len(codes),
        "load_before": os.getloadavg()[0],
        "build_ms": 1e3 * min(seconds(make) for _ in range(3)),
        "table_bytes": len(make().contents),
        "rows": rows,
    }


MEMORY_SCRIPT = """
import re, sys
import numpy as np
from boltzhash.search import ExactIndex
def memory(kind):
    return int(re.search(kind + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
def search(codes, queries):
    index = ExactIndex(codes)
    index.search(queries, 100, threads=2)
    index.search(queries[:1], 100, threads=2)
    index.within(queries[:1], 3)
codes = np.load(sys.argv[1], mmap_mode="r")
queries = np.array(codes[:256])
search(codes[:1000], queries)
before = memory("RssAnon")
search(codes, queries)
print(before, memory("RssAnon"), memory("RssFile"), memory("VmHWM"), codes.nbytes)
"""


def memory_of_search(n: int) -> dict[str, int]:
    """What a search of mapped codes adds to a process that has searched 1,000 of them before."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codes.npy"
        np.save(path, topical_codes(n, 64, 0))
        done = subprocess.run(
            [sys.executable, "-c", MEMORY_SCRIPT, str(path)],
            capture_output=True,
            text=True,
            check=True,
        )
    before, after, mapped, peak, size = map(int, done.stdout.split())
    return {"n": n, "codes": size, "added": after - before, "mapped": mapped, "peak": peak}


def approximate(n: int, rounds: int) -> dict[str, Any]:
    """Queries per second against recall on new queries, beside exact search of the same codes."""
    documents = Documents(64)
    codes, queries = documents.codes(n, 0), documents.codes(1000, 1)
    start = time.perf_counter()
    index = ApproximateIndex(codes, k=K)
    built = time.perf_counter() - start
    exact = ExactIndex(read_only(codes))
    _, true = exact.search_rows(queries, K, threads=THREADS)
    asked = [0.5, 0.8, 0.9, 0.95, 0.99]
    actions: dict[str, Callable[[], object]] = {
        "exact": lambda: exact.search_rows(queries, K, threads=THREADS)
    }
    for recall in asked:
        actions[str(recall)] = partial(index.search_rows, queries, K, recall=recall)
    times = in_turns(actions, rounds)
    steps = []
    for recall in asked:
        _, found = index.search_rows(queries, K, recall=recall)
        steps.append(
            {
                "asked": recall,
                "probes": index.probes_for(recall),
                "recall": float(np.mean(found <= true[:, -1:])),
                "queries_per_s": len(queries) / min(times[str(recall)]),
                "times_exact": ratio(times, "exact", str(recall)),
            }
        )
    return {
        "n": n,
        "bits": 64,
        "codes": "docstrings with two fifths of their words left out at random, hashed by ITQ",
        "lists": index.recalls[-1].probes,
        "build_s": built,
        "exact_queries_per_s": len(queries) / min(times["exact"]),
        "steps": steps,
        "ladder": [list(step) for step in index.recalls],
    }


def radius_of_all_kinds(n: int, rounds: int, small: bool) -> list[dict[str, Any]]:
    """Codes spread as topics are, which is nearly evenly, and as a hasher puts texts."""
    results = [compare_radius("topics", topical_codes(n, 64, 0), topical_codes(500, 64, 1), rounds)]
    if not small:
        documents = Documents(64)
        codes, queries = documents.codes(n, 0), documents.codes(500, 1)
        results.append(compare_radius("docstrings", codes, queries, rounds))
    return results


def run(small: bool) -> dict[str, Any]:
    faiss.omp_set_num_threads(THREADS)
    sizes = (1_000_000,) if small else (1_000_000, 10_000_000)
    rounds = 5 if small else 9
    compared = [compare_with_faiss(n, bits, rounds) for n in sizes for bits in WIDTHS]
    if small:
        compared.append(compare_with_faiss(10_000_000, 64, 3))
    largest = sizes[-1]
    return {
        "benchmark": "search",
        "small": small,
        "machine": describe_machine(THREADS),
        "kernel": kernel_name(),
        "k": K,
        "batch": BATCH,
        "rounds": rounds,
        "counted": "the fastest",
        "compared": compared,
        "radius": radius_of_all_kinds(10_000_000, rounds, small),
        "paths": compare_paths(1_000_000, 3),
        "curves": cost_curves(largest, 3),
        "memory": [memory_of_search(n) for n in (largest // 10, largest)],
        "approximate": approximate(largest, rounds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--small", action="store_true", help="1 M codes and some of 10 M, some minutes"
    )
    arguments = parser.parse_args()
    results = run(arguments.small)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / ("search-small.json" if arguments.small else "search.json")
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print_bars(bars_of(results))
    print(f"written: {path}")


if __name__ == "__main__":
    main()
