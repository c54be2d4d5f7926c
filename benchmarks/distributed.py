"""Fitting by several processes: as good as by one? Precision of the top 100 on Reuters, and seconds.

    export BOLTZHASH_DATA=…
    python benchmarks/distributed.py --seeds 3
    torchrun --nproc-per-node 2 benchmarks/distributed.py --seeds 3

A default CorrSH of 32 bits, fitted on train; queries are test, database is train. One thread a process.
Prints one line per seed and adds to a JSON file.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import torch

from boltzhash import CorrSH
from boltzhash.datasets.vdsh import load_mat
from boltzhash.metrics import expected_precision
from boltzhash.training.distributed import joined


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--output", default="benchmarks/results/distributed.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    splits = load_mat(Path(os.environ["BOLTZHASH_DATA"]) / "reuters.tfidf.mat")
    train, test = splits.train, splits.test
    runs = []
    with joined() as rank:
        for seed in range(options.seeds):
            start = time.perf_counter()
            hasher = CorrSH(options.bits, random_state=seed, device="cpu").fit(train.tfidf)
            seconds = time.perf_counter() - start
            codes, queries = hasher.transform(train.tfidf), hasher.transform(test.tfidf)
            precision = expected_precision(queries, codes, test.labels, train.labels).mean()
            runs.append(
                {"seed": seed, "precision": round(float(precision), 4), "s": round(seconds, 1)}
            )
            if rank == 0:
                print(runs[-1], flush=True)
    if rank == 0:
        path = Path(options.output)
        everything = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        name = f"{os.environ.get('WORLD_SIZE', '1')} processes, {options.bits} bits"
        everything[name] = {"load average": round(os.getloadavg()[0], 1), "runs": runs}
        path.write_text(json.dumps(everything, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
