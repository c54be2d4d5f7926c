"""Fitting by several processes: as good as by one, and faster? Precision, and seconds of a step.

    export BOLTZHASH_DATA=…
    python benchmarks/distributed.py --seeds 3                                  # precision
    torchrun --nproc-per-node 2 benchmarks/distributed.py --seeds 3
    python benchmarks/distributed.py --steps                                    # seconds of a step
    python benchmarks/distributed.py --steps --processes 16 --output steps.json

Precision is that of the top 100 on Reuters: a default CorrSH of 32 bits, fitted on train; queries are
test, database is train. One thread a process. Prints one line per seed and adds to a JSON file.

Steps are those of a default CorrSH of 64 bits, on Reuters or, without BOLTZHASH_DATA, on made-up
documents: of 1, 2, 4, … processes with one thread each, which it starts itself and which talk over the
loopback; beside them those that one process takes by itself, with one thread and with two
(distributed_steps.py). For the simulation of several machines (distributed_table.py), shares of a batch
are timed one by one. All take turns, two rounds, and the faster one counts. Minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import reduce
from pathlib import Path
from typing import Any

import torch

from boltzhash import CorrSH
from boltzhash.datasets.vdsh import load_mat
from boltzhash.metrics import expected_precision
from boltzhash.threads import available_cpus
from boltzhash.training.distributed import joined
from distributed_steps import BITS, faster, mean, read_matrix
from machine import machine

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--steps", action="store_true", help="seconds of a step, not precision")
    parser.add_argument("--processes", type=int, default=available_cpus(), help="at most so many")
    parser.add_argument("--rounds", type=int, default=2, help="of steps; the fastest counts")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "distributed.json")
    options = parser.parse_args()
    if options.steps:
        add_to(options.output, "steps", steps(options.processes, options.rounds))
    else:
        measure_precision(options.seeds, options.bits, options.output)


def add_to(path: Path, name: str, result: dict[str, Any]) -> None:
    everything = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    everything[name] = result
    path.write_text(json.dumps(everything, indent=2) + "\n", encoding="utf-8")


def measure_precision(n_seeds: int, n_bits: int, output: Path) -> None:
    torch.set_num_threads(1)
    splits = load_mat(Path(os.environ["BOLTZHASH_DATA"]) / "reuters.tfidf.mat")
    train, test = splits.train, splits.test
    runs = []
    with joined() as rank:
        for seed in range(n_seeds):
            start = time.perf_counter()
            hasher = CorrSH(n_bits, random_state=seed, device="cpu").fit(train.tfidf)
            seconds = time.perf_counter() - start
            codes, queries = hasher.transform(train.tfidf), hasher.transform(test.tfidf)
            precision = expected_precision(queries, codes, test.labels, train.labels).mean()
            runs.append(
                {"seed": seed, "precision": round(float(precision), 4), "s": round(seconds, 1)}
            )
            if rank == 0:
                print(runs[-1], flush=True)
    if rank == 0:
        name = f"{os.environ.get('WORLD_SIZE', '1')} processes, {n_bits} bits"
        add_to(output, name, {"load average": round(os.getloadavg()[0], 1), "runs": runs})


def steps(most: int, n_rounds: int) -> dict[str, Any]:
    """Milliseconds of a step and of its parts, with each batch size."""
    load = os.getloadavg()[0]
    corpus, matrix = read_matrix()
    n_processes = [2**i for i in range(most.bit_length())]
    rounds = [
        {
            **{f"alone {n}": started("alone", n_threads=n)[0] for n in (1, 2)},
            **{f"together {n}": mean(started("together", n)) for n in n_processes},
        }
        for _ in range(n_rounds)
    ]
    fastest = {name: reduce(faster, (one[name] for one in rounds)) for name in rounds[0]}
    return {
        "corpus": corpus,
        "documents": matrix.shape[0],
        "words": matrix.shape[1],
        "bits": BITS,
        "alone": {str(n): fastest[f"alone {n}"] for n in (1, 2)},
        "processes": {str(n): fastest[f"together {n}"] for n in n_processes},
        "shares": started("shares")[0],
        "load_average_before": round(load, 1),
        **machine("torch"),
    }


def started(what: str, n_processes: int = 1, n_threads: int = 1) -> list[dict[str, Any]]:
    """What each process has measured."""
    threads = str(n_threads)
    environment = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(HERE / "distributed_steps.py"), what, folder]
        if what != "alone":
            environment["GLOO_SOCKET_IFNAME"] = "lo"  # whatever the machine's name and network are
            launch = ["-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1"]
            command[1:1] = [*launch, f"--nproc-per-node={n_processes}"]
        subprocess.run(command, env={**os.environ, **environment}, check=True)
        files = [Path(folder, f"{rank}.json") for rank in range(n_processes)]
        found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    print(f"{what}, {n_processes} × {n_threads}:", json.dumps(found[0]), flush=True)
    return found


if __name__ == "__main__":
    main()
