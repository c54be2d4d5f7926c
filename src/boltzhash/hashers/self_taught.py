"""Self-taught hashing: codes from a neighbour graph, then classifiers that predict their bits.

Zhang, Wang, Cai and Lu, "Self-Taught Hashing for Fast Similarity Search", SIGIR 2010.
docs/models/self_taught.md maps its symbols to the names used here.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from boltzhash.arguments import Constraints, Integer, Number
from boltzhash.codes import Bits
from boltzhash.errors import needs_extra
from boltzhash.hashers.shared.inference import Floats
from boltzhash.hashers.shared.linear import LinearHasher

CELLS = 2**22  # of similarities held at a time


class SelfTaughtHashing(LinearHasher):
    """Hash documents by the Laplacian eigenmap of their neighbour graph, and learn to predict it.

    Every document is joined with its nearest by cosine; the eigenmap places joined documents near each
    other, its coordinates are cut at their medians, and one linear support vector machine per bit
    learns to decide the bit from the words.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8. If the graph has too few documents for that many
        eigenvectors, the remaining bits cut random mixtures of those there are.
    n_neighbors : int, default=25
        k, the nearest documents that each one is joined with.
    C : float, default=1.0
        The support vector machines' weight of errors against the width of the margin.
    text : Text or None, default=None
        How texts become tf-idf. Not used when a matrix is given.
    random_state : int, RandomState or None, default=0
        Starts the search for the eigenvectors; they depend on it if the graph falls into parts
        that no edge joins. Same seed, same machine, same codes.

    Attributes
    ----------
    directions_ : float64 array (n_words, n_bits)
        Weights of the classifiers.
    offsets_ : float64 array (n_bits,)
        Their thresholds.
    training_bits_ : bool array (n_linked_documents, n_bits)
        What the classifiers were taught, for the training documents that share a word with another.
        Not saved.
    tfidf_ : TfIdf or None
        Vocabulary and weights, None when fitted on a matrix.
    n_features_in_ : int

    References
    ----------
    Zhang, Wang, Cai and Lu (2010). Self-Taught Hashing for Fast Similarity Search. SIGIR.

    Examples
    --------
    >>> from boltzhash import SelfTaughtHashing
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> hasher = SelfTaughtHashing(n_bits=16).fit(texts)
    >>> hasher.transform(["the moons of planets"]).shape
    (1, 2)
    """

    fit_needs: ClassVar[str | None] = "scikit-learn"

    training_bits_: Bits

    constraints: ClassVar[Constraints] = {"n_neighbors": [Integer(1)], "C": [Number(above=0)]}

    def __init__(
        self,
        n_bits: int = 64,
        *,
        n_neighbors: int = 25,
        C: float = 1.0,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, **shared)
        self.n_neighbors = n_neighbors
        self.C = C

    def _learn(self, rows: sparse.csr_matrix, random: RandomState) -> tuple[Floats, Floats]:
        LinearSVC = _support_vector_machine()
        graph = neighbour_graph(rows, self.n_neighbors)
        linked = np.diff(graph.indptr) > 0
        if not linked.any():
            raise ValueError(
                f"no two of the {rows.shape[0]} documents share a word: self-taught hashing needs "
                "neighbours to learn from"
            )
        rows, graph = rows[linked], graph[linked][:, linked]
        embedding = laplacian_eigenmap(graph, self.n_bits, random)
        n_missing = self.n_bits - embedding.shape[1]
        mixtures = embedding @ random.normal(size=(embedding.shape[1], n_missing))
        self.training_bits_ = above_median(np.hstack([embedding, mixtures]))
        directions = np.empty((rows.shape[1], self.n_bits))
        intercepts = np.empty(self.n_bits)
        for bit, taught in enumerate(self.training_bits_.T):
            classifier = LinearSVC(C=self.C, dual=False, random_state=random).fit(rows, taught)
            directions[:, bit] = classifier.coef_[0]
            intercepts[bit] = classifier.intercept_[0]
        return directions, -intercepts

    def _margins_of(self, projected: Floats) -> Floats:
        return projected - self.offsets_

    def _check_params(self) -> None:
        super()._check_params()
        _support_vector_machine()  # noticed before the corpus is read

    def _collapse_advice(self) -> str:
        return f"The classifiers cannot tell them apart: try a larger C (was {self.C:g})"


def _support_vector_machine() -> Any:
    """scikit-learn's, which is slow to import and needed only to fit."""
    try:
        from sklearn.svm import LinearSVC
    except ImportError:
        raise needs_extra("SelfTaughtHashing.fit", "scikit-learn", "sklearn") from None
    return LinearSVC


