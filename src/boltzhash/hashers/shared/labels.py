"""Labels of documents, where there are some: read in any form, and how far words tell them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax, softmax

from boltzhash.hashers.shared.documents import DocumentRows
from boltzhash.hashers.shared.inference import Floats
from boltzhash.text.tfidf import unit_rows

HELD_OUT_AT_MOST = 20_000  # labelled documents that are asked: more would not change the answer
# Standard errors of independent answers. The halves are not quite independent: labels by chance go
# beyond three in one of a hundred fits.
BEYOND_CHANCE = 4.0
BLOCK = 1024
SHARPNESS = (1.0, 2.5, 5.0, 10.0, 20.0, 40.0)  # of guesses
FREQUENT = 1000  # labels that are looked for
STEPS = 20
TINY = np.finfo(np.float64).tiny
LIKELY = 0.05  # less is not kept


class Labelling(NamedTuple):
    """What a model was taught with: how many documents had how many different labels.

    ``agreement`` is how well words tell labels that were held out, :func:`held_out_agreement`.
    """

    documents: int
    labels: int
    agreement: float


class Labels(NamedTuple):
    """The different labels, in the order in which they first occur, and who has which.

    ``shares`` is a float32 matrix (n_documents, n_labels): the labels of a document share 1 equally; the
    row of a document without labels is empty.
    """

    names: list[Any]
    shares: sparse.csr_matrix

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which documents have labels."""
        return np.asarray(np.diff(self.shares.indptr) > 0)

    def of(self, documents: NDArray[np.bool_]) -> Labels | None:
        """Those of some documents; None if these have none."""
        shares = self.shares[documents]
        occurring = np.flatnonzero(shares.getnnz(axis=0))
        if not len(occurring):
            return None
        return Labels([self.names[label] for label in occurring], shares[:, occurring])


def read_labels(y: Any, n_documents: int) -> Labels | None:
    """A label or a list of labels a document; None if no document has one.

    Nothing is known about a document whose entry is None, not a number (which pandas writes for what is
    missing) or an empty string or list. A matrix of bools has a row a document and a column a label.

    >>> labels = read_labels(["news", None, ["news", "sport"]], 3)
    >>> labels.names
    ['news', 'sport']
    >>> labels.shares.toarray().tolist()
    [[1.0, 0.0], [0.0, 0.0], [0.5, 0.5]]
    """
    entries = _entries(y)
    if len(entries) != n_documents:
        raise ValueError(
            "y must have one entry per document, None for one without a label: "
            f"got {len(entries)} for {n_documents} documents"
        )
    each = [_labels_of(entry, number) for number, entry in enumerate(entries)]
    numbers: dict[Any, int] = {}
    for label in itertools.chain.from_iterable(each):
        numbers.setdefault(label, len(numbers))
    if not numbers:
        return None
    counts = np.array([len(labels) for labels in each])
    columns = [numbers[label] for labels in each for label in labels]
    shares = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(counts)])
    matrix = sparse.csr_matrix((shares, columns, starts), shape=(n_documents, len(numbers)))
    matrix.sort_indices()
    return Labels(list(numbers), matrix)


def _entries(y: Any) -> list[Any]:
    if hasattr(y, "__array__") and not isinstance(y, Iterable):
        y = np.asarray(y)
    if getattr(y, "ndim", 1) == 2:
        if sparse.issparse(y) or np.asarray(y).dtype != bool:
            raise ValueError(
                "y must be a label or a list of labels per document, or a matrix of bools with a column "
                f"per label, got a matrix of shape {y.shape} that is not of bools"
            )
        return [np.flatnonzero(row) for row in np.asarray(y)]
    if isinstance(y, str | bytes) or not isinstance(y, Iterable):
        raise ValueError(f"y must have one entry per document, got a single {type(y).__name__}")
    return list(y)


