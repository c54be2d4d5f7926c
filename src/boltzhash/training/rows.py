"""Rows of numbers that a step reads: sparse or dense."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

try:
    from boltzhash.training import _steps as _steps
except ImportError:  # no compiler when this was installed: scipy and PyTorch do it
    _steps = None  # type: ignore[assignment]

Integers = NDArray[np.int32]
RowNumbers = NDArray[np.int64]


class SparseRows(NamedTuple):
    """A batch of sparse rows: row i holds values[offsets[i]:offsets[i+1]] at those indices."""

    indices: Tensor
    values: Tensor
    offsets: Tensor

    @classmethod
    def taken(cls, matrix: sparse.csr_matrix, rows: RowNumbers) -> SparseRows:
        """Some rows of a matrix, in the order in which they are asked for.

        >>> matrix = sparse.csr_matrix([[0, 2], [3, 4]], dtype=np.float32)
        >>> SparseRows.taken(matrix, np.array([1, 0])).values
        tensor([3., 4., 2.])
        """
        indices, values, ends = matrix.indices, matrix.data, matrix.indptr
        if not _are_compiled(indices, values, ends):
            return cls.of(matrix[rows])
        own_ends = np.empty(len(rows) + 1, np.int32)
        n = int((ends[rows + 1] - ends[rows]).sum())
        words, amounts = np.empty(n, np.int32), np.empty(n, np.float32)
        _steps.take_rows(indices, values, ends, rows, words, amounts, own_ends)
        return cls(*map(torch.from_numpy, (words, amounts, own_ends)))

    @classmethod
    def mixed(
        cls, matrix: sparse.csr_matrix, rows: RowNumbers, others: RowNumbers, share: float
    ) -> SparseRows:
        """Some rows of a matrix, of which others get this share.

        >>> matrix = sparse.csr_matrix([[0, 2], [3, 4]], dtype=np.float32)
        >>> SparseRows.mixed(matrix, np.array([0]), np.array([1]), 0.25).dense(2)
        tensor([[0.7500, 2.5000]])
        """
        indices, values, ends = matrix.indices, matrix.data, matrix.indptr
        if not _are_compiled(indices, values, ends) or not matrix.has_canonical_format:
            of_others = np.float32(share)
            own, beside = (1 - of_others) * matrix[rows], of_others * matrix[others]
            return cls.of(sparse.csr_matrix(own + beside))
        own_ends = np.empty(len(rows) + 1, np.int32)
        most = int(sum((ends[of + 1] - ends[of]).sum() for of in (rows, others)))
        words, amounts = np.empty(most, np.int32), np.empty(most, np.float32)
        _steps.mix_rows(indices, values, ends, rows, others, share, words, amounts, own_ends)
        n = own_ends[-1]
        return cls(*map(torch.from_numpy, (words[:n], amounts[:n], own_ends)))

    @classmethod
    def of(cls, matrix: sparse.csr_matrix) -> SparseRows:
        """All rows of a matrix."""
        words, ends = (
            part.astype(np.int32, copy=False) for part in (matrix.indices, matrix.indptr)
        )
        return cls(*map(torch.from_numpy, (words, matrix.data, ends)))

    @property
    def n_rows(self) -> int:
        return self.offsets.shape[0] - 1

    def row_numbers(self) -> Tensor:
        """The row of each value."""
        rows = torch.arange(self.n_rows, device=self.offsets.device)
        return rows.repeat_interleave(self.offsets.diff(), output_size=self.values.shape[0])

    def by_word(self, n_columns: int) -> tuple[Integers, NDArray[Any], Integers]:
        """Column by column, in which rows it occurs, how much of it, and where the columns end."""
        indices, values, offsets = (part.numpy() for part in self)
        if not _are_compiled(indices, values, offsets):
            shape = (self.n_rows, n_columns)
            found = sparse.csr_matrix((values, indices, offsets), shape=shape).tocsc()
            return found.indices, found.data, found.indptr
        rows, amounts = np.empty_like(indices), np.empty_like(values)
        ends = np.empty(n_columns + 1, np.int32)
        _steps.by_word(indices, values, offsets, rows, amounts, ends)
        return rows, amounts, ends

    def dense(self, n_columns: int) -> Tensor:
        """The rows as a matrix; a column may occur only once in a row."""
        matrix = self.values.new_zeros(self.n_rows, n_columns)
        matrix[self.row_numbers(), self.indices] = self.values
        return matrix


def _are_compiled(indices: NDArray[Any], values: NDArray[Any], ends: NDArray[Any]) -> bool:
    """Whether compiled functions take these parts of sparse rows."""
    integers = indices.dtype == ends.dtype == np.int32
    return _steps is not None and integers and values.dtype == np.float32


Rows = (
    SparseRows | Tensor
)  # sparse on a CPU; dense on a GPU, where a batch is small and that is faster


def stacked(above: Rows, below: Rows) -> Rows:
    """Both, (n, n_columns) and (m, n_columns), stacked."""
    if isinstance(above, Tensor) and isinstance(below, Tensor):
        return torch.cat([above, below])
    assert isinstance(above, SparseRows)
    assert isinstance(below, SparseRows)
    return SparseRows(
        torch.cat([above.indices, below.indices]),
        torch.cat([above.values, below.values]),
        torch.cat([above.offsets, above.offsets[-1] + below.offsets[1:]]),
    )


def row_sums(rows: Rows) -> Tensor:
    """The sum of each row of (n, n_columns)."""
    if isinstance(rows, Tensor):
        return rows.sum(-1)
    zeros = rows.values.new_zeros(rows.n_rows)
    return zeros.index_add(0, rows.row_numbers(), rows.values)
