"""What a training step sees: rows of documents, words sparse on a CPU, everything else dense."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from boltzhash.training.rows import RowNumbers as RowNumbers
from boltzhash.training.rows import Rows, SparseRows

Matrix: TypeAlias = sparse.csr_matrix | NDArray[np.float32]  # words sparse, features dense
Companions = Callable[[np.random.Generator], list[RowNumbers]]

DENSE_SHARE = 0.1  # of a GPU's free memory that a matrix may take when it is kept dense


class Batch(NamedTuple):
    """What one step sees: the documents, what the decoder should say about them, where we are."""

    inputs: Rows
    targets: Rows
    progress: Tensor  # share of the epochs that are over
    generator: torch.Generator
    companions: tuple[Rows, ...] = ()  # the inputs of documents that each is compared with
    neighbour: Rows | None = None  # the inputs of one near document of each
    labels: Rows | None = None  # how much each label counts; a row without any if none is known
    rows: Tensor | None = None  # the documents' numbers, for what a method knows of each


class Terms(NamedTuple):
    """What one step reports: means over the batch, and the bits (n, n_bits) of its codes."""

    loss: Tensor
    reconstruction: Tensor
    kl: Tensor
    bits: Tensor


class Documents(NamedTuple):
    """What a model is trained on, one row per document: inputs (n, n_inputs), targets (n, n_words).

    ``companions`` draws, for an epoch, lists of row numbers: documents that each is compared with.
    ``neighbours`` are row numbers (n, K), the nearest first: every epoch one of them is drawn for each
    document (:func:`drawn_ranks`), and the document's target is mixed with its target, whose share is
    ``neighbour_share``. The likelihood is linear in the target, so this is on average the mean of all
    K, by how often they are drawn, at the price of one.
    ``labels`` are (n, n_labels), each row the shares of a document's labels, or empty if it has none.
    """

    inputs: Matrix
    targets: sparse.csr_matrix
    companions: Companions | None = None
    neighbours: RowNumbers | None = None
    neighbour_share: float = 0.0
    nearness: float = 1.0
    labels: sparse.csr_matrix | None = None

    def draw(self, rng: np.random.Generator) -> Plan:
        """What happens at random in an epoch and does not depend on the device."""
        n = self.inputs.shape[0]
        order = rng.permutation(n)
        companions = self.companions(rng) if self.companions is not None else []
        if self.neighbours is None:
            return Plan(order, companions, None)
        one = drawn_ranks(n, self.neighbours.shape[1], self.nearness, rng)
        return Plan(order, companions, self.neighbours[np.arange(n), one])

    def mixed_targets(self, rows: RowNumbers, neighbour: RowNumbers) -> SparseRows:
        """The targets of some documents, each mixed with its neighbour's."""
        return SparseRows.mixed(self.targets, rows, neighbour[rows], self.neighbour_share)


def drawn_ranks(n: int, k: int, nearness: float, rng: np.random.Generator) -> RowNumbers:
    """Which of its k neighbours each of n documents gets: the ⌊k u^nearness⌋-th, u from 0 to 1.

    With 1 all are as likely; with 2 half of the draws are among the nearest quarter.
    """
    if nearness == 1:
        return rng.integers(k, size=n)
    return (k * rng.random(n) ** nearness).astype(np.int64)


class Plan(NamedTuple):
    """One epoch: the order of the documents, and the row numbers that go with each document."""

    order: RowNumbers
    companions: list[RowNumbers]
    neighbour: RowNumbers | None

    def batches(self, size: int) -> Iterator[RowNumbers]:
        """The documents of one step after another."""
        for start in range(0, len(self.order), size):
            yield self.order[start : start + size]


def minibatches(
    matrices: list[Matrix], batch_size: int, order: RowNumbers, device: torch.device
) -> Iterator[list[Rows]]:
    """The same rows of each matrix (n, …), ``batch_size`` at a time, in the given order (n,)."""
    for rows in Plan(order, [], None).batches(batch_size):
        yield [taken(matrix, rows, device) for matrix in matrices]


