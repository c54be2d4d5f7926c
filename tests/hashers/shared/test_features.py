"""Features read, checked, paired with documents and scaled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from boltzhash.errors import ModelError
from boltzhash.hashers.shared.features import (
    BLOCK,
    FeatureScaling,
    check_features,
    feature_blocks,
    read_features,
)

SIZES = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 5]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("counted", [False, True])
def test_blocks_are_the_rows_in_order(n: int, counted: bool) -> None:
    features = np.random.default_rng(0).standard_normal((n, 3)).astype(np.float32)
    blocks = list(feature_blocks(features, iter(["text"] * n) if counted else None))
    assert all(block.dtype == np.float64 and len(block) <= BLOCK for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), features)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("more", [1, BLOCK, 2 * BLOCK + 1])
def test_rows_must_be_as_many_as_documents(n: int, more: int) -> None:
    features = np.zeros((n, 3))
    with pytest.raises(ValueError, match=f"got {n} rows for {n + more} documents"):
        list(feature_blocks(features, iter(["text"] * (n + more))))
    features = np.zeros((n + more, 3))
    with pytest.raises(ValueError, match=f"got {n + more} rows for {n} documents"):
        list(feature_blocks(features, iter(["text"] * n)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_named_with_its_place(bad: float) -> None:
    features = np.zeros((BLOCK + 9, 4))
    features[BLOCK + 7, 2] = bad
    with pytest.raises(ValueError, match=f"got {bad} in row {BLOCK + 7}, column 2"):
        list(feature_blocks(features))


@pytest.mark.parametrize(
    ("features", "came"),
    [
        (np.zeros(4), r"an array of shape \(4,\)"),
        (np.zeros((2, 3, 4)), r"an array of shape \(2, 3, 4\)"),
        (np.zeros((4, 0)), r"an array of shape \(4, 0\)"),
        (np.zeros((4, 3), dtype=int), "an array of int64"),
        (np.zeros((4, 3), dtype=bool), "an array of bool"),
        (np.zeros((4, 3), dtype=complex), "an array of complex128"),
        ([["a", "b"]], "an array of <U1"),
        ([[0.5], [0.5, 0.25]], "list: "),
        (sparse.csr_matrix((4, 3)), "a sparse one: tf-idf goes into X"),
        ("vectors.npy", "an array of <U11"),
    ],
)
def test_what_is_no_matrix_of_floats_is_named(features: Any, came: str) -> None:
    with pytest.raises(ValueError, match=f"^features must be a matrix of floats.*, got {came}"):
        check_features(features)


def test_columns_are_those_of_the_fit() -> None:
    assert check_features(np.zeros((2, 3)), 3).shape == (2, 3)
    with pytest.raises(ValueError, match="features must have 4 columns, as they had in fit, got 3"):
        check_features(np.zeros((2, 3)), 4)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, ">f4"])
def test_scaling_centres_and_gives_rows_a_length(kind: Any) -> None:
    features = np.random.default_rng(0).normal(3, 5, (BLOCK + 500, 7)).astype(kind)
    scaled = FeatureScaling.learn(features, 16.0)(features.astype(np.float64))
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    assert np.square(scaled).sum(axis=1).mean() == pytest.approx(16**2)
    centred = features.astype(np.float64) - features.astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(scaled / scaled[0, 0], centred / centred[0, 0], rtol=1e-9)


def test_without_a_length_rows_stay_as_they_are() -> None:
    features = np.random.default_rng(0).normal(3, 5, (20, 7))
    np.testing.assert_array_equal(FeatureScaling.learn(features, None)(features), features)


@pytest.mark.parametrize(
    ("features", "came"),
    [(np.full((5, 3), 0.25), "all the same"), (np.diag([1e300, 1e300]), "too large to be squared")],
)
def test_features_that_cannot_be_scaled(features: Any, came: str) -> None:
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=f"got rows that are {came}"):
        FeatureScaling.learn(features, 16.0)


def test_scaling_comes_back_from_its_arrays() -> None:
    scaling = FeatureScaling(np.array([0.1, 1 / 3]), 1 / 7)
    back = FeatureScaling.from_arrays(scaling.arrays())
    assert back is not None
    assert (back.mean.tobytes(), back.factor) == (scaling.mean.tobytes(), scaling.factor)
    assert FeatureScaling.from_arrays({"n_features": np.array([3])}) is None
    for name, damaged in {
        "features.mean": np.zeros((2, 2)),
        "features.factor": np.array([np.nan]),
    }.items():
        with pytest.raises(ModelError, match="one mean per column and one factor"):
            FeatureScaling.from_arrays({**scaling.arrays(), name: damaged})


def test_a_file_is_mapped_and_not_read(tmp_path: Path) -> None:
    expected = np.random.default_rng(0).standard_normal((6, 3))
    np.save(tmp_path / "vectors.npy", expected)
    features = read_features(tmp_path / "vectors.npy")
    assert isinstance(features, np.memmap)
    np.testing.assert_array_equal(features, expected)


def test_a_file_that_is_no_matrix_of_floats_is_named(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    for content in (b"", b"0.5 0.25\n", b"\x93NUMPY\x01\x00"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"vectors\.npy: expected an \.npy file of floats"):
            read_features(path)
    np.save(path, np.arange(6).reshape(2, 3))
    with pytest.raises(ValueError, match=r"vectors\.npy must be a matrix of floats.*int64"):
        read_features(path)
    np.save(path, np.array([[{"a": 1}]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"vectors\.npy: expected an \.npy file of floats"):
        read_features(path)
    np.savez(tmp_path / "both.npz", a=np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"both\.npz: expected an \.npy file of floats"):
        read_features(tmp_path / "both.npz")
    with pytest.raises(FileNotFoundError):
        read_features(tmp_path / "none.npy")
