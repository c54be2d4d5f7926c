"""Precision of the top 100 when the query's bits are weighted by how sure the model is of them.

    BOLTZHASH_DATA=... python -m experiments.runs.confidence --seeds 0 1 2 --workers 8

The codes of the documents stay as they are; the query keeps its margins w, and documents are ordered by
Σ w_i b_i. "hamming" is the usual figure, ties in expectation; "weighted" orders all documents;
"reordered" only the nearest 500 by Hamming distance, as ``order="confidence"`` does.
Finished runs are skipped.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.metrics import precision
from boltzhash.search import ExactIndex
from boltzhash.search.order import CANDIDATES
from experiments.results.files import Result, rounded, write
from experiments.runs.corpora import corpus
from experiments.runs.runner import circumstances, every_param, identity, make
from experiments.runs.sweeps import DEFAULT, LENGTHS, MAIN, Run, grid, unfinished

TOP = 100
BLOCK = 500
SEEDS = (0, 1, 2)


def weighted_order(margins: NDArray[Any], database: Codes, candidates: NDArray[Any]) -> Any:
    """Candidates (n_queries, n), each row in the order of Σ w_i b_i; equal ones keep their place."""
    signs = np.unpackbits(database, axis=1).astype(np.float64) * 2 - 1
    scores = np.take_along_axis(margins @ signs.T, candidates, axis=1)
    return np.take_along_axis(candidates, np.argsort(-scores, axis=1, kind="stable"), axis=1)


def measure(run: Run) -> Result:
    """Fit one model, and measure it in all three ways."""
    data = corpus(run.corpus)
    start = time.perf_counter()
    hasher = make(run, "auto")
    hasher.fit(data.train.tfidf)
    database = hasher.transform(data.train.tfidf)
    codes, margins = hasher.transform(data.test.tfidf), hasher.margins(data.test.tfidf)
    hamming = precision(
        codes, database, query_labels=data.test.labels, labels=data.train.labels, k=TOP
    )
    nearest, _ = ExactIndex(database).search_rows(codes, CANDIDATES)
    every = np.arange(len(database))[None]
    found: dict[str, list[float]] = {"weighted": [], "reordered": []}
    for first in range(0, len(codes), BLOCK):
        some = slice(first, first + BLOCK)
        wanted = data.test.labels[some][:, None, :]
        for name, rows in (("weighted", every), ("reordered", nearest[some])):
            candidates = np.broadcast_to(rows, (len(codes[some]), rows.shape[1]))
            best = weighted_order(margins[some], database, candidates)[:, :TOP]
            found[name] += (data.train.labels[best] & wanted).any(axis=2).mean(axis=1).tolist()
    means = {name: float(np.mean(shares)) for name, shares in found.items()}
    return {
        **identity(run, every_param(hasher)),
        "precision": rounded({"hamming": float(hamming.mean()), **means}),
        "seconds": round(time.perf_counter() - start, 2),
        "data_sha256": data.sha256,
        **circumstances("auto"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    todo = unfinished(grid("confidence", [DEFAULT], MAIN, LENGTHS, options.seeds))
    print(f"{len(todo)} runs to do", flush=True)
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        for result in pool.map(measure, todo):
            write("confidence", result)
            print(result["run"], result["precision"], flush=True)


if __name__ == "__main__":
    main()
