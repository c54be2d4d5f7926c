"""Which labels the runs are given, and what a classifier's probabilities become."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from boltzhash.codes import hamming
from experiments.runs.corpora import Corpus, Split
from experiments.runs.labels import class_codes, given_labels


def small_corpus() -> Corpus:
    """Two classes of sixty documents, of two words each and some of a third."""
    rng = np.random.default_rng(0)
    classes = np.repeat([0, 1], 60)
    words = np.zeros((120, 5))
    words[np.arange(120), 2 * classes + rng.integers(2, size=120)] = 1
    words[:, 4] = rng.random(120)
    split = Split(sparse.csr_matrix(words), np.eye(2, dtype=bool)[classes])
    return Corpus(split, split, split, "none")


def test_given_labels() -> None:
    train = small_corpus().train
    truth = [[0]] * 60 + [[1]] * 60
    assert given_labels(train, "none", 0) is None
    assert given_labels(train, "1", 0) == truth
    some = given_labels(train, "0.1", 0)
    assert some is not None
    assert sum(labels is not None for labels in some) == 12
    assert all(labels in (None, own) for labels, own in zip(some, truth, strict=True))
    assert some != given_labels(train, "0.1", 1)
    shuffled = given_labels(train, "random", 0)
    assert shuffled is not None
    assert shuffled != truth
    assert sorted(map(str, shuffled)) == sorted(map(str, truth))


def test_class_codes_are_one_code_a_class() -> None:
    data = small_corpus()
    codes = class_codes(data, given_labels(data.train, "0.1", 0), 32, seed=0)["test"]
    distances = hamming(codes, codes)
    same = np.equal.outer(np.repeat([0, 1], 60), np.repeat([0, 1], 60))
    assert distances[same].max() == 0
    assert distances[~same].min() > 4
