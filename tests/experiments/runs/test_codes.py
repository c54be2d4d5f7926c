"""What is kept of codes to draw: maps, and the correlations of bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from boltzhash import Neighbours, SemanticHasher, Training
from boltzhash.codes import unpack
from boltzhash.hashers.shared.inference import Posterior
from boltzhash.metrics import precision
from experiments.figures import codes as code_figures
from experiments.runs import codes, corpora, sweeps


def test_the_mean_of_sigma_is_that_of_the_matrices() -> None:
    rng = np.random.default_rng(0)
    posterior = Posterior(np.zeros((9, 6)), rng.random((9, 6)), rng.normal(size=(9, 6, 3)))
    mean = posterior.covariance().mean(axis=0)
    deviations = np.sqrt(np.diag(mean))
    expected = mean / np.outer(deviations, deviations)
    assert codes.mean_correlation(posterior) == pytest.approx(expected)


def test_a_matrix_comes_back_to_three_digits() -> None:
    correlations = np.corrcoef(np.random.default_rng(0).normal(size=(10, 30)))
    kept = codes.above_diagonal(correlations)
    assert code_figures.square(kept, 10) == pytest.approx(correlations, abs=0.0005)


def test_a_picture_is_of_the_codes_of_the_test_documents(
    small_corpus: Callable[[str], Path],
) -> None:
    small_corpus("ng20")
    data = corpora.corpus("ng20")
    settings = sweeps.Settings(
        "SemanticHasher", "SemanticHasher", {"training__epochs": 2, "neighbours__count": 3}
    )
    found = codes.picture(sweeps.Run("codes", settings, "ng20", 16, 0), data, "cpu")

    hasher = SemanticHasher(
        16,
        random_state=0,
        training=Training(epochs=2, device="cpu"),
        neighbours=Neighbours(count=3),
    ).fit(data.train.tfidf)
    queries, database = hasher.transform(data.test.tfidf), hasher.transform(data.train.tfidf)
    expected_precision = precision(
        queries, database, query_labels=data.test.labels, labels=data.train.labels, k=100
    )
    assert found["precision"] == {"label-free": float(expected_precision.mean())}
    with np.errstate(invalid="ignore"):  # bits that never change
        expected = np.nan_to_num(np.corrcoef(unpack(queries).T))
    kept = code_figures.square(found["code_correlation"], 16)
    above = np.triu_indices(16, 1)
    assert kept[above] == pytest.approx(expected[above], abs=0.0005 + 1e-12)  # three digits
    sigma = codes.mean_correlation(hasher.posterior(data.test.tfidf))
    assert found["learned_correlation"] == codes.above_diagonal(sigma)
    assert found["groups"] == (np.arange(20) % 4).tolist()
    points = np.array(found["points"])
    assert points.shape == (20, 2)
    assert points.min(axis=0).tolist() == [0, 0]
    assert points.max(axis=0).tolist() == [1000, 1000]