def taken(matrix: Matrix, rows: RowNumbers, device: torch.device) -> Rows:
    """Some rows of a matrix as a step reads them."""
    if device.type == "cpu" and not isinstance(matrix, np.ndarray):
        return SparseRows.taken(matrix, rows)
    return on_device(matrix[rows], device)


def on_device(rows: Matrix, device: torch.device) -> Rows:
    """A batch as a step reads it: on a CPU what is sparse never becomes dense."""
    if isinstance(rows, np.ndarray):
        return torch.from_numpy(rows).to(device)
    return moved(SparseRows.of(rows), rows.shape[1], device)


def moved(rows: SparseRows, n_columns: int, device: torch.device) -> Rows:
    """Where a step reads them: on a GPU dense."""
    if device.type == "cpu":
        return rows
    return SparseRows(*(part.to(device) for part in rows)).dense(n_columns)


def take_batch(
    documents: Documents,
    plan: Plan,
    rows: RowNumbers,
    progress: Tensor,
    generator: torch.Generator,
) -> Batch:
    """Taken from the matrices as it is needed, so an epoch holds no copy of them."""
    device = generator.device

    def inputs(of: RowNumbers) -> Rows:
        return taken(documents.inputs, of, device)

    return Batch(
        inputs(rows),
        taken(documents.targets, rows, device)
        if plan.neighbour is None
        else moved(
            documents.mixed_targets(rows, plan.neighbour), documents.targets.shape[1], device
        ),
        progress,
        generator,
        tuple(inputs(companion[rows]) for companion in plan.companions),
        None if plan.neighbour is None else inputs(plan.neighbour[rows]),
        labels=None if documents.labels is None else taken(documents.labels, rows, device),
        rows=torch.from_numpy(rows).to(device),
    )


class RowsOnDevice:
    """A matrix on a GPU whose rows are taken by number, without asking the host.

    Features are dense and kept as they are. Words are kept dense if their whole matrix is small for
    the GPU; otherwise sparse, and the rows that are taken are spread out: each has as many places as
    the longest, and what is beyond a row's end goes into a column that is cut off.

    >>> matrix = sparse.csr_matrix([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
    >>> RowsOnDevice(matrix, torch.device("cpu"), dense=False).take(torch.tensor([1, 0]))
    tensor([[3., 0., 4.],
            [0., 2., 0.]])
    """

    def __init__(self, matrix: Matrix, device: torch.device, dense: bool | None = None) -> None:
        self.n_columns = matrix.shape[1]
        self._dense: Tensor | None = None
        if isinstance(matrix, np.ndarray):
            self._dense = torch.from_numpy(matrix.astype(np.float32, copy=False)).to(device)
            return
        self._indices = torch.from_numpy(matrix.indices.astype(np.int64)).to(device)
        self._values = torch.from_numpy(matrix.data.astype(np.float32)).to(device)
        self._starts = torch.from_numpy(matrix.indptr.astype(np.int64)).to(device)
        longest = int(np.diff(matrix.indptr).max(initial=0))
        self._places = torch.arange(longest, device=device)
        if _affordable(matrix.shape, device) if dense is None else dense:
            blocks = torch.split(torch.arange(matrix.shape[0], device=device), 4096)
            self._dense = torch.cat([self.take(block) for block in blocks])

    def take(self, rows: Tensor) -> Tensor:
        """These rows, by their numbers (k,): dense, (k, n_columns)."""
        if self._dense is not None:
            return self._dense.index_select(0, rows)
        spread = self._values.new_zeros(len(rows), self.n_columns + 1)
        if len(self._values):
            starts = self._starts[rows].unsqueeze(-1)
            inside = self._places < self._starts[rows + 1].unsqueeze(-1) - starts
            places = (starts + self._places).clamp(max=len(self._values) - 1)
            columns = torch.where(inside, self._indices[places], self.n_columns)
            spread.scatter_(1, columns, torch.where(inside, self._values[places], 0.0))
        return spread[:, : self.n_columns]


def _affordable(shape: tuple[int, int], device: torch.device) -> bool:
    if device.type != "cuda":
        return False
    free, _ = torch.cuda.mem_get_info(device)
    return 4 * shape[0] * shape[1] < DENSE_SHARE * free
