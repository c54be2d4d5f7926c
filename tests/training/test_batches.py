"""Batches that cover everything once, rows taken on a device, targets mixed with a neighbour's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from boltzhash.training.batches import (
    Documents,
    Plan,
    RowsOnDevice,
    drawn_ranks,
    minibatches,
    take_batch,
)
from boltzhash.training.rows import Rows, SparseRows

CPU = torch.device("cpu")


@pytest.mark.parametrize("batch_size", [1, 3, 7, 10, 25])
def test_batches_cover_every_row_once_in_order(batch_size: int) -> None:
    rng = np.random.default_rng(0)
    one = sparse.random(10, 6, 0.3, format="csr", random_state=rng)
    other = sparse.random(10, 4, 0.5, format="csr", random_state=rng)
    order = rng.permutation(10)
    batches = list(minibatches([one, other], batch_size, order, CPU))
    for number, matrix in enumerate((one, other)):
        rows = [batch[number] for batch in batches]
        sparse_rows = [r for r in rows if isinstance(r, SparseRows)]
        assert [r.n_rows for r in sparse_rows[:-1]] == [batch_size] * (len(batches) - 1)
        seen = torch.cat([r.dense(matrix.shape[1]) for r in sparse_rows]).numpy()
        np.testing.assert_array_equal(seen, matrix.toarray()[order])


def test_features_come_dense_beside_sparse_words() -> None:
    rng = np.random.default_rng(0)
    words = sparse.random(10, 6, 0.3, format="csr", random_state=rng, dtype=np.float32)
    features = rng.standard_normal((10, 4)).astype(np.float32)
    order = rng.permutation(10)
    batches = list(minibatches([features, words], 3, order, CPU))
    assert [len(batch[1].dense(6)) for batch in batches] == [3, 3, 3, 1]  # type: ignore[union-attr]
    seen = torch.cat([batch[0] for batch in batches])  # type: ignore[misc]
    np.testing.assert_array_equal(seen.numpy(), features[order])


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("density", [0.0, 0.05, 0.5, 1.0])
def test_rows_taken_by_number_are_those_of_the_matrix(dense: bool, density: float) -> None:
    """Dense or sparse on the device, empty rows, and the same row twice."""
    rng = np.random.default_rng(1)
    matrix = sparse.random(30, 12, density, format="csr", random_state=rng)
    rows = RowsOnDevice(matrix, CPU, dense)
    taken = rng.integers(30, size=50)
    np.testing.assert_array_equal(
        rows.take(torch.from_numpy(taken)).numpy(), matrix.toarray().astype(np.float32)[taken]
    )


def test_features_on_a_device_are_taken_by_number() -> None:
    rng = np.random.default_rng(1)
    features = rng.standard_normal((30, 12)).astype(np.float32)
    taken = rng.integers(30, size=50)
    rows = RowsOnDevice(features, CPU).take(torch.from_numpy(taken))
    np.testing.assert_array_equal(rows.numpy(), features[taken])


def test_a_plan_draws_each_document_once_and_one_of_its_neighbours() -> None:
    targets = sparse.csr_matrix(np.eye(6, dtype=np.float32))
    neighbours = np.array([[(i + 1) % 6, (i + 2) % 6] for i in range(6)])
    documents = Documents(targets, targets, neighbours=neighbours, neighbour_share=0.25)
    counts = np.zeros((6, 6))
    rng = np.random.default_rng(0)
    for _ in range(400):
        plan = documents.draw(rng)
        assert sorted(plan.order) == list(range(6))
        assert plan.neighbour is not None
        shuffled = documents.mixed_targets(plan.order, plan.neighbour).dense(6).numpy()
        mixed = np.empty_like(shuffled)
        mixed[plan.order] = shuffled
        np.testing.assert_allclose(mixed.diagonal(), 0.75)
        np.testing.assert_allclose(mixed.sum(axis=1), 1)
        counts += mixed
    mean = np.array([[0.125 * (j in row) for j in range(6)] for row in neighbours])
    np.testing.assert_allclose(counts / 400, mean + 0.75 * np.eye(6), atol=0.04)


def test_near_neighbours_are_drawn_more_often() -> None:
    """P(rank ≤ j) = P(k u² < j + 1) = √((j + 1) / k); 1 is even."""
    rng = np.random.default_rng(0)
    for nearness in (1.0, 2.0):
        ranks = drawn_ranks(40_000, 5, nearness, rng)
        expected = (np.arange(1, 6) / 5) ** (1 / nearness)
        seen = np.bincount(ranks, minlength=5).cumsum() / 40_000
        np.testing.assert_allclose(seen, expected, atol=0.01)


def test_without_neighbours_targets_are_left_alone() -> None:
    targets = sparse.csr_matrix(np.eye(3, dtype=np.float32))
    documents = Documents(targets, targets)
    plan = documents.draw(np.random.default_rng(0))
    assert plan.neighbour is None
    assert plan.companions == []
    batch = take_batch(documents, plan, plan.order, torch.tensor(0.0), torch.Generator())
    assert isinstance(batch.targets, SparseRows)
    np.testing.assert_array_equal(batch.targets.dense(3).numpy(), np.eye(3)[plan.order])


def test_what_goes_with_a_document_is_in_its_row() -> None:
    """Row i of each part of a batch belongs to the same document, whatever the order."""
    numbers = np.arange(1, 8, dtype=np.float32)
    matrix = sparse.csr_matrix(np.diag(numbers))
    documents = Documents(matrix, 10 * matrix, neighbour_share=0.5, labels=100 * matrix)
    order = np.array([4, 0, 6, 2, 5, 1, 3])
    neighbour, companion = (np.arange(7) + 1) % 7, (np.arange(7) + 2) % 7
    plan = Plan(order, [companion], neighbour)

    def dense(rows: Rows | None) -> np.ndarray:
        assert isinstance(rows, SparseRows)
        return rows.dense(7).numpy()

    seen = []
    for rows in plan.batches(3):
        batch = take_batch(documents, plan, rows, torch.tensor(0.0), torch.Generator())
        seen.append(
            [
                *map(dense, (batch.inputs, batch.targets, *batch.companions, batch.neighbour)),
                dense(batch.labels),
            ]
        )
    inputs, targets, companions, neighbours, labels = (
        np.vstack(parts) for parts in zip(*seen, strict=True)
    )
    rows_of = np.diag(numbers)
    np.testing.assert_array_equal(inputs, rows_of[order])
    np.testing.assert_array_equal(targets, 5 * (rows_of[order] + rows_of[neighbour[order]]))
    np.testing.assert_array_equal(companions, rows_of[companion[order]])
    np.testing.assert_array_equal(neighbours, rows_of[neighbour[order]])
    np.testing.assert_array_equal(labels, 100 * rows_of[order])
