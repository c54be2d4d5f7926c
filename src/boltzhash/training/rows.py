"""Rows of numbers that a step reads: sparse or dense."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class SparseRows(NamedTuple):
    """A batch of sparse rows: row i holds values[offsets[i]:offsets[i+1]] at those indices."""

    indices: Tensor
    values: Tensor
    offsets: Tensor

    @property
    def n_rows(self) -> int:
        return self.offsets.shape[0] - 1

    def row_numbers(self) -> Tensor:
        """The row of each value."""
        rows = torch.arange(self.n_rows, device=self.offsets.device)
        return rows.repeat_interleave(self.offsets.diff(), output_size=self.values.shape[0])

    def dense(self, n_columns: int) -> Tensor:
        """The rows as a matrix; a column may occur only once in a row."""
        matrix = self.values.new_zeros(self.n_rows, n_columns)
        matrix[self.row_numbers(), self.indices] = self.values
        return matrix


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
