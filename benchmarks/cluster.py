"""Encoding on a Ray cluster of several nodes, with one killed while it works; every code is compared.

    pip install 'boltzhash[ray]'
    python benchmarks/cluster.py                              # a million documents; some minutes
    python benchmarks/cluster.py --documents 20000

All nodes are on this machine. Each has a raylet of its own, kept to one CPU and 4 GB of data, which the
processes it starts inherit; the driver has a node without workers. Beside them: one process on one CPU
without Ray. Clusters are started before the clock is. Shards share nothing, so what one machine with few
CPUs cannot show is worked out from its parts: the time of a shard, and what the driver does for each.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from boltzhash import ITQ
from boltzhash.corpus import read_corpus
from boltzhash.corpus.shards import SHARD_BYTES
from boltzhash.encoding.ray import encode_on_ray
from boltzhash.hashers import Hasher
from boltzhash.storage.codes import read_codes
from boltzhash.threads import available_cpus
from machine import machine
from synthetic import texts

RESULTS = Path(__file__).parent / "results" / "cluster.json"
DATA_BYTES = 4 << 30  # of each process of a node
FITTED_ON = 20_000
SIMULATED = (1, 8, 64, 512)  # CPUs
A_BILLION = 1_000_000_000


def write_corpus(path: Path, n_documents: int) -> None:
    with path.open("w", encoding="utf-8") as out:
        for number, text in enumerate(texts(n_documents, length=40)):
            out.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")


@contextmanager
def on_cpus(cpus: set[int]) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def cluster(n_nodes: int) -> Iterator[tuple[Any, list[Any]]]:
    """A head without workers, and nodes of one CPU each."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = importlib.import_module("ray")
    utils = importlib.import_module("ray.cluster_utils")
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 200 << 20}
    nodes = utils.Cluster(initialize_head=True, head_node_args=head)
    ray.init(address=nodes.address, logging_level="error", log_to_driver=False)
    cpus = sorted(os.sched_getaffinity(0))
    workers = []
    for number in range(n_nodes):
        with on_cpus({cpus[number % len(cpus)]}):  # what is started there stays there
            node = nodes.add_node(num_cpus=1, memory=DATA_BYTES, object_store_memory=200 << 20)
        for process in node.live_processes():
            resource.prlimit(process[1].pid, resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
        workers.append(node)
    nodes.wait_for_nodes()
    try:
        yield nodes, workers
    finally:
        ray.shutdown()
        nodes.shutdown()


def on_nodes(
    hasher: Hasher, corpus: Path, folder: Path, n_nodes: int, *, kill: bool = False
) -> dict[str, Any]:
    """Seconds of all, of putting shards together at the end, and what was lost with a node."""
    output = folder / f"codes-{n_nodes}-{kill}"
    stamps: list[float] = []
    lost: list[float] = []
    with cluster(n_nodes) as (nodes, workers):
        warm_up(workers)

        def after_shard(n_done: int, n_shards: int) -> None:
            stamps.append(time.perf_counter())
            if kill and not lost and n_done >= n_shards // 4:
                lost.append(n_done / n_shards)
                nodes.remove_node(workers[-1], allow_graceful=False)

        start = time.perf_counter()
        encode_on_ray(hasher, [corpus], output, on_shard=after_shard)
        end = time.perf_counter()
    return {
        "nodes": n_nodes,
        "seconds": round(end - start, 1),
        "put_together": round(end - stamps[-1], 2),
        "shards": len(stamps),
        "killed_after": round(lost[0], 2) if lost else None,
        "codes": output.name,
    }


def warm_up(workers: list[Any]) -> None:
    """One process on each node is there and has imported what it needs."""
    ray = importlib.import_module("ray")
    strategy = importlib.import_module(
        "ray.util.scheduling_strategies"
    ).NodeAffinitySchedulingStrategy

    def ready() -> str:
        importlib.import_module("boltzhash.encoding.ray")
        return "ready"

    task = ray.remote(ready)
    ray.get(
        [
            task.options(scheduling_strategy=strategy(node.node_id, soft=False)).remote()
            for node in workers
        ]
    )


def in_one_process(hasher: Hasher, corpus: Path) -> tuple[float, list[Any], Any]:
    with on_cpus({min(os.sched_getaffinity(0))}):
        start = time.perf_counter()
        ids: list[Any] = []

        def read() -> Iterator[str]:
            for document in read_corpus(corpus):
                ids.append(document.id)
                yield document.text

        codes = np.concatenate([block.codes for block in hasher.transform_blocks(read())])
        return time.perf_counter() - start, ids, codes


def simulated(result: dict[str, Any], n_cpus: int) -> float:
    """Hours for a billion documents: shards in rounds, and what the driver does for each of them.

    Assumed: CPUs like these, storage that reads and writes as fast as all of them ask, no node lost.
    """
    two = result["runs"][1]
    n_shards = math.ceil(A_BILLION * two["shards"] / result["documents"])
    of_a_shard = result["one_process"] / two["shards"]
    of_the_driver = two["put_together"] / two["shards"]
    seconds = math.ceil(n_shards / n_cpus) * of_a_shard + n_shards * of_the_driver
    return float(seconds / 3600)


def measure(n_documents: int) -> dict[str, Any]:
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = folder / "corpus.jsonl"
        write_corpus(corpus, n_documents)
        hasher = ITQ(64, random_state=0).fit(texts(FITTED_ON, length=40))
        seconds, ids, codes = in_one_process(hasher, corpus)
        runs = []
        for n_nodes, kill in ((1, False), (2, False), (2, True)):
            runs.append(on_nodes(hasher, corpus, folder, n_nodes, kill=kill))
            stored = read_codes(folder / runs[-1].pop("codes"), model=hasher.fingerprint())
            if stored.ids != ids or not np.array_equal(stored.codes, codes):
                raise SystemExit("the cluster's codes are not those of one process")
            print(runs[-1], flush=True)
    return {
        "documents": n_documents,
        "one_process": round(seconds, 1),
        "runs": runs,
        "cpus": available_cpus(),
        "load_average_before": round(load, 1),
        **machine(),
    }


def table(result: dict[str, Any]) -> str:
    """As Markdown."""
    one = result["one_process"]
    lines = [
        f"| {result['documents']:,} documents | s | times one process |",
        "| --- | ---: | ---: |",
        f"| one process on one CPU, without Ray | {one} | 1 |",
    ]
    for run in result["runs"]:
        what = f"Ray, {run['nodes']} node{'s' if run['nodes'] > 1 else ''} of one CPU"
        if run["killed_after"] is not None:
            what += f", one killed after {100 * run['killed_after']:.0f} % of the shards"
        lines.append(f"| {what} | {run['seconds']} | {one / run['seconds']:.2f} |")
    hours = ", ".join(f"{n} CPUs {simulated(result, n):,.1f} h" for n in SIMULATED)
    driver = 1000 * result["runs"][1]["put_together"] / result["runs"][1]["shards"]
    shard = result["one_process"] / result["runs"][1]["shards"]
    lines += [
        "",
        f"A shard of {SHARD_BYTES >> 20} MB took {shard:.2f} s of a CPU, and the driver {driver:.1f} ms "
        "when it put them together. From these two, with storage that keeps up and no node lost, a "
        f"billion such documents: {hours} ○.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, default=1_000_000)
    options = parser.parse_args()
    result = measure(options.documents)
    print(table(result))
    if options.documents == parser.get_default("documents"):
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
