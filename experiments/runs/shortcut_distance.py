"""How far the Gaussian shortcut is from the Boltzmann posterior that it stands for.

    python -m experiments.runs.shortcut_distance   # a minute on one core; make tables draws
    BOLTZHASH_DATA=... python -m experiments.runs.shortcut_distance --trained --device cuda

Training draws s ~ Bernoulli(σ(r)) with r ~ N(μ, Σ) in place of b(s) ∝ exp(½ sᵀΣs + μᵀs). This
measures the total variation distance of the two, while the variances, the couplings or the number
of bits grow. Bits lean alternately to on and off, μ = +1, −1, +1, ...

- *By enumeration*, up to 16 bits, for any U. b is exact. The shortcut's probabilities are averages
  over draws of the shared noise ε₂, given which bits are independent; their private noise ε₁ is
  integrated. Estimates that enter an absolute value push the distance up, so it is bracketed: the
  plain estimate is never too low in expectation, and one which takes the sign of each difference
  from the other half of the draws is never too high.
- *Trained*: by enumeration as well, for the posteriors that models of 16 bits have of 100 documents.
- *By counts*, any even number of bits, where all entries of U are equal: both laws then depend only
  on how many bits of either leaning are on, and both are exact.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from boltzhash.hashers.shared.inference import logistic_normal_mean
from boltzhash.training.distributions import Boltzmann, LowRankCovariance
from experiments.results.files import Result, rounded, write
from experiments.runs.corpora import corpus
from experiments.runs.runner import circumstances, identity, make
from experiments.runs.sweeps import (
    CORRELATED,
    MAIN,
    PUBLISHED,
    Run,
    correlated,
    grid,
    objective,
    unfinished,
)

Floats = NDArray[np.float64]
Record = dict[str, Any]

BATCHES, DRAWS_PER_BATCH = 16, 512
REPEATS = 20  # different U of the same strength
PUBLISHED_RANK = 10
PUBLISHED_DEVIATION = math.log(2)  # softplus(0): where training starts
SMALL_DEVIATION = 0.1  # for couplings to be seen alone


DOCUMENTS = 100  # of test, the first
# The defaults of longer codes, at a length that can be enumerated.
LONGER = correlated("SemanticHasher", neighbours__contrast_codes="bits", neighbours__nearness=2.0)
TRAINED = grid(
    "shortcut-trained",
    [LONGER, PUBLISHED, objective(*CORRELATED, "printed", 0.0)],
    MAIN,
    [16],
    [0],
)


class Distance(NamedTuple):
    """Total variation, how well it is known, and in what the two laws differ."""

    tv: float
    low: float  # tv is too high in expectation, this too low; equal where both laws are exact
    error: float  # standard error of tv
    ones: tuple[float, float]  # share of bits that are on: b, shortcut
    covariance: tuple[float, float] | None  # mean |covariance| of two bits: b, shortcut


def leanings(n_bits: int) -> Floats:
    return np.where(np.arange(n_bits) % 2 == 0, 1.0, -1.0)


def products(p: Floats) -> Floats:
    """Π p_i or 1 − p_i for every code of the given bits, in the order of ``enumerate_codes``."""
    table = np.ones((len(p), 1))
    for column in p.T[:, :, None]:
        table = np.stack([table * (1 - column), table * column], axis=2).reshape(len(p), -1)
    return table


def mean_code_probabilities(p: Floats) -> Floats:
    """Rows of independent bits → the mean probability of every code.

    A code is its first and second half, so the mean over rows is one product of two matrices.
    """
    half = p.shape[1] // 2
    return np.asarray(products(p[:, :half]).T @ products(p[:, half:])).ravel() / len(p)


def moments(probabilities: Floats, codes: Floats) -> tuple[float, float]:
    """Share of bits on, and mean |covariance| of two bits (a bit that never varies has one too)."""
    mean = probabilities @ codes
    centred = codes - mean
    covariance = centred.T @ (probabilities[:, None] * centred)
    pairs = covariance[np.triu_indices(len(mean), 1)]
    return float(mean.mean()), float(np.abs(pairs).mean())


def alternating(deviation: float, factor: Floats, rng: np.random.Generator) -> Distance:
    """Distance for μ = +1, −1, +1, …, D^½ the same on all bits and any U of shape (m, v)."""
    m = len(factor)
    return by_enumeration(leanings(m), np.full(m, deviation), factor, rng)


def by_enumeration(
    location: Floats, deviation: Floats, factor: Floats, rng: np.random.Generator
) -> Distance:
    """Distance for any μ and D^½, (m,), and U, (m, v)."""
    boltzmann = Boltzmann(
        torch.from_numpy(location),
        LowRankCovariance(torch.from_numpy(deviation), torch.from_numpy(factor)),
    )
    support = boltzmann.enumerate_support()
    b: Floats = boltzmann.log_weight(support).softmax(0).numpy()

    nodes = 16 if deviation.max() <= 0.7 else 48  # to 1e-11 at deviations up to 0.7
    batches = []
    for _ in range(BATCHES):
        shared = location + rng.standard_normal((DRAWS_PER_BATCH, factor.shape[1])) @ factor.T
        private = np.broadcast_to(deviation**2, shared.shape)
        bits = logistic_normal_mean(shared, private, nodes=nodes)
        batches.append(mean_code_probabilities(bits))
    estimates = np.array(batches)
    q = estimates.mean(axis=0)

    larger = q > b
    gains = estimates[:, larger].sum(axis=1) - b[larger].sum()
    first, second = estimates[::2].mean(axis=0), estimates[1::2].mean(axis=0)
    crossed = [(y - b)[x > b].sum() for x, y in ((first, second), (second, first))]
    codes = support.numpy()
    ones, covariance = zip(moments(b, codes), moments(q, codes), strict=True)
    return Distance(
        tv=float(gains.mean()),
        low=float(np.mean(crossed)),
        error=float(gains.std(ddof=1) / math.sqrt(BATCHES)),
        ones=ones,
        covariance=covariance,
    )


def log_binomials(n: int, logits: Floats) -> Floats:
    """log P(j of n bits are on), j = 0..n on a new last dimension."""
    j = np.arange(n + 1)
    choose = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)
    return np.asarray(choose + j * logits[..., None] - n * np.logaddexp(0, logits)[..., None])


def by_counts(n_bits: int, deviation: float, coupling: float) -> Distance:
    """Distance for Σ = D + c 11ᵀ, all couplings equal: exact for any even number of bits."""
    half = n_bits // 2
    on = np.arange(half + 1)
    total = on[:, None] + on
    b = log_binomials(half, np.array(1.0))[:, None] + log_binomials(half, np.array(-1.0))
    b = b + 0.5 * (deviation**2 * total + coupling * total**2)
    b = np.exp(b - logsumexp(b))

    # The shared noise by the trapezoid rule: its error vanishes exponentially for such integrands.
    z = np.linspace(-9, 9, 181)
    weights = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    tables = []
    for leaning in (1.0, -1.0):
        mean = leaning + math.sqrt(coupling) * z
        p = logistic_normal_mean(mean, np.full_like(mean, deviation**2), nodes=200)
        tables.append(np.exp(log_binomials(half, np.log(p / (1 - p)))))
    q = np.einsum("z,zi,zj->ij", weights, *tables)

    tv = 0.5 * float(np.abs(q - b).sum())
    ones = (float((b * total).sum() / n_bits), float((q * total).sum() / n_bits))
    return Distance(tv, tv, 0.0, ones, None)


def record(series: str, x: float, distances: Iterable[Distance]) -> Record:
    """One point of a line: the mean over repeats, its error, and how different the repeats are."""
    repeats = list(distances)
    n = len(repeats)
    point: Record = {
        "series": series,
        "x": x,
        "tv": np.mean([d.tv for d in repeats]),
        "tv_low": np.mean([d.low for d in repeats]),
        "standard_error": math.sqrt(sum(d.error**2 for d in repeats)) / n,
        "quartiles": np.quantile([d.tv for d in repeats], [0.25, 0.75]).tolist(),
        "ones": np.mean([d.ones for d in repeats], axis=0).tolist(),
        "repeats": n,
    }
    covariances = [d.covariance for d in repeats if d.covariance is not None]
    if covariances:
        point["covariance"] = np.mean(covariances, axis=0).tolist()
    return point


def directions(n_bits: int, rank: int, repeat: int) -> Floats:
    """A random U with rows of length 1: scaled by √x it gives every bit the variance x."""
    factor = np.random.default_rng([1, rank, repeat]).standard_normal((n_bits, rank))
    return np.asarray(factor / np.linalg.norm(factor, axis=1, keepdims=True))


def published_factor(n_bits: int, rank: int, repeat: int) -> Floats:
    """U = tanh(·) / v as in the authors' code, of standard normal network outputs.

    More bits are more rows of the same matrix, so that a line shows bits being added.
    """
    outputs = np.random.default_rng([2, rank, repeat]).standard_normal((n_bits, rank))
    return np.asarray(np.tanh(outputs) / rank)


def measure_variance() -> list[Record]:
    return [
        record(f"m = {m}", x, [by_counts(m, math.sqrt(x), 0.0)])
        for m in (2, 8, 32, 128)
        for x in np.geomspace(0.01, 10, 13)
    ]


def measure_coupling(n_bits: int = 8) -> list[Record]:
    strengths = np.geomspace(0.01, 10, 13)
    points = [
        record("no coupling", x, [by_counts(n_bits, math.sqrt(SMALL_DEVIATION**2 + x), 0.0)])
        for x in strengths
    ]
    for rank in (1, 2, 3):
        factors = [directions(n_bits, rank, repeat) for repeat in range(REPEATS)]
        for x in strengths:
            rng = np.random.default_rng([3, rank])
            distances = [alternating(SMALL_DEVIATION, x**0.5 * u, rng) for u in factors]
            points.append(record(f"rank {rank}", x, distances))
    return points


def measure_bits() -> list[Record]:
    v, points = PUBLISHED_RANK, []
    for m in (2, 4, 8, 16, 32, 64, 128):
        points.append(record("v = 0", m, [by_counts(m, PUBLISHED_DEVIATION, 0.0)]))
        strongest = by_counts(m, PUBLISHED_DEVIATION, 1 / v)  # UUᵀ of v columns, each entry 1/v
        points.append(record(f"v = {v}, all U = 1/v", m, [strongest]))
    for m in (2, 4, 6, 8, 10, 12, 14, 16):
        for rank in (1, v):
            rng = np.random.default_rng([4, rank])
            factors = [published_factor(m, rank, repeat) for repeat in range(REPEATS)]
            distances = [alternating(PUBLISHED_DEVIATION, u, rng) for u in factors]
            points.append(record(f"v = {rank}, random U", m, distances))
    return points


def measure_check() -> Record:
    """The two ways of measuring on the same posterior: 8 bits, all U = 1/v."""
    m, v = 8, PUBLISHED_RANK
    enumerated = alternating(
        PUBLISHED_DEVIATION, np.full((m, v), 1 / v), np.random.default_rng([5])
    )
    counted = by_counts(m, PUBLISHED_DEVIATION, 1 / v)
    difference = abs(enumerated.tv - counted.tv)
    if difference > 5 * enumerated.error:
        raise AssertionError(f"enumeration and counts differ: {enumerated} and {counted}")
    return {
        "by_enumeration": enumerated.tv,
        "standard_error": enumerated.error,
        "by_counts": counted.tv,
    }


def measure_trained(run: Run, device: str) -> Result:
    """Of a trained model: the distance for the posteriors of some documents of test."""
    data = corpus(run.corpus)
    hasher = make(run, device).fit(data.train.tfidf)
    p = hasher.posterior(data.test.tfidf[:DOCUMENTS])
    rng = np.random.default_rng([6])
    distances = [
        by_enumeration(location, np.sqrt(diagonal), factor, rng)
        for location, diagonal, factor in zip(*p, strict=True)
    ]
    point = record("trained", run.bits, distances)
    return {
        **identity(run, hasher.get_params()),
        **rounded({name: value for name, value in point.items() if name not in ("series", "x")}),
        "mean_abs_location": rounded(float(np.abs(p.location).mean())),
        "mean_deviation": rounded(float(np.sqrt(p.variances()).mean())),
        "data_sha256": data.sha256,
        **circumstances(device),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trained", action="store_true", help="of trained models, not of plots")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1, help="models trained side by side")
    options = parser.parse_args()
    if options.trained:
        with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
            todo = unfinished(TRAINED)
            for result in pool.map(partial(measure_trained, device=options.device), todo):
                write("shortcut-trained", result)
                print(result["run"], flush=True)
        return
    result = {
        "run": "total-variation",
        "measure": "total variation distance of the shortcut from the Boltzmann distribution",
        "location": "+1 and -1 alternately",
        "draws": BATCHES * DRAWS_PER_BATCH,
        "check": measure_check(),
        "variance": measure_variance(),
        "coupling": measure_coupling(),
        "bits": measure_bits(),
        **circumstances("cpu"),
    }
    write("shortcut-distance", rounded(result))


if __name__ == "__main__":
    main()
