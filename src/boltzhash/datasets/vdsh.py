"""VDSH's ``.mat`` files, the layout in which the semantic-hashing literature shares its corpora.

``train``, ``cv`` and ``test`` hold one document per row (tf-idf, sparse), ``gnd_train``, ``gnd_cv`` and
``gnd_test`` its labels as 0/1 columns. The files that circulate are MATLAB 5 files with these names;
copies that others have re-saved differ, so the following are read as well: dense matrices, sparse
labels, labels as one column (or row) of class numbers, documents as columns, and MATLAB 7.3 (HDF5).
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from boltzhash.corpus import CorpusError
from boltzhash.errors import needs_extra

_NAMES = ("train", "cv", "test")


class Split(NamedTuple):
    """One part of a corpus: ``tfidf`` (n_documents, n_words) and ``labels`` (n_documents, n_labels)."""

    tfidf: sparse.csr_matrix
    labels: NDArray[np.bool_]


class Splits(NamedTuple):
    """The parts of a corpus, with the same words and the same labels."""

    train: Split
    val: Split
    test: Split


def load_mat(path: str | Path) -> Splits:
    """Read ``train``, ``cv`` and ``test`` with their ``gnd_`` labels.

    Parameters
    ----------
    path
        A ``.mat`` file; one of version 7.3 needs ``pip install 'boltzhash[hdf5]'``.

    Returns
    -------
    Splits
        ``train``, ``val`` (the file's ``cv``) and ``test``, each with ``tfidf``, a sparse matrix of
        float64 (n_documents, n_words), and ``labels``, a bool array (n_documents, n_labels).

    Raises
    ------
    CorpusError
        The file is damaged, or its matrices do not belong together; the message says which.
    """
    contents = _contents(Path(path))
    missing = [n for n in _NAMES if n not in contents or f"gnd_{n}" not in contents]
    if missing:
        raise CorpusError(f"{path} is not one of VDSH's files: no {' and '.join(missing)} in it")
    matrices = {name: sparse.csr_matrix(contents[name]) for name in _NAMES}
    labels = {name: _dense(contents[f"gnd_{name}"]) for name in _NAMES}
    matrices, labels = _documents_as_rows(matrices, labels, path)
    if all(labels[name].shape[1] == 1 for name in _NAMES):
        labels = _one_hot(labels)
    for kind, arrays in (("words", matrices), ("labels", labels)):
        widths = [arrays[name].shape[1] for name in _NAMES]
        if len(set(widths)) > 1:
            raise CorpusError(
                f"{path}: expected the same {kind} in train, cv and test, got {widths} columns"
            )
    for name in _NAMES:
        if not np.isin(labels[name], (0, 1)).all():
            raise CorpusError(f"{path}: expected labels 0 and 1 in gnd_{name}, got others")
    train, val, test = (
        Split(matrices[name].astype(np.float64), labels[name].astype(bool)) for name in _NAMES
    )
    return Splits(train, val, test)


def _contents(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected a .mat file, got no such file")
    try:
        return dict(loadmat(path))
    except NotImplementedError:  # version 7.3, which is HDF5
        return _hdf5_contents(path)
    except (MatReadError, ValueError, TypeError, OSError, EOFError) as error:
        raise CorpusError(f"{path}: expected an intact .mat file, got: {error}") from None


def _dense(labels: Any) -> NDArray[Any]:
    return np.asarray(labels.toarray() if sparse.issparse(labels) else labels)


def _documents_as_rows(
    matrices: dict[str, Any], labels: dict[str, Any], path: str | Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Transpose what has its documents in columns, if words and labels together leave no doubt.

    Words and labels are the same in all three parts, documents are not, so the numbers of documents
    of all three must agree before anything is transposed.
    """
    for turn_words, turn_labels in ((False, False), (True, True), (False, True), (True, False)):
        words_axis, labels_axis = int(turn_words), int(turn_labels)
        if all(matrices[n].shape[words_axis] == labels[n].shape[labels_axis] for n in _NAMES):
            if turn_words:
                matrices = {n: sparse.csr_matrix(matrices[n].T) for n in _NAMES}
            if turn_labels:
                labels = {n: labels[n].T for n in _NAMES}
            return matrices, labels
    shapes = ", ".join(f"{n} {matrices[n].shape} and gnd_{n} {labels[n].shape}" for n in _NAMES)
    raise CorpusError(f"{path}: expected one row of labels for each document, got {shapes}")


def _one_hot(labels: dict[str, Any]) -> dict[str, Any]:
    """A column of class numbers as a 0/1 column for each class."""
    classes = np.unique(np.concatenate([labels[name] for name in _NAMES]))
    if set(classes.tolist()) <= {0, 1}:
        return labels  # a corpus of one label
    return {name: labels[name] == classes for name in _NAMES}


def _hdf5_contents(path: Path) -> dict[str, Any]:
    try:
        h5py = importlib.import_module("h5py")
    except ImportError:
        raise needs_extra("a .mat file of version 7.3", "h5py", "hdf5") from None
    try:
        with h5py.File(path) as file:
            return {name: _hdf5_matrix(file[name]) for name in file if not name.startswith("#")}
    except (OSError, KeyError, ValueError) as error:
        raise CorpusError(f"{path}: expected an intact .mat file, got: {error}") from None


def _hdf5_matrix(item: Any) -> Any:
    """MATLAB stores columns first, so dense arrays come transposed; sparse ones are a group."""
    if hasattr(item, "keys"):
        columns = item["jc"][()].astype(np.int64)
        shape = (int(item.attrs["MATLAB_sparse"]), len(columns) - 1)
        if "data" not in item:  # no value other than 0
            return sparse.csc_matrix(shape)
        rows = item["ir"][()].astype(np.int64)
        return sparse.csc_matrix((item["data"][()], rows, columns), shape=shape)
    return item[()].T
