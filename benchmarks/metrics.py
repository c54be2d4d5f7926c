"""Seconds to evaluate codes: 4,000 queries against 11,000 documents, all measures of a report.

    OMP_NUM_THREADS=1 python benchmarks/metrics.py

Codes are random (speed does not depend on what they find), with 20 labels, one per document. Memory is
the highest of the whole process, Python and libraries included.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import time
from functools import partial
from pathlib import Path

import numpy as np

from boltzhash.metrics import evaluate, paired_permutation, precision

RESULTS = Path(__file__).parent / "results" / "metrics.json"
N_QUERIES, N_DOCUMENTS, N_LABELS, REPEATS = 4_000, 11_000, 20, 3


def main() -> None:
    rng = np.random.default_rng(0)
    query_labels, labels = (
        np.eye(N_LABELS, dtype=bool)[rng.integers(0, N_LABELS, n)] for n in (N_QUERIES, N_DOCUMENTS)
    )
    rows: list[dict[str, float | str | int | None]] = []
    for bits in (8, 64, 128):
        queries, codes = (
            rng.integers(0, 256, (n, bits // 8), dtype=np.uint8) for n in (N_QUERIES, N_DOCUMENTS)
        )
        methods = {"random": (queries, codes)}
        run = partial(evaluate, methods, query_labels=query_labels, labels=labels)
        for what, measured in {
            "expected_precision": lambda q=queries, c=codes: precision(
                q, c, query_labels=query_labels, labels=labels
            ),
            "evaluate, ties expected": run,
            "evaluate, ties insertion": partial(run, ties="insertion"),
        }.items():
            rows.append({"what": what, "bits": bits, "seconds": best_of(measured)})
    differences = rng.normal(size=(N_QUERIES, 66))
    seconds = best_of(lambda: paired_permutation(differences))
    rows.append({"what": "10,000 permutations, 66 pairs", "bits": None, "seconds": seconds})
    result = {
        "queries": N_QUERIES,
        "documents": N_DOCUMENTS,
        "rows": rows,
        "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "hardware": f"{platform.machine()}, {os.cpu_count()} cores",
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
        "numpy": np.__version__,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print("| what | bits | seconds |\n| --- | --- | --- |")
    for row in rows:
        print(f"| {row['what']} | {row['bits'] or ''} | {row['seconds']} |")
    print(f"\npeak memory {result['peak_memory_gb']} GB")


def best_of(run: object) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()  # type: ignore[operator]
        seconds.append(time.perf_counter() - start)
    return round(min(seconds), 2)


if __name__ == "__main__":
    main()
