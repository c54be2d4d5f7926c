"""What StackedRBM alone does: its counts, pretraining, binary code units, reports and checkpoints."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from boltzhash import StackedRBM, Training
from boltzhash.codes import unpack
from boltzhash.errors import ModelError, TrainingError
from boltzhash.hashers.stacked_rbm import word_counts
from boltzhash.training import loop
from boltzhash.training.rbm import RBM, Unrolled
from boltzhash.training.rows import SparseRows


def quick(**changes: Any) -> StackedRBM:
    settings = {
        "n_bits": 16,
        "hidden_units": (32, 24),
        "pretraining_epochs": 20,
        "pretraining_rate": 0.02,
        "training__epochs": 30,
        "training__learning_rate": 0.02,
        "training__batch_size": 30,
        "training__device": "cpu",
    }
    return StackedRBM().set_params(**{**settings, **changes})


def sparse_rows(matrix: sparse.csr_matrix) -> SparseRows:
    return SparseRows(
        *(torch.from_numpy(part) for part in (matrix.indices, matrix.data, matrix.indptr))
    )


def test_counts_keep_the_shares_of_tfidf_and_sum_to_the_number_of_different_words() -> None:
    matrix = sparse.csr_matrix([[0.2, 0.0, 0.6], [0.0, 5.0, 0.0], [0.0, 0.0, 0.0]])
    expected = [[0.5, 0.0, 1.5], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(word_counts(matrix).toarray(), expected, rtol=1e-15)
    assert matrix.data.tolist() == [0.2, 0.6, 5.0]


@pytest.mark.parametrize("hidden_units", [(), (12,), (32, 24), (20, 10, 12)])
def test_numpy_activities_are_the_twin_of_the_trained_network(
    texts: list[str], hidden_units: tuple[int, ...]
) -> None:
    hasher = quick(hidden_units=hidden_units).fit(texts)
    matrix = word_counts(hasher.tfidf(texts)).astype(np.float32)
    sizes = [matrix.shape[1], *hidden_units, 16]
    stack = [RBM(torch.zeros(n, m), torch.zeros(n), torch.zeros(m)) for n, m in pairwise(sizes)]
    network = Unrolled(stack)
    network.encoder.load_state_dict({k: torch.from_numpy(v) for k, v in hasher.weights_.items()})
    trained = network.code_logits(sparse_rows(matrix)).sigmoid().detach()
    np.testing.assert_allclose(hasher.code_activities(texts), trained, atol=1e-4)


def test_a_bit_is_on_where_its_activity_is_above_the_threshold(texts: list[str]) -> None:
    hasher = quick().fit(texts)
    activities = hasher.code_activities(texts)
    for threshold in (0.1, 0.5, 0.9):
        hasher.set_params(threshold=threshold)
        assert (unpack(hasher.transform(texts)) == (activities > threshold)).all()
    assert ((activities > 0.1) != (activities > 0.9)).any()


def test_noise_makes_the_code_units_binary(texts: list[str]) -> None:
    """The reason for the noise: without it activities carry information by being in between."""

    def between(noise: float) -> float:
        activities = quick(code_noise=noise, training__epochs=100).fit(texts).code_activities(texts)
        return float(np.minimum(activities, 1 - activities).mean())

    assert between(4.0) < 0.5 * between(0.0)


def test_every_machine_learns(texts: list[str]) -> None:
    history = quick().fit(texts).pretraining_history_
    assert [(r.layer, r.epoch) for r in history] == [
        (layer, epoch) for layer in (1, 2, 3) for epoch in range(1, 21)
    ]
    for layer in (1, 2, 3):
        reached = [r.reconstruction for r in history if r.layer == layer]
        assert reached[-1] > reached[0] + 0.5


def test_fine_tuning_starts_where_pretraining_ended(texts: list[str]) -> None:
    """More pretraining says more of the words before fine-tuning has moved a weight."""
    settings = {
        "training__epochs": 1,
        "training__learning_rate": 1e-9,
        "code_noise": 0.0,
        "threshold": 0.5,
    }
    short, long = (
        quick(pretraining_epochs=n, **settings).fit(texts).history_[0].reconstruction
        for n in (5, 100)
    )
    assert long > short + 1


def test_fine_tuning_improves_on_pretraining(texts: list[str]) -> None:
    history = quick(training__epochs=100).fit(texts).history_
    assert [record.epoch for record in history] == list(range(1, 101))
    assert history[-1].reconstruction > history[0].reconstruction + 2
    assert {record.kl for record in history} == {0.0}


def test_small_corpora_get_enough_steps() -> None:
    assert StackedRBM(training=Training(batch_size=100))._n_epochs(1000) == 30
    assert StackedRBM(training=Training(batch_size=1))._n_epochs(1000) == 8
    assert StackedRBM(training=Training(epochs=3))._n_epochs(1000) == 3


def test_diverged_pretraining_is_reported_and_leaves_nothing_fitted(texts: list[str]) -> None:
    hasher = quick(pretraining_rate=1e38)
    message = r"pretraining diverged in epoch \d+ of layer 1.*pretraining_rate=1e\+38.*try 1e\+37"
    with pytest.raises(TrainingError, match=message):
        hasher.fit(texts)
    with pytest.raises(ValueError, match="not fitted"):
        hasher.transform(texts)


def test_diverged_fine_tuning_is_reported_and_leaves_no_checkpoint(
    texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    with pytest.raises(TrainingError, match=r"training diverged in epoch .* learning_rate=1e.38"):
        quick(training__learning_rate=1e38).fit(texts, checkpoint=tmp_path / "checkpoint")
    assert list(tmp_path.iterdir()) == []


def test_collapse_is_reported() -> None:
    """Documents that differ in length alone have the same counts and so the same code."""
    matrix = np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    with pytest.raises(TrainingError, match=r"all 3 documents got the same code.*learning_rate"):
        quick().fit(matrix)


def test_a_resumed_fit_has_the_history_of_pretraining(
    texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    whole, again = (
        quick(training__epochs=3).fit(texts, checkpoint=tmp_path / "c") for _ in range(2)
    )
    assert again.pretraining_history_ == whole.pretraining_history_
    assert again.fingerprint() == whole.fingerprint()


@pytest.mark.parametrize(
    ("name", "shape"), [("0.weight", (3, 32)), ("1.bias", (25,)), ("2.weight", (24, 8))]
)
def test_weights_of_another_shape_are_refused(
    texts: list[str], name: str, shape: tuple[int, ...]
) -> None:
    hasher = quick(training__epochs=1, threshold=0.5).fit(texts)
    with pytest.raises(ModelError, match=f"weights '{name}' should have shape"):
        hasher._set_arrays({**hasher._arrays(), name: np.zeros(shape, dtype=np.float32)})
    missing = {key: array for key, array in hasher._arrays().items() if key != name}
    with pytest.raises(ModelError, match=f"weights '{name}' should have shape .* got nothing"):
        hasher._set_arrays(missing)


@pytest.mark.slow
def test_precision_on_reuters(data_folder: Path) -> None:
    """Above the S-RBM of the literature, .6154 at 32 bits; measured: .67."""
    from boltzhash.datasets.vdsh import load_mat
    from boltzhash.metrics import precision

    splits = load_mat(data_folder / "reuters.tfidf.mat")
    hasher = StackedRBM(32).fit(splits.train.tfidf)
    codes = hasher.transform(splits.train.tfidf)
    queries = hasher.transform(splits.test.tfidf)
    found = precision(queries, codes, query_labels=splits.test.labels, labels=splits.train.labels)
    assert found.mean() > 0.64
