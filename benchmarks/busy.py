"""A fit beside other work: the library's choice of threads against fixed ones, at several loads.

    BOLTZHASH_DATA=... python benchmarks/busy.py                   # 0 to 3 busy processes; six minutes
    BOLTZHASH_DATA=... python benchmarks/busy.py --small           # the largest load, printed

4,000 posts of 20 Newsgroups, 64 bits, 3 epochs of one training, each fit in a process of its own, with
busy processes beside it that do nothing but count. Contestants take turns; a figure is the mean of the
rounds. All of them must learn the same model, to the last bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from boltzhash import Neighbours, SemanticHasher, Training
from fitting import posts
from machine import machine

RESULTS = Path(__file__).parent / "results" / "busy.json"
N_DOCUMENTS = 4_000
AT_MOST = 1.3  # times the best of the others, at any load
OURS = "as it comes"
TWO = {"OMP_NUM_THREADS": "2"}
CONTESTANTS: dict[str, dict[str, str]] = {
    OURS: {},
    "two threads": TWO,
    "two, passive": {**TWO, "OMP_WAIT_POLICY": "PASSIVE"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}


def fit() -> None:
    """What the process of a contestant does; prints its figures as JSON."""
    texts = list(islice(posts(), N_DOCUMENTS))
    start = time.perf_counter()
    hasher = SemanticHasher(
        64,
        random_state=0,
        training=Training(epochs=3, device="cpu"),
        neighbours=Neighbours(second_training=False),
    ).fit(texts)
    seconds = time.perf_counter() - start
    digest = hashlib.sha256()
    for name in sorted(hasher.weights_):
        digest.update(np.ascontiguousarray(hasher.weights_[name]).tobytes())
    print(json.dumps({"seconds": seconds, "weights": digest.hexdigest()}))


def seconds_of(contestant: str) -> tuple[float, str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
    printed = subprocess.run(
        [sys.executable, __file__, "--fit"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment | CONTESTANTS[contestant],
    ).stdout
    found = json.loads(printed.splitlines()[-1])
    return found["seconds"], found["weights"]


@contextmanager
def busy(n_processes: int) -> Iterator[None]:
    counting = [sys.executable, "-c", "while True: pass"]
    beside = [subprocess.Popen(counting) for _ in range(n_processes)]
    try:
        yield
    finally:
        for process in beside:
            process.kill()
            process.wait()


def measure(n_beside: int, rounds: int) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    learned = set()
    with busy(n_beside):
        for _ in range(rounds):
            for name in CONTESTANTS:
                took, weights = seconds_of(name)
                seconds[name].append(round(took, 2))
                learned.add(weights)
    if len(learned) > 1:
        raise SystemExit("the contestants learned different models: there is nothing to compare")
    return {"beside": n_beside, "seconds": seconds}


def table(result: dict[str, Any]) -> str:
    """As Markdown."""
    names = list(CONTESTANTS)
    head = f"| busy processes beside it | {' | '.join(names)} | {OURS} / best of the others | at most |"
    lines = [head, "| ---: |" + " ---: |" * (len(names) + 2)]
    for row in result["loads"]:
        medians = {name: median(row["seconds"][name]) for name in names}
        best = min(value for name, value in medians.items() if name != OURS)
        figures = " | ".join(f"{medians[name]:.1f} s" for name in names)
        lines.append(f"| {row['beside']} | {figures} | {medians[OURS] / best:.2f} | {AT_MOST} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", action="store_true", help="print the largest load, once")
    parser.add_argument("--fit", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        fit()
        return
    load = os.getloadavg()[0]
    loads = [3] if options.small else [0, 1, 3]
    rows = [measure(n_beside, 1 if options.small else 2) for n_beside in loads]
    result = {"loads": rows, "load_average_before": round(load, 1), **machine()}
    print(table(result))
    if not options.small:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
