"""Seconds per epoch by (v, k) against NASH: the paper's Table 4. Needs the GPU to itself.

BOLTZHASH_DATA=... python -m experiments.runs.timings
"""

from __future__ import annotations

import time
from typing import Any

from experiments import paper
from experiments.results.files import write
from experiments.runs.corpora import corpus
from experiments.runs.runner import circumstances

FEW, MANY = 10, 60  # epochs of two fits; what the second takes longer is training alone
BITS, BATCH = 64, 100


def seconds_an_epoch(hasher: Any, name: str) -> float:
    """Of what a longer fit adds: preparation and the recording of steps are in both."""

    def fitted_in(epochs: int) -> float:
        start = time.perf_counter()
        hasher.set_params(training__epochs=epochs).fit(corpus(name).train.tfidf)
        return time.perf_counter() - start

    fitted_in(FEW)  # once for what is set up only once
    few, many = fitted_in(FEW), fitted_in(MANY)
    return (many - few) / (MANY - FEW)


def main() -> None:
    from boltzhash.hashers import NASH, CorrSH

    settings: dict[str, Any] = {"training__batch_size": BATCH}
    hashers: dict[str, Any] = {"NASH": NASH(BITS).set_params(**settings)}
    for v, k in paper.SECONDS:
        hashers[f"v{v}-k{k}"] = CorrSH.as_published(BITS, rank=v, n_components=k, **settings)
    for name, hasher in hashers.items():
        seconds = seconds_an_epoch(hasher, "tmc")
        print(name, f"{seconds:.4f} s per epoch", flush=True)
        result = {"run": name, "settings": name, "corpus": "tmc", "bits": BITS, "batch_size": BATCH}
        write("timings", {**result, "seconds_an_epoch": seconds, **circumstances("auto")})


if __name__ == "__main__":
    main()
