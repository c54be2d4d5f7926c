"""VDSH's files: a small one in the real layout, a wrong one, and the real ones where at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from boltzhash.datasets.vdsh import load_mat


def test_layout(tmp_path: Path) -> None:
    parts = {}
    for number, name in enumerate(("train", "cv", "test"), start=2):
        parts[name] = sparse.eye(number, 5, format="csc")
        parts[f"gnd_{name}"] = np.eye(number, 3)
    parts["gnd_test"] = sparse.csc_matrix(parts["gnd_test"])
    savemat(tmp_path / "small.mat", parts)
    splits = load_mat(tmp_path / "small.mat")
    assert [split.tfidf.shape for split in splits] == [(2, 5), (3, 5), (4, 5)]
    assert splits.test.labels.dtype == np.bool_
    assert (splits.test.labels == np.eye(4, 3).astype(bool)).all()
    assert (splits.val.tfidf.toarray() == np.eye(3, 5)).all()


def test_another_file_is_named(tmp_path: Path) -> None:
    savemat(tmp_path / "other.mat", {"train": np.eye(2), "gnd_train": np.eye(2)})
    with pytest.raises(ValueError, match=r"other\.mat is not one of VDSH's files: no cv and test"):
        load_mat(tmp_path / "other.mat")


@pytest.mark.parametrize(
    ("name", "rows"), [("ng20", (11292, 3763, 3764)), ("reuters", (8631, 1079, 1079))]
)
def test_benchmark_files(data_folder: Path, name: str, rows: tuple[int, ...]) -> None:
    splits = load_mat(data_folder / f"{name}.tfidf.mat")
    assert tuple(split.tfidf.shape[0] for split in splits) == rows
    assert all(split.labels.any(axis=1).all() for split in splits)