def neighbour_graph(rows: sparse.csr_matrix, k: int) -> sparse.csr_matrix:
    """Cosines between documents one of which is among the k nearest of the other, 0 elsewhere.

    Rows (n, n_words) have length 1; the graph is (n, n). A document is not a neighbour of itself, nor of
    one with which it shares no word.
    """
    n = rows.shape[0]
    k = min(k, n - 1)
    columns = rows.T.tocsr()
    size = max(1, CELLS // n)
    parts = []
    for start in range(0, n, size):
        cosines = (rows[start : start + size] @ columns).toarray()
        here = np.arange(len(cosines))
        cosines[here, start + here] = 0
        nearest = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        values = np.take_along_axis(cosines, nearest, axis=1)
        indptr = np.arange(len(cosines) + 1) * k
        parts.append(
            sparse.csr_matrix((values.ravel(), nearest.ravel(), indptr), shape=(len(cosines), n))
        )
    directed = sparse.vstack(parts, format="csr")
    directed.eliminate_zeros()
    return directed.maximum(directed.T).tocsr()


def laplacian_eigenmap(graph: sparse.csr_matrix, n: int, random: RandomState) -> Floats:
    """Up to n solutions of L v = λ D v with the smallest λ, except v = 1, as columns.

    With u = √D v these are the leading eigenvectors of S = D^-½ W D^-½. The trivial one, u₁ = √D 1, is
    known: S − 2 u₁u₁ᵀ / ‖u₁‖² has it last, even if parts of the graph make λ = 0 repeat.
    Fewer than n columns come from a graph (n_documents, n_documents) of fewer than n + 1 documents.
    """
    n_documents = graph.shape[0]
    root = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    scale = sparse.diags(1 / root)
    S = (scale @ graph @ scale).tocsr()
    trivial = root / np.linalg.norm(root)
    n = min(n, n_documents - 1)
    if n > n_documents // 2:
        _, vectors = np.linalg.eigh(S.toarray() - 2 * np.outer(trivial, trivial))
        vectors = vectors[:, ::-1][:, :n]
    else:
        deflated = LinearOperator(
            S.shape,
            matvec=lambda u: S @ u.ravel() - 2 * trivial * (trivial @ u.ravel()),
            dtype=np.float64,
        )
        values, vectors = eigsh(deflated, k=n, which="LA", v0=random.normal(size=n_documents))
        vectors = vectors[:, np.argsort(-values, kind="stable")]
    peaks = np.abs(vectors).argmax(axis=0)
    return np.asarray(vectors * np.sign(vectors[peaks, np.arange(n)]) / root[:, None])


def above_median(embedding: Floats) -> Bits:
    """Cut each column at its median. Values on it all go to one side, the one that balances better.

    >>> above_median(np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 1.0], [4.0, 1.0]])).astype(int).tolist()
    [[0, 0], [0, 1], [1, 1], [1, 1]]
    """
    median = np.median(embedding, axis=0)
    tie = 1e-9 * np.ptp(embedding, axis=0)  # equal except for rounding
    above, not_below = embedding > median + tie, embedding >= median - tie
    imbalances = [np.abs(bits.mean(axis=0) - 0.5) for bits in (above, not_below)]
    return np.asarray(np.where(imbalances[0] <= imbalances[1], above, not_below))
