"""Measure the loss of a model as documents move away from those of its fit.

    BOLTZHASH_DATA=... python -m experiments.runs.drift --seeds 0 1

*dates*: Reuters by its official split, which is by date. Old documents are the official train, new ones
the official test. *topics-P*: 20 Newsgroups, old documents from ten groups, of the new ones P per cent
from the ten others. *mix*: all new ones from two of the old groups, which is no drift that a fit could
mend. Of each, some new documents are queries, all others the database.

Compared are the model of the old documents (stale) and one of all of them (fresh). Precision of the top
100 by labels, 32 bits; for topics and mix without a second training. The signs of drift are those that
``boltzhash stats`` shows. Finished runs are skipped.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import math
import os
import random
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash import Neighbours, SemanticHasher
from boltzhash.collection.drift import LATEST, measured_drift
from boltzhash.corpus import Document
from boltzhash.encoding.coding import Input, coded_documents
from boltzhash.metrics import precision
from experiments.results.files import Result, read_all, rounded, write
from experiments.runs.corpora import checksum
from experiments.runs.runner import circumstances
from experiments.runs.sweeps import CORRELATED_BITS

BITS, SEEDS = 32, (0, 1)
SHARES = (0, 25, 50, 100)  # per cent of the new documents that are from groups never seen
N_OLD, N_NEW, N_QUERIES = 2500, 1000, 500

MODELS = ("stale", "fresh")

Row = dict[str, Any]


class Fitted(NamedTuple):
    """A model, of how many documents, and the seconds of CPU time that its fit took."""

    model: SemanticHasher
    n_documents: int
    cpu_seconds: float


class Scene(NamedTuple):
    """Old documents, new ones, and queries that are like the new ones."""

    old: list[Row]
    new: list[Row]
    queries: list[Row]
    second_training: bool | None  # False halves the time; the corpus chooses by default
    sha256: str


def by_date(seed: int) -> Scene:
    rows, sha256 = _rows("reuters")
    old = [row for row in rows if row["official_split"] == "train"]
    new = [row for row in rows if row["official_split"] == "test"]
    random.Random(seed).shuffle(new)
    return Scene(old, new[N_QUERIES:], new[:N_QUERIES], None, sha256)


def by_topics(share: int, seed: int) -> Scene:
    rows, sha256 = _rows("ng20")
    groups = sorted({row["labels"][0] for row in rows})
    before = [row for row in rows if row["labels"][0] in groups[:10]]
    after = [row for row in rows if row["labels"][0] in groups[10:]]
    for some in (before, after):
        random.Random(seed).shuffle(some)
    n_unseen = (N_NEW + N_QUERIES) * share // 100
    later = before[N_OLD : N_OLD + N_NEW + N_QUERIES - n_unseen] + after[:n_unseen]
    random.Random(seed).shuffle(later)
    return Scene(before[:N_OLD], later[N_QUERIES:], later[:N_QUERIES], False, sha256)


def by_mix(seed: int) -> Scene:
    rows, sha256 = _rows("ng20")
    groups = sorted({row["labels"][0] for row in rows})
    before = [row for row in rows if row["labels"][0] in groups[:10]]
    random.Random(seed).shuffle(before)
    later = [row for row in before[N_OLD:] if row["labels"][0] in groups[:10:5]]
    later = later[: N_NEW + N_QUERIES]
    return Scene(before[:N_OLD], later[N_QUERIES:], later[:N_QUERIES], False, sha256)


def scene_of(name: str, seed: int) -> Scene:
    if name == "dates":
        return by_date(seed)
    return by_mix(seed) if name == "mix" else by_topics(int(name.partition("-")[2]), seed)


def _rows(name: str) -> tuple[list[Row], str]:
    if "BOLTZHASH_DATA" not in os.environ:
        raise SystemExit("set BOLTZHASH_DATA to the folder with the corpora (docs/datasets.md)")
    path = Path(os.environ["BOLTZHASH_DATA"], f"{name}.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines], checksum([path])


def fitted(how: str, scene: Scene, seed: int) -> Fitted:
    documents = scene.old if how == "stale" else scene.old + scene.new
    model = SemanticHasher(
        BITS,
        random_state=seed,
        **CORRELATED_BITS,
        neighbours=Neighbours(second_training=scene.second_training),
    )
    start = time.process_time()
    model.fit(_texts(documents))
    return Fitted(model, len(documents), time.process_time() - start)


def measure(name: str, how: str, seed: int, scene: Scene, fit: Fitted) -> Result:
    model = fit.model
    queries, database = model.encode(_texts(scene.queries)), scene.old + scene.new
    relevant, labels = _labels(scene.queries, database)
    found = precision(queries, model.encode(_texts(database)), query_labels=relevant, labels=labels)
    epochs = model.history_[-1].epoch
    result = {
        "run": f"{name}-{how}-{seed}",
        "scene": name,
        "model": how,
        "seed": seed,
        "bits": BITS,
        "precision": float(np.mean(found)),
        "words": model.n_features_in_,
        "epochs": epochs,
        "steps": epochs * math.ceil(fit.n_documents / model.get_params()["training__batch_size"]),
        "cpu_seconds": fit.cpu_seconds,
        "data_sha256": scene.sha256,
        **circumstances("cpu"),
    }
    return {**result, "drift": _drift(model, scene)} if how == "stale" else result


def _drift(model: SemanticHasher, scene: Scene) -> dict[str, Any]:
    """What a collection would say whose latest documents are the new ones."""
    latest = [Input(Document(row["id"], row["text"])) for row in scene.new[-LATEST:]]
    drift = measured_drift(model, coded_documents(model, latest))
    assert drift is not None  # it was fitted now
    return drift.as_json()


def _texts(rows: list[Row]) -> list[str]:
    return [row["text"] for row in rows]


def _labels(*parts: list[Row]) -> list[NDArray[np.bool_]]:
    names = sorted({label for rows in parts for row in rows for label in row["labels"]})
    return [np.array([[n in row["labels"] for n in names] for row in rows]) for rows in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    scenes = ["dates", "mix", *(f"topics-{share}" for share in SHARES)]
    parser.add_argument("--scenes", nargs="+", choices=scenes, default=scenes)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    options = parser.parse_args()
    done = {result["run"] for result in read_all("drift")}
    stale_of: dict[tuple[str, int], Fitted] = {}  # the same for all scenes of a corpus
    for name, seed in itertools.product(options.scenes, options.seeds):
        scene = scene_of(name, seed)
        for how in MODELS:
            if f"{name}-{how}-{seed}" in done:
                continue
            if how == "fresh":
                fit = fitted(how, scene, seed)
            else:
                old = (scene.sha256, seed)
                fit = stale_of.get(old) or stale_of.setdefault(old, fitted(how, scene, seed))
            result = rounded(measure(name, how, seed, scene, fit))
            write("drift", result)
            print(result["run"], f"{result['precision']:.4f}", flush=True)


if __name__ == "__main__":
    main()
