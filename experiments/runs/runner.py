"""Train and measure the runs of an experiment; finished ones are skipped, so a sweep can be resumed.

    BOLTZHASH_DATA=... python -m experiments.runs quality ingredients --workers 8

Database is train, a hit is relevant when it shares a label with the query, ties in expectation. Of a
deep method every epoch is measured, which gives three figures, always named:
*published* (the best epoch on test, as the authors' code reports), *validation* (test at the epoch that
is best on val) and *label-free* (test at the last epoch: what a user without labels gets).
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import resource
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from tempfile import TemporaryDirectory
from typing import Any, cast

from experiments.results.files import Result, rounded, write
from experiments.results.resamples import resampled
from experiments.runs.sweeps import EXPERIMENTS, Run, unfinished

FIRST_BITS = 64


def make(run: Run, device: str) -> Any:
    """The hasher of a run."""
    from boltzhash.hashers import HASHERS

    if run.settings.method not in HASHERS:
        raise SystemExit(f"unknown method {run.settings.method!r}: one of {', '.join(HASHERS)}")
    kind: Any = HASHERS[run.settings.method]
    arguments = {**run.settings.arguments, "random_state": run.seed}
    if "training" in kind.RECIPE:
        arguments["training__device"] = device
    if run.settings.as_published:
        return kind.as_published(run.bits, **arguments)
    return kind(run.bits).set_params(**arguments)


def every_param(hasher: Any) -> dict[str, Any]:
    """Return all arguments of a fit, those of groups field by field."""
    groups = hasher.recipe()
    return {name: value for name, value in hasher.get_params().items() if name not in groups}


def measure(run: Run, device: str, every: int = 1) -> Result:
    """Fit and evaluate one model; its curve has every ``every``-th epoch."""
    import torch

    from boltzhash.codes import bit_balance, distinct, unpack
    from boltzhash.hashers.shared.deep import DeepHasher
    from experiments.runs.corpora import corpus
    from experiments.runs.evaluation import Curve, agreement, final, posterior_figures

    data = corpus(run.corpus)
    hasher = make(run, device)
    # A fit that gives all documents one code is an error to a user. Here it is a result like others,
    # with distinct_codes 1 and the precision of documents drawn at random.
    hasher._check_not_collapsed = lambda matrix, features: None
    where = torch.device("cuda" if on_gpu(device) else "cpu")
    curve = Curve(data, where, every) if isinstance(hasher, DeepHasher) else None
    if curve is not None:
        curve.leave_medians(hasher)
    start = time.perf_counter()
    hasher.fit(data.train.tfidf, on_epoch=curve)
    seconds = time.perf_counter() - start
    done = final(hasher, data)
    epochs = curve.epochs if curve is not None else []
    return {
        **identity(run, every_param(hasher)),
        "precision": protocols(done.means().test, epochs),
        "val_precision": done.means().val,
        "resamples": resampled(done.test),
        "agreement": agreement(hasher, data, done.database),
        "curve": epochs,
        "posterior": rounded(posterior_figures(hasher, data)),
        "distinct_codes": distinct(done.database),
        "bit_balance": round(bit_balance(unpack(done.database)), 4),
        "epochs": hasher.history_[-1].epoch if hasattr(hasher, "history_") else None,
        "seconds": round(seconds, 2),
        "data_sha256": data.sha256,
        **circumstances(device),
    }


def identity(run: Run, params: dict[str, Any]) -> Result:
    """Which run a result is of, and every parameter of what was fitted."""
    return {
        "run": run.name,
        "experiment": run.experiment,
        "settings": run.settings.name,
        "method": run.settings.method,
        "corpus": run.corpus,
        "bits": run.bits,
        "seed": run.seed,
        "params": params,
    }


def protocols(last: float, epochs: list[tuple[int, float, float]]) -> dict[str, float]:
    """Test precision under the three protocols; one figure where there are no epochs to choose."""
    if not epochs:
        return dict.fromkeys(("published", "validation", "label-free"), last)
    best_on_val = max(epochs, key=lambda row: row[1])
    best_on_test = max(epochs, key=lambda row: row[2])
    return {"published": best_on_test[2], "validation": best_on_val[2], "label-free": last}


def on_gpu(device: str) -> bool:
    import torch

    return device != "cpu" and torch.cuda.is_available()


def circumstances(device: str) -> Result:
    """What a figure depends on beside its parameters."""
    import numpy
    import torch

    import boltzhash

    return {
        "commit": _commit(),
        "hardware": torch.cuda.get_device_name()
        if on_gpu(device)
        else f"CPU, {os.cpu_count()} cores",
        "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 3),
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS, metavar="EXPERIMENT")
    parser.add_argument("--workers", type=int, default=1, help="models trained side by side")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, nargs="+", help="only these seeds")
    parser.add_argument("--settings", nargs="+", help="only these settings")
    parser.add_argument("--seconds", type=float, help="start no run after so long")
    parser.add_argument(
        "--every",
        type=int,
        default=1,
        metavar="N",
        help="measure every N-th epoch, and the last; where an epoch is chosen, it is one of these",
    )
    options = parser.parse_args()
    listed = [run for name in options.experiments for run in EXPERIMENTS[name]]
    names, seeds = {run.settings.name for run in listed}, {run.seed for run in listed}
    _check_known("--settings", options.settings, names)
    _check_known("--seeds", options.seeds, seeds)
    todo = unfinished(
        run
        for run in listed
        if run.seed in (options.seeds or seeds) and run.settings.name in (options.settings or names)
    )
    # Seeds go slowest. Of a corpus and a seed the first run finds the neighbours that the others take.
    place = {name: number for number, name in enumerate(options.experiments)}
    todo.sort(key=lambda run: (place[run.experiment], run.seed, run.bits != FIRST_BITS))
    measured = partial(measure, device=options.device, every=options.every)
    sweep(todo, measured, options.workers, options.seconds)


def _check_known(option: str, asked: list[Any] | None, known: set[Any]) -> None:
    """Refuse what no run has: doing nothing for a slip of the pen would look like being done."""
    if unknown := sorted(set(asked or ()) - known):
        shown = ", ".join(map(str, sorted(known)))
        raise SystemExit(f"{option}: expected some of {shown}, got {unknown[0]!r}")


def sweep(
    todo: list[Run],
    measured: Callable[[Run], Result],
    workers: int,
    seconds: float | None = None,
    runs_per_process: int | None = None,
) -> None:
    """Run them side by side, writing each as it is done; one that fails does not stop the others."""
    print(f"{len(todo)} runs to do", flush=True)
    deadline = time.monotonic() + (seconds if seconds is not None else float("inf"))
    failed, late = [], 0
    with (
        TemporaryDirectory() as kept,
        ProcessPoolExecutor(
            workers,
            mp_context=get_context("spawn"),
            initializer=keep_what_all_lengths_share,
            initargs=(kept,),
            max_tasks_per_child=runs_per_process,
        ) as pool,
    ):
        running = {pool.submit(_until, deadline, measured, run): run for run in todo}
        for number, done in enumerate(as_completed(running), 1):
            run = running[done]
            try:
                result = done.result()
            except Exception as error:
                failed.append(f"{run.name}: {error}")
                continue
            if result is None:
                late += 1
                continue
            write(run.experiment, result)
            print(
                f"{number}/{len(todo)} {run.name} "
                f"{result['precision']['label-free']:.4f} {result['seconds']} s",
                flush=True,
            )
    if late:
        print(f"{late} runs not started within {seconds:g} s: the same command resumes with them")
    if failed:
        raise SystemExit("failed:\n" + "\n".join(failed))


def keep_what_all_lengths_share(folder: str) -> None:
    """What takes as long as a training, and is the same for all lengths of a code."""
    from joblib import Memory

    from boltzhash.hashers.shared import neighbour_choice, ranking

    memory = Memory(folder, verbose=0)
    ranking.weak_neighbours = memory.cache(ranking.weak_neighbours)
    choose: Any = neighbour_choice.choose_neighbours

    def chosen(settings: dict[str, Any], first_training: Any, *arguments: Any) -> Any:
        *before, seed = arguments
        return choose(*before, first_training, seed)

    kept = memory.cache(chosen, ignore=["first_training"])

    def choose_once(*arguments: Any) -> Any:
        *before, first_training, seed = arguments
        hasher = first_training.func.__self__
        settings = every_param(hasher)
        for of_the_second in ("n_bits", "network__networks", "training__epochs"):
            del settings[of_the_second]
        # Where these are left open, they are others for short codes, and the first training's too.
        settings |= {"neighbours__contrast_codes": hasher._compared_codes()}
        settings |= {"neighbours__nearness": hasher._nearness()}
        return kept(settings, first_training, *before, seed)

    neighbour_choice.choose_neighbours = cast(Any, choose_once)


def _until(deadline: float, measured: Callable[[Run], Result], run: Run) -> Result | None:
    # time.monotonic is the same clock in all processes of a machine
    if time.monotonic() >= deadline:
        return None
    try:
        return measured(run)
    finally:
        give_back_memory()


def give_back_memory() -> None:
    """What a model had on a GPU, for the workers beside this one."""
    import torch

    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()
