"""What may be given as documents: texts or tf-idf, told apart and checked."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.corpus.frames import column_names
from boltzhash.hashers.shared.inference import Floats

DocumentRows: TypeAlias = sparse.csr_matrix | Floats  # what a network reads: words, or features


def as_texts(X: Any) -> Iterable[str] | None:
    """X as texts, or None if it is a matrix. Anything else counts as texts, whose check refuses it."""
    if isinstance(X, str | bytes):
        raise ValueError(
            f"X must be a list of texts or a matrix, got a single {type(X).__name__}: "
            "put it into a list"
        )
    if sparse.issparse(X):
        return None
    _refuse_frame_of_texts(X)
    if not isinstance(X, Iterable):
        return None
    if isinstance(X, Mapping):
        raise ValueError(
            "X must be a list of texts or a matrix, got a dict: pass its texts, such as X.values()"
        )
    n_dimensions = getattr(X, "ndim", None)
    if n_dimensions is not None:
        kind = getattr(getattr(X, "dtype", None), "kind", "O")
        return list(X) if n_dimensions == 1 and kind in "OUT" else None
    remaining = iter(X)
    first = list(itertools.islice(remaining, 1))
    if first and _is_row_of_numbers(first[0]) and remaining is not X:
        return None
    return itertools.chain(first, remaining)


def _refuse_frame_of_texts(X: Any) -> None:
    """A DataFrame of numbers is a matrix; one with other columns has its texts in one of them."""
    try:
        columns = column_names(X)
    except TypeError as error:
        raise ValueError(f"X must be a list of texts or a matrix, {error}") from None
    if columns is None or all(map(_is_of_numbers, getattr(X, "dtypes", [None]))):
        return
    column = "text" if "text" in columns or not columns else columns[0]
    raise ValueError(
        f"X must be a list of texts or a matrix, got a {type(X).__name__} with the columns "
        f"{', '.join(map(repr, columns))}: pass the column with the texts, such as X[{column!r}]"
    )


def _is_of_numbers(dtype: Any) -> bool:
    """Whether a type of a column is one of numbers; those of polars have no kind."""
    if hasattr(dtype, "is_numeric"):
        return bool(dtype.is_numeric())
    return getattr(dtype, "kind", "O") in "biuf"


def one_by_one(X: Any) -> Iterable[Any]:
    """Texts, or the numbers of a matrix's rows: what can be counted."""
    texts = as_texts(X)
    return texts if texts is not None else range(X.shape[0] if hasattr(X, "shape") else len(X))


def words_a_row(matrix: sparse.csr_matrix) -> NDArray[np.int64]:
    """How many different words each document of a matrix (n_documents, n_words) has."""
    return np.asarray(np.diff(matrix.indptr), dtype=np.int64)


def _is_row_of_numbers(item: Any) -> bool:
    """Whether the first item of a list makes the list a matrix."""
    if isinstance(item, str | bytes | dict) or not hasattr(item, "__len__"):
        return False
    return not any(isinstance(part, str) for part in item)


def check_not_negative(matrix: Any) -> sparse.csr_matrix:
    """A matrix (n_documents, n_words) as CSR, each word of a document once and no zeros kept."""
    rows = sparse.csr_matrix(matrix)
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()  # what follows works in place, and the matrix may be the user's
        rows.sum_duplicates()
        rows.eliminate_zeros()
    if rows.nnz and rows.data.min() < 0:
        row = int(np.searchsorted(rows.indptr, int(rows.data.argmin()), side="right")) - 1
        raise ValueError(
            f"Negative values in data: tf-idf must be 0 or more, got {rows.data.min()} in row {row}"
        )
    return rows


def check_enough_to_learn(matrix: sparse.csr_matrix) -> None:
    """Refuse tf-idf (n_documents, n_words) without two different documents, or without any word."""
    n = matrix.shape[0]
    if n < 2:
        raise ValueError(f"at least 2 documents are needed to fit, got {n}")
    if matrix.nnz == 0:
        raise ValueError(f"none of the {n} documents has a word: there is nothing to learn")
    if _all_rows_equal(matrix):
        raise ValueError(
            f"all {n} documents are the same: at least 2 different ones are needed to fit"
        )


def _all_rows_equal(matrix: sparse.csr_matrix) -> bool:
    lengths = np.diff(matrix.indptr)
    if (lengths != lengths[0]).any():
        return False
    columns = matrix.indices.reshape(len(lengths), lengths[0])
    values = matrix.data.reshape(len(lengths), lengths[0])
    return bool((columns == columns[0]).all() and np.allclose(values, values[0]))
