"""VDSH's files: small ones in all layouts, wrong ones, and the benchmark's where at hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from boltzhash.corpus import CorpusError
from boltzhash.datasets.vdsh import load_mat
from boltzhash.errors import MissingExtraError


def parts() -> dict[str, Any]:
    """Two, three and four documents of five words and three labels, as the literature has them."""
    rng = np.random.default_rng(0)
    contents: dict[str, Any] = {}
    for number, name in enumerate(("train", "cv", "test"), start=2):
        contents[name] = sparse.csc_matrix(
            rng.random((number, 5)) * (rng.random((number, 5)) < 0.6)
        )
        contents[f"gnd_{name}"] = (rng.random((number, 3)) < 0.5).astype(np.uint8)
    return contents


def check(path: Path, expected: dict[str, Any] | None = None) -> None:
    """What is read is what :func:`parts` holds."""
    expected = expected or parts()
    for name, split in zip(("train", "cv", "test"), load_mat(path), strict=True):
        assert isinstance(split.tfidf, sparse.csr_matrix)
        assert (split.tfidf.toarray() == expected[name].toarray()).all()
        assert split.tfidf.dtype == np.float64
        assert split.labels.dtype == np.bool_
        assert (split.labels == expected[f"gnd_{name}"].astype(bool)).all()


def changed(**changes: Any) -> dict[str, Any]:
    """``words``, ``labels``: what is done to each of the matrices."""
    same = np.copy
    labels, words = changes.get("labels", same), changes.get("words", lambda matrix: matrix)
    return {
        name: (labels if name.startswith("gnd_") else words)(value)
        for name, value in parts().items()
    }


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"words": lambda m: m.toarray()},
        {"labels": sparse.csc_matrix},
        {"labels": lambda m: m.astype(float)},
        {"words": lambda m: m.T, "labels": np.transpose},
        {"words": lambda m: m.T},
        {"labels": np.transpose},
        {"words": lambda m: m.toarray().T, "labels": lambda m: sparse.csc_matrix(m.T)},
    ],
    ids="plain dense sparse-labels float-labels transposed words labels both-dense".split(),
)
@pytest.mark.parametrize("write", ["5", "4", "7.3"])
def test_layouts(tmp_path: Path, changes: dict[str, Any], write: str) -> None:
    path = tmp_path / "small.mat"
    contents = changed(**changes)
    if write == "7.3":
        write_hdf5(path, contents)
    else:
        if write == "4":
            contents = {
                n: v if sparse.issparse(v) else v.astype(float) for n, v in contents.items()
            }
        savemat(path, contents, format=write)
    check(path)


def write_hdf5(path: Path, contents: dict[str, Any]) -> None:
    """As MATLAB 7.3 does: a header of 512 bytes, columns first, sparse matrices as groups."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in contents.items():
            if sparse.issparse(value):
                value = sparse.csc_matrix(value)
                group = file.create_group(name)
                group.attrs["MATLAB_sparse"] = np.uint64(value.shape[0])
                group["jc"] = value.indptr.astype(np.uint64)
                if value.nnz:
                    group["data"], group["ir"] = value.data, value.indices.astype(np.uint64)
            else:
                file[name] = np.ascontiguousarray(np.asarray(value).T)
        file.create_group("#refs#")
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Jan  1 00:00:00 2018 HDF5"
    with path.open("r+b") as raw:
        raw.write(header.ljust(124) + b"\x00\x02IM")


def test_squares_of_hdf5_are_not_turned(tmp_path: Path) -> None:
    """Nothing but the format says here which way round they are."""
    rng = np.random.default_rng(1)
    contents = {n: rng.random((5, 5)) < 0.5 for n in parts()}
    write_hdf5(tmp_path / "small.mat", {n: v.astype(float) for n, v in contents.items()})
    words = {n: sparse.csc_matrix(v.astype(float)) for n, v in contents.items() if "gnd" not in n}
    check(tmp_path / "small.mat", contents | words)


def test_an_empty_sparse_matrix_of_hdf5(tmp_path: Path) -> None:
    contents = {**parts(), "cv": sparse.csc_matrix((3, 5))}
    write_hdf5(tmp_path / "small.mat", contents)
    check(tmp_path / "small.mat", contents)


@pytest.mark.parametrize("as_row", [False, True])
def test_class_numbers(tmp_path: Path, as_row: bool) -> None:
    """One column of classes 1, 4 and 7 is three columns of 0 and 1."""
    classes = {"train": [7, 1], "cv": [1, 1, 4], "test": [4, 7, 7, 1]}
    contents = parts() | {f"gnd_{n}": np.array([c]).T for n, c in classes.items()}
    if as_row:
        contents = {n: v.T if n.startswith("gnd_") else v for n, v in contents.items()}
    savemat(tmp_path / "small.mat", contents)
    splits = load_mat(tmp_path / "small.mat")
    assert splits.val.labels.tolist() == [[True, False, False]] * 2 + [[False, True, False]]
    assert splits.test.labels.argmax(axis=1).tolist() == [1, 2, 2, 0]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"gnd_cv": np.eye(2, 3)},
            r"expected one row of labels for each document, got train \(2, 5\)",
        ),
        (
            {"gnd_cv": np.eye(3, 2)},
            r"the same labels in train, cv and test, got \[3, 2, 3\] columns",
        ),
        (
            {"test": np.ones((4, 6))},
            r"the same words in train, cv and test, got \[5, 5, 6\] columns",
        ),
        ({"gnd_cv": np.full((3, 3), 2)}, "expected labels 0 and 1 in gnd_cv, got others"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    savemat(tmp_path / "x.mat", parts() | changes)
    with pytest.raises(CorpusError, match=rf"x\.mat: .*{problem}"):
        load_mat(tmp_path / "x.mat")


def test_damaged_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    savemat(path, parts(), do_compression=True)
    whole = path.read_bytes()
    for contents in (b"", b"no such file" * 50, whole[: len(whole) // 2]):
        path.write_bytes(contents)
        with pytest.raises(
            CorpusError, match=r"x\.mat: expected an intact \.mat file, got: |not one of"
        ):
            load_mat(path)
    write_hdf5(path, parts())
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(CorpusError, match=r"x\.mat: expected an intact \.mat file, got: "):
        load_mat(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_mat(tmp_path / "nowhere.mat")


def test_hdf5_without_h5py_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hdf5(tmp_path / "x.mat", parts())
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"needs h5py, .*: pip install 'boltzhash\[hdf5\]'"):
        load_mat(tmp_path / "x.mat")


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