def _labels_of(entry: Any, number: int) -> list[Any]:
    """The different labels of a document."""
    several = isinstance(entry, list | tuple | set | frozenset | np.ndarray)
    labels = [_plain(label) for label in (entry if several else [entry])]
    for label in labels:
        if not (isinstance(label, str | int | float) or _is_missing(label)):
            raise ValueError(
                f"the label of document {number} must be a string, a number, None or a list of these, "
                f"got {type(label).__name__}"
            )
    return sorted({label for label in labels if not _is_missing(label)}, key=str)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _is_missing(label: Any) -> bool:
    """None, nothing, NaN, and what pandas calls NaT and NA."""
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return label == "" or (isinstance(label, float) and math.isnan(label))


def held_out_agreement(
    rows: DocumentRows, shares: sparse.csr_matrix, random: np.random.RandomState
) -> float:
    """How well words tell labels that were held out: Cohen's κ, or 0 if chance may explain it.

    The labelled documents are cut into two halves, and each is asked for its labels by a linear
    classifier that has learned from the other. With a the share of answers that are among the document's
    labels and e that share if answers and labels were independent, κ = (a − e) / (1 − e).

    Parameters
    ----------
    rows : matrix of shape (n, n_columns)
        tf-idf, or features.
    shares : matrix of shape (n, n_labels)
        Of :class:`Labels`.
    """
    shares = shares[:, _frequent(shares)]
    halves = _halves(shares, random)
    if shares.shape[1] < 2 or min(map(len, halves)) == 0:
        return 0.0
    asked = np.concatenate(halves)
    answers = np.concatenate(
        [
            scores.argmax(axis=1)
            for one, other in (halves, halves[::-1])
            for scores in _scores(rows[one], learned_scores(rows[other], shares[other]))
        ]
    )
    truth = shares[asked] > 0
    agreed = float(np.mean(np.asarray(truth[np.arange(len(asked)), answers])))
    answered = np.bincount(answers, minlength=shares.shape[1]) / len(asked)
    chance = float(answered @ np.asarray(truth.mean(axis=0)).ravel())
    error = math.sqrt(max(0.0, chance * (1 - chance)) / len(asked))
    if chance >= 1 or agreed - chance <= BEYOND_CHANCE * error:
        return 0.0
    return (agreed - chance) / (1 - chance)


def guessed_shares(
    rows: DocumentRows, shares: sparse.csr_matrix, random: np.random.RandomState
) -> sparse.csr_matrix:
    """What labelled documents say about the labels of the others: their rows, of :class:`Labels`.

    P(label) ∝ exp(λ score), with the scores of a linear classifier and the λ under which labels that
    were held out are likeliest. The rows of labelled documents are empty.

    Parameters
    ----------
    rows : matrix of shape (n, n_columns)
        tf-idf, or features.
    shares : matrix of shape (n, n_labels)
        Of :class:`Labels`.
    """
    frequent = _frequent(shares)
    some = shares[:, frequent]
    known = np.diff(shares.indptr) > 0
    if len(frequent) < 2 or known.all():
        return sparse.csr_matrix(shares.shape, dtype=np.float32)
    sharpness = _sharpness(rows, some, random)
    unknown = np.flatnonzero(~known)
    learned = learned_scores(rows[known], some[known])
    guesses = [sparse.csr_matrix((0, len(frequent)), dtype=np.float32)]
    for scores in _scores(rows[unknown], learned):
        likely = softmax(sharpness * scores, axis=1).astype(np.float32)
        likely[likely < np.minimum(LIKELY, likely.max(axis=1, keepdims=True))] = 0
        guesses.append(sparse.csr_matrix(likely / likely.sum(axis=1, keepdims=True)))
    found = sparse.vstack(guesses, format="coo")
    places = (unknown[found.row], frequent[found.col])
    return sparse.csr_matrix((found.data, places), shape=shares.shape)


def _sharpness(
    rows: DocumentRows, shares: sparse.csr_matrix, random: np.random.RandomState
) -> float:
    one, other = _halves(shares, random)
    held_out = np.concatenate(list(_scores(rows[one], learned_scores(rows[other], shares[other]))))
    truth = shares[one].toarray()

    def likelihood(sharpness: float) -> float:
        return float((truth * log_softmax(sharpness * held_out, axis=1)).sum())

    return max(SHARPNESS, key=likelihood)


