"""How often the code μ > 0 differs from what the Boltzmann posterior b(s) itself would say.

    BOLTZHASH_DATA=... python -m experiments.runs.code_disagreement

μ > 0 thresholds the marginals of what training samples (r ~ N(μ, Σ), s ~ Bernoulli(σ(r))). The
Boltzmann machine has other marginals: its conditional logit is μ_i + ½ Σ_ii + Σ_{j≠i} Σ_ij s_j. On
the test documents, at 32 bits, with the defaults, as published and with a KL weight of 1, this
compares μ > 0 bit by bit with

- *conditional*: the sign of b's conditional logit, all other bits held at the code;
- *marginal*: b's marginal P(s_i = 1) > ½ by Gibbs sampling, started at the code.

It also measures the precision of the top 100 on val when the marginal code is used instead.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import pack
from boltzhash.hashers.shared.inference import Posterior
from boltzhash.metrics import ranking
from experiments.results.files import write
from experiments.runs.corpora import corpus
from experiments.runs.evaluation import TOP, conditional_logits
from experiments.runs.runner import circumstances, every_param, identity, make
from experiments.runs.sweeps import (
    CORRELATED,
    DEFAULT,
    MAIN,
    PUBLISHED,
    Run,
    grid,
    objective,
    unfinished,
)

SWEEPS, BURN_IN, BITS, SEED = 300, 50, 32, 0
# With the paper's weight of 1, |μ| is smaller and the two have more room to differ.
AT_ONE = [objective(*CORRELATED, "printed", 0.0), objective(*CORRELATED, "rearranged", 1.0)]
RUNS = grid("disagreement", [PUBLISHED, DEFAULT, *AT_ONE], MAIN, [BITS], [SEED])


def gibbs_marginals(p: Posterior, rng: np.random.Generator) -> NDArray[np.float64]:
    """P_b(s_i = 1), Rao-Blackwellised: the mean of the conditional probabilities along a chain."""
    s = (p.location > 0).astype(np.float64)
    projected = np.einsum("nmv,nm->nv", p.factor, s)
    norms = np.square(p.factor).sum(axis=2)
    total = np.zeros_like(s)
    for sweep in range(SWEEPS):
        for i in range(s.shape[1]):
            without = projected - p.factor[:, i] * s[:, i, None]
            half_variance = 0.5 * (p.diagonal[:, i] + norms[:, i])
            logit = p.location[:, i] + half_variance + (p.factor[:, i] * without).sum(axis=1)
            probability = 1 / (1 + np.exp(-logit))
            s[:, i] = rng.random(len(s)) < probability
            projected = without + p.factor[:, i] * s[:, i, None]
            if sweep >= BURN_IN:
                total[:, i] += probability
    return np.asarray(total / (SWEEPS - BURN_IN))


def compare(run: Run, device: str) -> dict[str, Any]:
    data = corpus(run.corpus)
    hasher = make(run, device)
    start = time.perf_counter()
    hasher.fit(data.train.tfidf)
    seconds = time.perf_counter() - start
    test = hasher.posterior(data.test.tfidf)
    code = test.location > 0
    off_diagonal = test.covariance() * (1 - np.eye(BITS))
    rng = np.random.default_rng(SEED)
    by_marginal = gibbs_marginals(test, rng) > 0.5
    by_conditional = conditional_logits(test, code.astype(np.float64)) > 0

    def precision(database: NDArray[np.bool_], queries: NDArray[np.bool_]) -> float:
        codes, query_codes = pack(database), pack(queries)
        labels, query_labels = data.train.labels, data.val.labels
        found = ranking.precision(
            query_codes, codes, query_labels=query_labels, labels=labels, k=TOP
        )
        return float(found.mean())

    train, val = hasher.posterior(data.train.tfidf), hasher.posterior(data.val.tfidf)
    return {
        **identity(run, every_param(hasher)),
        "documents": len(code),
        "bits_differ_conditional": float((code != by_conditional).mean()),
        "bits_differ_marginal": float((code != by_marginal).mean()),
        "documents_differ_marginal": float((code != by_marginal).any(axis=1).mean()),
        "mean_deviation": float(np.sqrt(test.variances()).mean()),
        "mean_abs_coupling": float(np.abs(off_diagonal).sum() / (len(code) * BITS * (BITS - 1))),
        "mean_abs_location": float(np.abs(test.location).mean()),
        "val_precision_location": precision(train.location > 0, val.location > 0),
        "val_precision_marginal": precision(
            gibbs_marginals(train, rng) > 0.5, gibbs_marginals(val, rng) > 0.5
        ),
        "seconds": round(seconds, 2),
        "data_sha256": data.sha256,
        **circumstances(device),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1, help="models trained side by side")
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for result in pool.map(partial(compare, device=options.device), unfinished(RUNS)):
            write("disagreement", result)
            print(result["run"], flush=True)


if __name__ == "__main__":
    main()
