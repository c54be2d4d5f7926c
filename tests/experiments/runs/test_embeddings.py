"""Codes from sentence embeddings: which runs there are, and what is measured."""

from __future__ import annotations

import numpy as np
import pytest

from boltzhash.codes import unpack
from experiments.runs import embeddings


def test_cosine_counts_shared_labels_among_the_hundred_nearest() -> None:
    rng = np.random.default_rng(0)
    sizes = {"train": 150, "val": 4, "test": 5}
    vectors = {part: rng.normal(size=(n, 6)) for part, n in sizes.items()}
    labels = {part: rng.random((n, 4)) < 0.3 for part, n in sizes.items()}
    found = embeddings.by_cosine(vectors, labels)
    for part in ("val", "test"):
        shares = []
        for vector, wanted in zip(vectors[part], labels[part], strict=True):
            cosines = [vector @ v / np.linalg.norm(v) for v in vectors["train"]]
            nearest = sorted(range(150), key=lambda i: -cosines[i])[:100]
            shares.append(np.mean([(labels["train"][i] & wanted).any() for i in nearest]))
        assert found[part] == pytest.approx(np.mean(shares))


def test_signs_are_those_of_the_vectors_less_the_mean_of_train() -> None:
    rng = np.random.default_rng(1)
    vectors = {part: rng.normal(loc=3.0, size=(20, 16)) for part in ("train", "val", "test")}
    codes = embeddings.signs({}, vectors, 16, 0)
    for part in ("train", "val", "test"):
        expected = vectors[part] - vectors["train"].mean(axis=0) > 0
        np.testing.assert_array_equal(unpack(codes[part]), expected)
