"""Precision after every epoch, on a device, against the library's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from boltzhash import SNUH, VDSH, Neighbours, Network, SemanticHasher, Training
from boltzhash.codes import pack
from boltzhash.metrics import precision
from experiments.runs import corpora, evaluation


@pytest.mark.parametrize("n_bits", [8, 32])
def test_precision_on_a_device_is_the_library_s(n_bits: int) -> None:
    rng = np.random.default_rng(n_bits)
    queries, codes = rng.random((20, n_bits)) < 0.5, rng.random((300, n_bits)) < 0.5
    query_labels, labels = rng.random((20, 5)) < 0.3, rng.random((300, 5)) < 0.3
    relevant = (query_labels.astype(int) @ labels.T.astype(int)) > 0
    found = evaluation.expected_precision_on_device(
        *map(torch.from_numpy, (queries, codes, relevant))
    )
    expected = precision(
        pack(queries), pack(codes), query_labels=query_labels, labels=labels, k=100
    ).mean()
    assert found == pytest.approx(expected, abs=1e-12)


def made_up_corpus(seed: int) -> Any:
    """Random words and labels."""
    rng = np.random.default_rng(seed)

    def split(n: int) -> Any:
        words = sparse.csr_matrix(rng.random((n, 40)) * (rng.random((n, 40)) < 0.2))
        return corpora.Split(words, rng.random((n, 4)) < 0.4)

    return corpora.Corpus(split(300), split(20), split(30), f"made up, {seed}")


@pytest.mark.parametrize(
    "hasher",
    [
        SemanticHasher(
            16,
            training=Training(epochs=2, device="cpu"),
            neighbours=Neighbours(count=5),
            network=Network(hidden_units=16),
        ),
        SemanticHasher(
            64,
            training=Training(epochs=2, device="cpu"),
            neighbours=Neighbours(count=5),
            network=Network(hidden_units=16),
        ),
        VDSH(16, training=Training(epochs=2, device="cpu"), network=Network(hidden_units=16)),
        SNUH(16, training=Training(epochs=2, device="cpu")),
    ],
    ids=["one network", "two networks", "medians", "no hidden layers"],
)
def test_curve_on_a_device_is_the_library_s_to_rounding(hasher: Any) -> None:
    """Most documents share a code, so that ties matter."""
    corpus = made_up_corpus(hasher.n_bits)
    curve = evaluation.Curve(corpus, torch.device("cpu"))
    hasher.fit(corpus.train.tfidf, on_epoch=curve)
    at_the_end = evaluation.final(hasher, corpus).means()
    on_device = evaluation.OnDevice(corpus, torch.device("cpu"))(hasher)
    assert on_device == pytest.approx(at_the_end, abs=1e-3)
    assert curve.epochs[-1] == (2, *(round(value, 5) for value in at_the_end))


def test_how_sure_a_model_is_of_its_bits() -> None:
    """In blocks, and of models that have no such posterior nothing."""
    corpus = made_up_corpus(3)
    hasher = SemanticHasher(
        16,
        training=Training(epochs=2, device="cpu"),
        neighbours=Neighbours(count=0),
        network=Network(hidden_units=16),
    )
    hasher.fit(corpus.train.tfidf)
    found = evaluation.posterior_figures(hasher, corpus)
    p = hasher.posterior(corpus.test.tfidf)
    assert found is not None
    assert found["mean_abs_location"] == pytest.approx(np.abs(p.location).mean())
    assert found["mean_deviation"] == pytest.approx(np.sqrt(p.variances()).mean())
    off = p.covariance()[:, ~np.eye(16, dtype=bool)]
    assert found["mean_abs_coupling"] == pytest.approx(np.abs(off).mean())
    logits = evaluation.conditional_logits(p, (p.location > 0).astype(float))
    assert found["bits_differ"] == ((logits > 0) != (p.location > 0)).mean()
    assert evaluation.posterior_figures(VDSH(16), corpus) is None


def test_medians_left_to_the_curve_are_the_library_s_at_the_end() -> None:
    corpus = made_up_corpus(3)
    settings: dict[str, Any] = {
        "training__epochs": 3,
        "network__hidden_units": 16,
        "training__device": "cpu",
    }
    plain = VDSH(16).set_params(**settings).fit(corpus.train.tfidf)
    curve = evaluation.Curve(corpus, torch.device("cpu"))
    curve._on_device = evaluation.OnDevice(corpus, torch.device("cpu"))
    hasher = VDSH(16).set_params(**settings)
    curve.leave_medians(hasher)
    seen = []
    hasher.fit(
        corpus.train.tfidf,
        on_epoch=lambda fitted: (curve(fitted), seen.append("medians" in fitted.weights_)),
    )
    assert seen == [False, False, True]
    assert len(curve.epochs) == 3
    np.testing.assert_array_equal(hasher.weights_["medians"], plain.weights_["medians"])
