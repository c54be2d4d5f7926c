"""What Figure 2 and the heat maps of bits are drawn from: codes of 128 bits on 20 Newsgroups.

    BOLTZHASH_DATA=... python -m experiments.runs.codes

Fits each method, makes a map of the codes of the test documents (UMAP on Hamming distances) and keeps
how their bits go together. Finished fits are skipped. ``figures/codes.py`` draws from what this leaves.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Bits, unpack
from boltzhash.hashers.shared.inference import Posterior
from boltzhash.metrics import precision
from boltzhash.metrics.codes import bit_correlations
from experiments.results.files import write
from experiments.runs.corpora import Corpus, corpus
from experiments.runs.evaluation import TOP
from experiments.runs.runner import circumstances, every_param, identity, make
from experiments.runs.sweeps import AS_PUBLISHED, DEFAULT, Run, Settings, grid, unfinished

BITS, SEED = 128, 0
NEIGHBOURS, MIN_DISTANCE = 15, 0.1  # UMAP's own defaults, named since pictures depend on them

Matrix = NDArray[np.float64]

RUNS = grid(
    "codes",
    [
        *(Settings(name, name) for name in ("VDSH", "NASH")),
        DEFAULT,
        *(s for s in AS_PUBLISHED if s.method in ("VDSH", "NASH", "CorrSH")),
    ],
    ["ng20"],
    [BITS],
    [SEED],
)


def picture(run: Run, data: Corpus, device: str) -> dict[str, Any]:
    """Fit one model; what is drawn of it, in integers of a thousandth."""
    hasher = make(run, device)
    start = time.perf_counter()
    hasher.fit(data.train.tfidf)
    seconds = time.perf_counter() - start
    codes = hasher.transform(data.test.tfidf)
    values = precision(
        codes,
        hasher.transform(data.train.tfidf),
        query_labels=data.test.labels,
        labels=data.train.labels,
        k=TOP,
    )
    bits = unpack(codes)
    result = {
        **identity(run, every_param(hasher)),
        "precision": {"label-free": float(values.mean())},
        "documents": "test",
        "umap": {"metric": "hamming", "n_neighbors": NEIGHBOURS, "min_dist": MIN_DISTANCE},
        "points": thousandths(umap_of(bits)),
        "groups": data.test.labels.argmax(axis=1).tolist(),
        "code_correlation": above_diagonal(np.nan_to_num(bit_correlations(bits))),
        "seconds": round(seconds, 2),
        "data_sha256": data.sha256,
        **circumstances(device),
    }
    if hasattr(hasher, "posterior"):
        learned = mean_correlation(hasher.posterior(data.test.tfidf))
        result["learned_correlation"] = above_diagonal(learned)
    return result


def umap_of(bits: Bits) -> Matrix:
    """Two coordinates per document, each from 0 to 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages it does without
        import umap

        layout = umap.UMAP(
            n_neighbors=NEIGHBOURS,
            min_dist=MIN_DISTANCE,
            metric="hamming",
            random_state=SEED,
            n_jobs=1,
        ).fit_transform(bits.astype(np.float32))
    low, high = layout.min(axis=0), layout.max(axis=0)
    return np.asarray((layout - low) / (high - low), dtype=np.float64)


def mean_correlation(posterior: Posterior) -> Matrix:
    """The mean over documents of Σ(x) = D + UUᵀ, scaled to a diagonal of ones.

    >>> U = np.array([[[1.0], [1.0]], [[1.0], [-1.0]], [[1.0], [1.0]]])
    >>> mean_correlation(Posterior(np.zeros((3, 2)), np.ones((3, 2)), U)).round(4)
    array([[1.    , 0.1667],
           [0.1667, 1.    ]])
    """
    n, m, _ = posterior.factor.shape
    across = posterior.factor.transpose(1, 0, 2).reshape(m, -1)
    mean = across @ across.T / n + np.diag(posterior.diagonal.mean(axis=0))
    scale = 1 / np.sqrt(np.diag(mean))
    return np.asarray(mean * np.outer(scale, scale))


def above_diagonal(matrix: Matrix) -> list[int]:
    """The entries above the diagonal, row by row, in thousandths.

    >>> above_diagonal(np.array([[1.0, 0.25, -0.5], [0.25, 1.0, 0.0], [-0.5, 0.0, 1.0]]))
    [250, -500, 0]
    """
    return [int(value) for value in thousandths(matrix[np.triu_indices(len(matrix), 1)])]


def thousandths(values: Matrix) -> list[Any]:
    rounded: list[Any] = np.rint(values * 1000).astype(int).tolist()
    return rounded


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    todo = unfinished(RUNS)
    print(f"{len(todo)} fits to do", flush=True)
    for run in todo:
        result = picture(run, corpus(run.corpus), options.device)
        write(run.experiment, result)
        precision = result["precision"]["label-free"]
        print(f"{run.name} {precision:.4f} {result['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
