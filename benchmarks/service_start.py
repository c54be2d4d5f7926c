"""How long a service takes from nothing until it answers, over a large collection.

    python benchmarks/service_start.py [--documents 1000000] [--rounds 5]

Makes a collection of made-up documents with a model of 64 bits, then starts ``boltzhash serve``
over it some times: seconds by the clock and of CPU until ``/readyz`` says so, and what the first search
took after that. Prints a table and writes JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import Any

from boltzhash import SemanticHasher, Training
from boltzhash.collection import Collection
from synthetic import texts

RESULTS = Path(__file__).parent / "results"
SEARCH = json.dumps({"text": "w1q w2fq w30q"}).encode()
BAR = 2.0  # seconds by the clock


def make(folder: Path, n_documents: int) -> None:
    """The model is of full size but hardly trained: loading it takes as long."""
    hasher = SemanticHasher(64, training=Training(epochs=1, device="cpu")).fit(texts(10_000))
    with Collection.create(folder, hasher) as collection:
        collection.add({"id": i, "text": text} for i, text in enumerate(texts(n_documents)))


def start(folder: Path) -> dict[str, float]:
    """One start: seconds until it is ready, by the clock and of CPU, and of the first search."""
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "boltzhash", "serve", str(folder), "--port", "0"],
            stderr=log,
            text=True,
        )
        try:
            address = _wait_until_ready(process, log)
            ready, cpu = time.perf_counter() - began, _cpu_seconds(process.pid)
            asked = time.perf_counter()
            headers = {"content-type": "application/json"}
            request = urllib.request.Request(f"{address}/v1/search", SEARCH, headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert json.load(answer)["hits"]
            return {
                "ready_s": ready,
                "cpu_s": cpu,
                "first_search_s": time.perf_counter() - asked,
            }
        finally:
            process.terminate()
            process.wait(timeout=60)


def _wait_until_ready(process: subprocess.Popen[str], log: Any) -> str:
    while process.poll() is None:
        log.seek(0)
        found = re.search(r"http://\S+:\d+", log.read())
        if found and _is_ready(found.group()):
            return found.group()
        time.sleep(0.01)
    raise RuntimeError("the service did not start")


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=60) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "collection"
        make(folder, options.documents)
        load = os.getloadavg()[0]
        rounds = [start(folder) for _ in range(options.rounds)]
    result: dict[str, Any] = {"documents": options.documents, "bits": 64, "rounds": options.rounds}
    for name in rounds[0]:
        values = [measured[name] for measured in rounds]
        result[name] = {"median": round(median(values), 3), "worst": round(max(values), 3)}
    result["bar_ready_s"] = BAR
    result["load_before"] = round(load, 1)
    result["machine"] = (
        f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    )
    for name, value in result.items():
        print(f"{name:<16} {value}")
    RESULTS.mkdir(exist_ok=True)
    small = "" if options.documents >= 1_000_000 else "-small"
    (RESULTS / f"service_start{small}.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
