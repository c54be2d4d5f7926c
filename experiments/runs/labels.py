"""Codes that were taught labels: all of them, a tenth, none, or labels that mean nothing.

    BOLTZHASH_DATA=... python -m experiments.runs.labels SemanticHasher VDSH-S --workers 8

A run is a method, a corpus, a length, a seed and a teaching: "none", the share of the training documents
whose labels are given ("0.1", "1"), or "random", where all are given and each document has those of
another. Queries, database and precision are those of every experiment; models are measured at the last
epoch. Beside ours stand VDSH-S and NASH-S, as published, and the class probabilities of a logistic
regression as codes.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes, bit_balance, distinct, pack, unpack
from boltzhash.metrics import precision
from boltzhash.text.tfidf import unit_rows
from experiments.results.files import Result
from experiments.runs.corpora import CORPORA, Corpus, Split, corpus
from experiments.runs.runner import circumstances, every_param, identity, make, sweep
from experiments.runs.sweeps import DEFAULT, Run, Settings, unfinished

TEACHINGS = ("none", "0.1", "1", "random")
LOGISTIC = "logistic-regression"
TOP = 100


RIVALS = [
    Settings("VDSH-S", "VDSH", as_published=True),
    Settings("NASH-S", "NASH", as_published=True),
    Settings(LOGISTIC, "LogisticRegression"),
]
OURS = [
    DEFAULT,
    *(Settings(name, name) for name in ("NASH", "BMSH", "VDSH", "GMSH", "Doc2hash", "RBSH")),
]
METHODS = {settings.name: settings for settings in (*OURS, *RIVALS)}


@dataclass(frozen=True)
class TaughtRun(Run):
    """A run, and which labels it is given."""

    teaching: str

    @property
    def name(self) -> str:
        return f"{super().name}-{self.teaching}"


def given_labels(split: Split, teaching: str, seed: int) -> list[list[int] | None] | None:
    """The labels that a fit is given: a list of numbers, or None, for each document."""
    if teaching == "none":
        return None
    rng = np.random.default_rng([seed, 1])
    labels = [np.flatnonzero(row).tolist() for row in split.labels]
    if teaching == "random":
        return [labels[other] for other in rng.permutation(len(labels))]
    chosen = rng.permutation(len(labels)) < float(teaching) * len(labels)
    return [own if is_given else None for own, is_given in zip(labels, chosen, strict=True)]


def measure(run: TaughtRun, device: str) -> Result:
    """Fit and evaluate one model."""
    data = corpus(run.corpus)
    given = given_labels(data.train, run.teaching, run.seed)
    start = time.perf_counter()
    labelling = None
    if run.settings.name == LOGISTIC:
        codes = class_codes(data, given, run.bits, run.seed)
        params: dict[str, Any] = {}
    else:
        hasher = make(run, device)
        hasher.fit(data.train.tfidf, given)
        labelling = hasher.labelling_ and hasher.labelling_._asdict()
        params = every_param(hasher)
        codes = {
            part: hasher.encode(getattr(data, part).tfidf) for part in ("train", "val", "test")
        }
    seconds = time.perf_counter() - start
    precision = {part: precision_of(codes, data, part) for part in ("val", "test")}
    return {
        **identity(run, params),
        "teaching": run.teaching,
        "labelling": labelling,
        "precision": {"label-free": precision["test"]},
        "val_precision": precision["val"],
        "distinct_codes": distinct(codes["train"]),
        "bit_balance": round(bit_balance(unpack(codes["train"])), 4),
        "seconds": round(seconds, 2),
        "data_sha256": data.sha256,
        **circumstances(device if run.settings.name != LOGISTIC else "cpu"),
    }


def precision_of(codes: dict[str, Codes], data: Corpus, part: str) -> float:
    """Of the top 100 by Hamming distance; a hit is relevant when it shares a label with the query."""
    queries: Split = getattr(data, part)
    labels, query_labels = data.train.labels, queries.labels
    found = precision(codes[part], codes["train"], query_labels=query_labels, labels=labels, k=TOP)
    return float(found.mean())


def class_codes(
    data: Corpus, given: list[list[int] | None] | None, bits: int, seed: int
) -> dict[str, Codes]:
    """Codes from the probabilities of classes: the signs of Σ_c p_c h_c, each h_c drawn from ±1."""
    assert given is not None, "logistic regression needs labels"
    known = np.array([labels is not None for labels in given])
    n_classes = data.train.labels.shape[1]
    truth = np.zeros((len(given), n_classes), dtype=bool)
    for row, labels in enumerate(given):
        truth[row, labels or []] = True
    words = np.random.default_rng([seed, 2]).choice([-1.0, 1.0], (n_classes, bits))
    classify = fitted_classifier(unit_rows(data.train.tfidf[known]), truth[known], seed)
    return {
        part: pack(classify(unit_rows(getattr(data, part).tfidf)) @ words > 0)
        for part in ("train", "val", "test")
    }


def fitted_classifier(rows: Any, truth: NDArray[np.bool_], seed: int) -> Any:
    """From tf-idf to probabilities (n, n_classes): multinomial, or one a label if some have several."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    model = LogisticRegression(C=10.0, max_iter=200, random_state=seed)
    there = np.flatnonzero(truth.any(axis=0))
    if (truth.sum(axis=1) == 1).all():
        fitted = model.fit(rows, truth[:, there].argmax(axis=1))
    else:
        fitted = OneVsRestClassifier(model).fit(rows, truth[:, there])

    def probabilities(of: Any) -> NDArray[np.float64]:
        wide = np.zeros((of.shape[0], truth.shape[1]))
        wide[:, there] = fitted.predict_proba(of)
        return wide

    return probabilities


def runs_of(options: argparse.Namespace) -> list[Run]:
    """Seeds go slowest, so that an interrupted sweep has whole tables first."""
    return [
        TaughtRun("labels", METHODS[name], corpus, bits, seed, teaching)
        for seed in options.seeds
        for name in options.methods
        for corpus in options.corpora
        for bits in options.bits
        for teaching in options.teachings
        if not (name == LOGISTIC and teaching == "none")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "methods", nargs="+", choices=METHODS, metavar="METHOD", help=", ".join(METHODS)
    )
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=["ng20"])
    parser.add_argument("--bits", nargs="+", type=int, default=[32])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--teachings", nargs="+", choices=TEACHINGS, default=TEACHINGS)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seconds", type=float, help="start no run after so long")
    options = parser.parse_args()
    todo = unfinished(runs_of(options))
    sweep(todo, partial(measure, device=options.device), options.workers, options.seconds)


if __name__ == "__main__":
    main()
