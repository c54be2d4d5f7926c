"""Dense vectors of documents, such as sentence embeddings: read, checked, paired, scaled."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.errors import ModelError
from boltzhash.hashers.shared.inference import Floats
from boltzhash.storage.folders import Arrays

BLOCK = 1024  # rows that are widened to float64 at a time

Features = NDArray[np.floating]


def read_features(path: str | Path) -> Features:
    """The matrix of an .npy file, mapped into memory, not read; nothing in it is executed.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "vectors.npy")
    >>> np.save(path, np.eye(2, 3, dtype=np.float32))
    >>> read_features(path).shape
    (2, 3)
    """
    return check_features(_mapped(path), name=str(path))


def read_query_features(path: str | Path) -> Features:
    """As :func:`read_features`; a file with one vector is a matrix with one row.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "query.npy")
    >>> np.save(path, np.ones(3, dtype=np.float32))
    >>> read_query_features(path).shape
    (1, 3)
    """
    return check_features(np.atleast_2d(_mapped(path)), name=str(path))


def _mapped(path: str | Path) -> NDArray[Any]:
    try:
        with Path(path).open("rb") as file:
            np.lib.format.read_magic(file)  # np.load would take other files for pickles
        mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: expected an .npy file of floats, got: {error}") from error
    return mapped


def check_features(
    features: Any, n_columns: int | None = None, *, name: str = "features"
) -> Features:
    """The features as an array, refused if they are not a matrix of floats with that many columns.

    Whether the numbers are finite is checked when they are read, a block at a time.

    >>> check_features([0.5, 0.25])
    Traceback (most recent call last):
    ...
    ValueError: features must be a matrix of floats, one row per document, got an array of shape (2,)
    """
    expected = f"{name} must be a matrix of floats, one row per document, got"
    if sparse.issparse(features):
        raise ValueError(f"{expected} a sparse one: tf-idf goes into X")
    try:
        array: NDArray[Any] = np.asanyarray(features)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{expected} {type(features).__name__}: {error}") from error
    if array.dtype.kind != "f":
        raise ValueError(f"{expected} an array of {array.dtype}")
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{expected} an array of shape {array.shape}")
    if n_columns is not None and array.shape[1] != n_columns:
        raise ValueError(
            f"{name} must have {n_columns} columns, as they had in fit, got {array.shape[1]}"
        )
    return array


def check_rows(n_rows: int, n_documents: int) -> None:
    """
    >>> check_rows(3, 2)
    Traceback (most recent call last):
    ...
    ValueError: features must have one row per document, in the same order: got 3 rows for 2 documents
    """
    if n_rows != n_documents:
        raise ValueError(
            "features must have one row per document, in the same order: "
            f"got {n_rows} rows for {n_documents} documents"
        )


def feature_blocks(features: Features, documents: Iterable[Any] | None = None) -> Iterator[Floats]:
    """The rows of (n_documents, n_columns) as float64, a block at a time; at least one block.

    ``documents``, if given, are counted as the blocks go by, and there must be as many of them.
    """
    remaining = iter(range(len(features)) if documents is None else documents)
    for start in itertools.count(step=BLOCK):
        n = sum(1 for _ in itertools.islice(remaining, BLOCK))
        stop, is_last = start + n, n < BLOCK
        if stop > len(features) or (is_last and stop < len(features)):
            check_rows(len(features), stop + sum(1 for _ in remaining))
        if n or not start:
            yield _finite(np.ascontiguousarray(features[start:stop], dtype=np.float64), start)
        if is_last:
            return


def feature_rows(features: Features) -> Iterator[Floats]:
    """The rows one by one as float64, read a block at a time."""
    return (row for block in feature_blocks(features) if len(features) for row in block)


def one_row(features: Any) -> Any:
    """The vector of one query, (n_columns,) or (1, n_columns), as a matrix of one row.

    >>> one_row([0.5, 0.25]).shape
    (1, 2)
    """
    if sparse.issparse(features):
        return features  # which check_features refuses
    rows: NDArray[Any] = np.atleast_2d(np.asarray(features))
    if rows.shape[0] != 1 or rows.ndim != 2:
        raise ValueError(
            f"features must be the vector of one query, got an array of shape {rows.shape}"
        )
    return rows


def check_finite(features: Features) -> None:
    """Refuse numbers that are not finite, naming their row."""
    for _ in feature_blocks(features):
        pass


def _finite(rows: Floats, start: int) -> Floats:
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"features must be finite numbers, got {rows[row, column]} in row {start + row}, "
            f"column {column}"
        )
    return rows


class FeatureScaling(NamedTuple):
    """What the network reads instead of features: (row − ``mean``) · ``factor``.

    The direction that all documents share says nothing, and embeddings come in any size; one factor for
    all columns and rows keeps what their lengths and angles say.
    """

    mean: Floats
    factor: float

    @classmethod
    def learn(cls, features: Features, length: float | None) -> FeatureScaling:
        """Centre rows, and scale them to a mean square length of ``length``; None does not scale.

        >>> FeatureScaling.learn(np.array([[1.0, 7.0], [7.0, 7.0]]), 1.5)
        FeatureScaling(mean=array([4., 7.]), factor=0.5)
        """
        if length is None:
            return cls(np.zeros(features.shape[1]), 1.0)
        mean = sum(rows.sum(axis=0) for rows in feature_blocks(features)) / len(features)
        squares = [np.square(rows - mean).sum() for rows in feature_blocks(features)]
        mean_length = float(np.sqrt(sum(squares) / len(features)))
        if not 0 < mean_length < np.inf:
            what = "all the same" if mean_length == 0 else "too large to be squared"
            raise ValueError(f"features must tell documents apart, got rows that are {what}")
        return cls(np.asarray(mean), length / mean_length)

    def __call__(self, rows: Floats) -> Floats:
        """Number by number, so that a row's result does not depend on the batch it comes in."""
        return (rows - self.mean) * self.factor

    def arrays(self) -> Arrays:
        """As a model stores it."""
        return {"features.mean": self.mean, "features.factor": np.array([self.factor])}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> FeatureScaling | None:
        """What :meth:`arrays` gave, from the arrays of a model; None if it was fitted on words."""
        if "features.mean" not in arrays:
            return None
        mean = np.asarray(arrays["features.mean"], dtype=np.float64)
        factor = np.asarray(arrays["features.factor"], dtype=np.float64)
        if mean.ndim != 1 or factor.shape != (1,) or not np.isfinite([*mean, *factor]).all():
            raise ModelError(
                "the scaling of features should be finite, one mean per column and one factor, got "
                f"arrays of shape {mean.shape} and {factor.shape}"
            )
        return cls(mean, float(factor[0]))