def _frequent(shares: sparse.csr_matrix) -> NDArray[np.int64]:
    """Labels that can be held out and found again: the most frequent that two documents have."""
    counts = shares.getnnz(axis=0)
    by_count = np.argsort(-counts, kind="stable")[:FREQUENT]
    return np.sort(by_count[counts[by_count] > 1])


def _halves(
    shares: sparse.csr_matrix, random: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two halves of the labelled documents, or of so many of them that more would change nothing."""
    labelled = random.permutation(np.flatnonzero(np.diff(shares.indptr)))[:HELD_OUT_AT_MOST]
    one, other = np.array_split(labelled, 2)
    return one, other


def with_same_label(
    near: NDArray[np.int64],
    shares: sparse.csr_matrix,
    portion: float,
    random: np.random.Generator,
) -> NDArray[np.int64]:
    """Row numbers (n, K) of neighbours, the farthest of which give way to documents of the same label.

    ``portion`` of the K of a labelled document are drawn anew: a label of the document and then a
    document with that label, by their shares. Documents without labels keep theirs.

    >>> near = np.array([[1, 2], [0, 2], [1, 0]])
    >>> shares = sparse.csr_matrix([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    >>> with_same_label(near, shares, 0.5, np.random.default_rng(0)).tolist()
    [[1, 2], [0, 2], [1, 0]]
    """
    n, k = near.shape
    n_drawn = round(portion * k)
    chosen = near.copy()
    has_more = random.random((n, n_drawn)) < np.asarray(shares.sum(axis=1)).reshape(-1, 1)
    documents, places = np.nonzero(has_more)
    drawn = _draw(shares.T.tocsr(), _draw(shares, documents, random), random)
    others = drawn != documents
    chosen[documents[others], k - n_drawn + places[others]] = drawn[others]
    return chosen


def _draw(
    matrix: sparse.csr_matrix, rows: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """A column for each of these rows, which have some, drawn by the row's values."""
    ends = np.concatenate([[0.0], np.cumsum(matrix.data, dtype=np.float64)])
    starts, stops = matrix.indptr[rows], matrix.indptr[rows + 1]
    at = ends[starts] + random.random(len(rows)) * (ends[stops] - ends[starts])
    places = np.clip(np.searchsorted(ends, at, side="right") - 1, starts, stops - 1)
    return np.asarray(matrix.indices[places], dtype=np.int64)


def learned_scores(rows: DocumentRows, shares: sparse.csr_matrix) -> Floats:
    """The weights W (n_columns, n_labels) of a ridge regression from documents to labels.

    W minimises ‖XW − (Y − ȳ)‖² + ‖W‖², X the rows scaled to length 1 and Y the shares. All labels are
    solved for at once, by conjugate gradients (Hestenes and Stiefel, 1952); a few steps are enough to
    tell labels apart.
    """
    X = _unit(rows)
    Y = shares.toarray().astype(np.float64)
    weights = np.zeros((X.shape[1], Y.shape[1]))
    residual = np.asarray(X.T @ (Y - Y.mean(axis=0)))
    direction = residual.copy()
    squares = np.square(residual).sum(axis=0)
    for _ in range(STEPS):
        image = np.asarray(X.T @ (X @ direction)) + direction
        # Where nothing is left to do, nothing is done: 0 / tiny.
        pace = squares / np.maximum((direction * image).sum(axis=0), TINY)
        weights += pace * direction
        residual -= pace * image
        before, squares = squares, np.square(residual).sum(axis=0)
        direction = residual + squares / np.maximum(before, TINY) * direction
    return weights


def _scores(rows: DocumentRows, weights: Floats) -> Iterator[Floats]:
    """What the regression says about rows, a block of them at a time."""
    for start in range(0, rows.shape[0], BLOCK):
        yield np.asarray(_unit(rows[start : start + BLOCK]) @ weights)


def _unit(rows: DocumentRows) -> DocumentRows:
    """Rows of length 1, whatever they are kept in; rows of nothing stay."""
    if sparse.issparse(rows):
        return unit_rows(sparse.csr_matrix(rows, dtype=np.float64))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1))
