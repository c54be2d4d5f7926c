"""How many steps a fit wants, and how many documents: of a few hundred to a million.

    BOLTZHASH_DATA=... python -m experiments.runs.schedule real --workers 10
    python -m experiments.runs.schedule made-up --documents 100000 1000000

*real*: so many training documents of a labelled corpus, drawn at random; queries are 1,000 documents of
val, the database is what was fitted on, and a tenth of it, 100 at most, is looked at. *made-up*:
documents of 50 words from 200 topics in 20 groups (:func:`made_up`); 2,000 queries, a database of 50,000
others, precision of the top 50; their neighbours are those by words, found exactly on a GPU and as a fit
finds them elsewhere. Batches of 200; finished runs are skipped.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash import SemanticHasher, Training
from boltzhash.datasets import fetch_corpus
from boltzhash.hashers.shared.neighbour_choice import n_neighbours
from boltzhash.hashers.shared.neighbours import SCALES, LatentSemantics, nearest_by_cosine
from boltzhash.metrics import precision
from experiments.results.files import Result, read_all, rounded, write
from experiments.runs.corpora import checksum
from experiments.runs.runner import circumstances
from experiments.runs.sweeps import CORRELATED_BITS

BATCH = 200
FILES = {"newsgroups": "ng20", "reuters": "reuters", "tmc": "tmc", "debian": "debian"}
SIZES, STEPS, SEEDS = (300, 1000, 2500, 4000, 8000), (250, 400, 1000, 2000), (0, 1)
MADE_UP_SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
MADE_UP_STEPS = (1000, 2500, 5000, 10_000, 20_000)
USUAL_EPOCHS = 25
N_WORDS, LENGTH, N_TOPICS, N_GROUPS = 20_000, 50, 200, 20
N_QUERIES, N_DATABASE = 2000, 50_000

Numbers = NDArray[np.int64]


class Fit(NamedTuple):
    """Documents, bits, about how many steps, and whether there may be a second training."""

    corpus: str
    documents: int
    bits: int
    steps: int
    twice: bool
    seed: int

    @property
    def run(self) -> str:
        twice = "twice" if self.twice else "once"
        return f"{self.corpus}-{self.documents}-{self.bits}-{self.steps}-{twice}-{self.seed}"


def real_fits(seeds: Iterable[int]) -> list[Fit]:
    return [
        Fit(corpus, n, bits, steps, twice, seed)
        for seed in seeds
        for n in SIZES
        for bits in (64, 16)
        for corpus in FILES
        for steps in STEPS
        for twice in (True, False)
    ]


def measure_real(fit: Fit, device: str) -> Result:
    data = Path(os.environ["BOLTZHASH_DATA"])
    corpus = fetch_corpus(fit.corpus, data=data)
    taught = np.random.default_rng(fit.seed).permutation(len(corpus.train.texts))[: fit.documents]
    asked = np.random.default_rng(99).permutation(len(corpus.val.texts))[:1000]
    texts = [corpus.train.texts[i] for i in taught]
    hasher = make(fit, len(texts), device)
    hasher.set_params(neighbours__second_training=None if fit.twice else False)
    start = time.perf_counter()
    hasher.fit(texts)
    seconds = time.perf_counter() - start
    found = precision(
        hasher.encode([corpus.val.texts[i] for i in asked]),
        hasher.encode(texts),
        query_labels=corpus.val.labels[asked],
        labels=corpus.train.labels[taught],
        k=min(100, len(texts) // 10),
    )
    sha256 = checksum([data / f"{FILES[fit.corpus]}.jsonl.gz"])
    return result_of(fit, hasher, float(found.mean()), seconds, device) | {"data_sha256": sha256}


def make(fit: Fit, n_documents: int, device: str) -> SemanticHasher:
    epochs = math.ceil(fit.steps / math.ceil(n_documents / BATCH))
    training = Training(epochs=epochs, batch_size=BATCH, device=device)
    return SemanticHasher(fit.bits, training=training, random_state=fit.seed, **CORRELATED_BITS)


def result_of(
    fit: Fit, hasher: SemanticHasher, found: float, seconds: float, device: str
) -> Result:
    result: Result = rounded(
        {
            "run": fit.run,
            **fit._asdict(),
            "epochs": hasher.history_[-1].epoch,
            "precision": found,
            "seconds": seconds,
            **circumstances(device),
        }
    )
    return result


class World(NamedTuple):
    """Words of each group and of each topic, the commonest first; how common words are at all."""

    common: NDArray[np.float64]
    groups: Numbers
    topics: Numbers


def world() -> World:
    rng = np.random.default_rng(7)
    zipf = 1 / np.arange(1, N_WORDS + 1) ** 1.05
    chance = np.sqrt(zipf) / np.sqrt(zipf).sum()

    def drawn(n: int, size: int) -> Numbers:
        return np.stack([rng.choice(N_WORDS, size, replace=False, p=chance) for _ in range(n)])

    return World(np.cumsum(zipf / zipf.sum()), drawn(N_GROUPS, 400), drawn(N_TOPICS, 120))


def made_up(n: int, where: World, seed: int) -> tuple[sparse.csr_matrix, Numbers]:
    """Word counts of documents, and their topics.

    A twentieth to half of a document's words are its topic's, a fifth its group's, 8 % another topic's,
    the rest any words; all as common as Zipf's law says.
    """
    rng = np.random.default_rng(seed)
    topic = rng.integers(N_TOPICS, size=n)
    drawn, kind = rng.random((n, LENGTH)), rng.random((n, LENGTH))
    own = rng.beta(2, 5, size=(n, 1)) * 0.5 + 0.05
    other = rng.integers(N_TOPICS, size=(n, 1))

    def of(words: Numbers) -> Numbers:
        ranks = np.cumsum(1 / np.arange(1, words.shape[1] + 1))
        return np.searchsorted(ranks / ranks[-1], drawn)

    in_topic = of(where.topics)
    words = np.minimum(np.searchsorted(where.common, drawn), N_WORDS - 1)
    words = np.where(kind < own + 0.28, where.topics[other, in_topic], words)
    in_group = where.groups[(topic % N_GROUPS)[:, None], of(where.groups)]
    words = np.where(kind < own + 0.2, in_group, words)
    words = np.where(kind < own, where.topics[topic[:, None], in_topic], words)
    ends = np.arange(0, n * LENGTH + 1, LENGTH)
    counts = sparse.csr_matrix((np.ones(n * LENGTH), words.ravel(), ends), shape=(n, N_WORDS))
    counts.sum_duplicates()
    return counts, topic


def measure_made_up(n: int, seed: int, device: str, done: set[str]) -> None:
    """All numbers of steps for so many documents, whose neighbours are found once."""
    where = world()
    counts, _ = made_up(n, where, seed)
    frequency = np.asarray((counts > 0).sum(axis=0)).ravel()
    known = np.sort(np.argsort(-frequency, kind="stable")[:10_000])
    idf = np.log(n / np.maximum(frequency[known], 1))

    def weighed(counts: sparse.csr_matrix) -> sparse.csr_matrix:
        return sparse.csr_matrix(counts[:, known].multiply(idf))

    rows = weighed(counts)
    rows = rows[np.diff(rows.indptr) > 0]
    queries, asked = made_up(N_QUERIES, where, 1000)
    database, there = made_up(N_DATABASE, where, 1001)
    one_hot = np.eye(N_TOPICS, dtype=bool)
    near = _near(rows, device)
    an_epoch = math.ceil(rows.shape[0] / BATCH)
    usual = max(USUAL_EPOCHS * an_epoch, 1000)
    for steps in sorted({*(s for s in MADE_UP_STEPS if an_epoch <= s < usual), usual}):
        fit = Fit("made-up", n, 64, steps, False, seed)
        if fit.run in done:
            continue
        hasher = make(fit, rows.shape[0], device)
        hasher._given_neighbours = near
        start = time.perf_counter()
        hasher.fit(rows)
        seconds = time.perf_counter() - start
        codes = (hasher.encode(weighed(queries)), hasher.encode(weighed(database)))
        found = precision(*codes, query_labels=one_hot[asked], labels=one_hot[there], k=50).mean()
        write("schedule", result_of(fit, hasher, float(found), seconds, device))
        print(fit.run, f"{found:.4f} {seconds:.0f} s", flush=True)


def _near(rows: sparse.csr_matrix, device: str) -> Numbers:
    k = n_neighbours(rows.shape[0])
    latent = LatentSemantics(rows[:150_000], SCALES, np.random.RandomState(0))
    blocks = [latent(rows[i : i + 50_000]) for i in range(0, rows.shape[0], 50_000)]
    vectors = np.concatenate(blocks)
    return nearest_by_cosine(vectors, k) if device == "cpu" else _nearest_on_gpu(vectors, k)


def _nearest_on_gpu(vectors: NDArray[np.float32], k: int) -> Numbers:
    import torch

    all_of_them = torch.from_numpy(vectors).cuda().half()
    block = max(64, int(4e9 / (4 * len(vectors))))
    found = []
    for start in range(0, len(vectors), block):
        cosines = all_of_them[start : start + block] @ all_of_them.T
        itself = torch.arange(len(cosines), device=cosines.device)
        cosines[itself, start + itself] = -torch.inf
        found.append(cosines.topk(k, dim=1).indices.cpu().numpy())
    return np.concatenate(found)


def side_by_side(todo: list[Fit], measured: Callable[[Fit], Result], workers: int) -> None:
    print(f"{len(todo)} runs to do", flush=True)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(measured, fit) for fit in todo]):
            result = done.result()
            write("schedule", result)
            print(result["run"], f"{result['precision']:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", choices=["real", "made-up"])
    parser.add_argument("--documents", nargs="+", type=int, default=MADE_UP_SIZES)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    done: set[Any] = {result["run"] for result in read_all("schedule")}
    if options.part == "real":
        todo = [fit for fit in real_fits(options.seeds) if fit.run not in done]
        side_by_side(todo, partial(measure_real, device=options.device), options.workers)
        return
    for seed in options.seeds:
        for n in options.documents:
            measure_made_up(n, seed, options.device, done)


if __name__ == "__main__":
    main()
