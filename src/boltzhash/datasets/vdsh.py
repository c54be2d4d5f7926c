"""VDSH's ``.mat`` files, the layout in which the semantic-hashing literature shares its corpora."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.io import loadmat


class Split(NamedTuple):
    """tf-idf rows and 0/1 label rows of one part of a corpus."""

    tfidf: sparse.csr_matrix
    labels: NDArray[np.bool_]


class Splits(NamedTuple):
    train: Split
    val: Split
    test: Split


def load_mat(path: str | Path) -> Splits:
    """Read ``train``, ``cv`` and ``test`` with their ``gnd_`` labels."""
    contents = loadmat(path)
    missing = [
        n for n in ("train", "cv", "test") if n not in contents or f"gnd_{n}" not in contents
    ]
    if missing:
        raise ValueError(f"{path} is not one of VDSH's files: no {' and '.join(missing)} in it")

    def split(name: str) -> Split:
        labels = contents[f"gnd_{name}"]
        labels = labels.toarray() if sparse.issparse(labels) else labels
        return Split(sparse.csr_matrix(contents[name]).astype(np.float64), labels.astype(bool))

    return Splits(split("train"), split("cv"), split("test"))
