"""Precision of the top 100 on the benchmark corpora: one JSON file a run, and a table of them.

    BOLTZHASH_DATA=... python experiments/precision.py --settings published default --bits 32
    python experiments/precision.py --table

Protocol: label-free. Train on train without labels, take the last epoch, queries are test (and val,
reported beside), the database is train, a hit is relevant when it shares a label with the query, ties in
expectation. Finished runs are skipped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
import statistics
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "precision"

# Name of the settings → class and the arguments that are not its defaults.
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("CorrSH", {}),
    "published": ("CorrSH.as_published", {}),
    **{
        name: (name, {})
        for name in (
            *("NASH", "BMSH", "VDSH", "GMSH", "Doc2hash", "RBSH", "StackedRBM"),
            *("ITQ", "LSH", "SelfTaughtHashing", "SpectralHashing"),
        )
    },
    "CorrSH-mixture-prior": ("CorrSH", {"prior_groups": 20}),
    "CorrSH-ranking": ("CorrSH", {"ranking": 1.0}),
    **{
        f"CorrSH-{name}": ("CorrSH", {"gradient": name})
        for name in ("gumbel-softmax", "arm", "rebar", "relax")
    },
}


def make(settings: str, bits: int, seed: int, device: str) -> Any:
    """The hasher of some settings."""
    from boltzhash.hashers import HASHERS, CorrSH

    kind, arguments = SETTINGS[settings]
    build = CorrSH.as_published if kind == "CorrSH.as_published" else HASHERS[kind]
    hasher = build(bits, random_state=seed, **arguments)
    return hasher.set_params(device=device) if "device" in hasher.get_params() else hasher


@dataclass(frozen=True)
class Run:
    """One model to train and measure."""

    settings: str
    corpus: str
    bits: int
    seed: int

    @property
    def path(self) -> Path:
        return RESULTS / f"{self.settings}-{self.corpus}-{self.bits}-{self.seed}.json"


def measure(run: Run, device: str) -> dict[str, Any]:
    """Fit and evaluate one model."""
    import numpy
    import torch

    import boltzhash
    from boltzhash.datasets.vdsh import Split, load_mat
    from boltzhash.metrics import expected_precision

    path = Path(os.environ["BOLTZHASH_DATA"]) / f"{run.corpus}.tfidf.mat"
    data = load_mat(path)
    hasher = make(run.settings, run.bits, run.seed, device)
    start = time.perf_counter()
    hasher.fit(data.train.tfidf)
    seconds = time.perf_counter() - start
    database = hasher.transform(data.train.tfidf)

    def precision(queries: Split) -> float:
        codes = hasher.transform(queries.tfidf)
        return float(expected_precision(codes, database, queries.labels, data.train.labels).mean())

    return {
        **asdict(run),
        "protocol": "label-free: last epoch, expected over ties, top 100, database = train",
        "test_precision": precision(data.test),
        "val_precision": precision(data.val),
        "last_epoch": asdict(hasher.history_[-1]) if hasattr(hasher, "history_") else None,
        "fit_seconds": round(seconds, 1),
        "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 3),
        "params": hasher.get_params(),
        "data_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "commit": _commit(),
        "hardware": _hardware(torch.cuda.is_available() and device != "cpu"),
        "versions": {
            "boltzhash": boltzhash.__version__,
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "torch": torch.__version__,
        },
    }


def _commit() -> str:
    """The commit that ran; COMMIT names it where the code was copied without its history."""
    if "COMMIT" in os.environ:
        return os.environ["COMMIT"]
    command = ["git", "describe", "--always", "--dirty"]
    described = subprocess.run(command, capture_output=True, text=True, check=False)
    return described.stdout.strip() or "unknown"


def _hardware(gpu: bool) -> str:
    import torch

    return torch.cuda.get_device_name() if gpu else f"CPU, {os.cpu_count()} cores"


def write(path: Path, result: dict[str, Any]) -> None:
    """Write beside and move, so that an interrupted run leaves no half a result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    part.replace(path)


def table() -> str:
    """Mean and range over seeds of all results, as Markdown."""
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text())
        key = (result["corpus"], result["settings"], result["bits"])
        groups.setdefault(key, []).append(result)
    lines = [
        "| corpus | settings | bits | seeds | test precision | lowest - highest |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for (corpus, settings, bits), results in sorted(groups.items()):
        values = [r["test_precision"] for r in results]
        lines.append(
            f"| {corpus} | {settings} | {bits} | {len(values)} | {statistics.mean(values):.4f} "
            f"| {min(values):.4f} - {max(values):.4f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=["published", "default"])
    parser.add_argument("--corpora", nargs="+", default=["ng20", "reuters"])
    parser.add_argument("--bits", nargs="+", type=int, default=[32])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--table", action="store_true", help="only print the table of what is there"
    )
    options = parser.parse_args()
    if not options.table:
        runs = [
            Run(settings, corpus, bits, seed)
            for settings in options.settings
            for corpus in options.corpora
            for bits in options.bits
            for seed in options.seeds
        ]
        # A process a run: its peak memory is then its own.
        with ProcessPoolExecutor(
            options.workers, mp_context=get_context("spawn"), max_tasks_per_child=1
        ) as pool:
            todo = {
                pool.submit(measure, run, options.device): run
                for run in runs
                if not run.path.exists()
            }
            for done in as_completed(todo):
                result = done.result()
                write(todo[done].path, result)
                print(todo[done], f"{result['test_precision']:.4f}", flush=True)
    print(table())


if __name__ == "__main__":
    main()
