"""Going on from a fitted model: the weights that it begins with, its vocabulary grown by new words.

Known words keep their weights. A new word begins as the mean of the known words that it occurs with: as
what reads it, and as what is read from a code. How much of all this a fit begins with is said where
networks take it over (``KEPT`` in :mod:`boltzhash.training.networks`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.hashers.shared.features import FeatureScaling
from boltzhash.storage.folders import Arrays
from boltzhash.text.tfidf import TfIdf

BLOCK = 4096  # documents at a time

_Rows = NDArray[np.float32]


class Start(NamedTuple):
    """What a fit takes over from a model: words, if it knows any, weights and the scale of features."""

    tfidf: TfIdf | None
    weights: Arrays
    feature_scaling: FeatureScaling | None
    neighbours_by_codes: bool  # whether its own neighbours were found with the help of codes

    def grown(self, matrix: sparse.csr_matrix) -> Arrays:
        """The weights for tf-idf of (n_documents, n_words), whose first columns are the known words."""
        weights = dict(self.weights)
        n_known = len(weights["decoder.bias"])
        weights["decoder.bias"] = _grown_bias(weights["decoder.bias"], matrix)
        written = np.ascontiguousarray(weights["decoder.weight"].T)
        companions = _Companions(matrix, n_known)
        weights["decoder.weight"] = np.vstack([written, companions.mean_of(written)]).T
        if self.feature_scaling is None:
            for name in _read_by(weights):
                weights[name] = np.vstack([weights[name], companions.mean_of(weights[name])])
        return weights


def _read_by(weights: Arrays) -> list[str]:
    """What reads words: the first layer, or the heads if there are no layers."""
    if "hidden1.weight" in weights:
        return ["hidden1.weight"]
    return [name for name in weights if name.startswith("heads.") and name.endswith(".weight")]


class _Companions:
    """The known words, those in the first columns, that new words occur with."""

    def __init__(self, matrix: sparse.csr_matrix, n_known: int) -> None:
        columns = matrix.tocsc()
        self._known, self._new = columns[:, :n_known].tocsr(), columns[:, n_known:].tocsr()

    def mean_of(self, rows: _Rows) -> _Rows:
        """For each new word the mean of rows (n_known, n) over the known words in its documents.

        Weighed by tf-idf; 0 of a word that occurs with none.
        """
        sums = np.zeros((self._new.shape[1], rows.shape[1]))
        weight = np.zeros(self._new.shape[1])
        for start in range(0, self._known.shape[0], BLOCK):
            known, new = self._known[start : start + BLOCK], self._new[start : start + BLOCK].T
            sums += new @ (known @ rows)
            weight += new @ np.asarray(known.sum(axis=1)).ravel()
        return (sums / np.maximum(weight, np.finfo(np.float32).tiny)[:, None]).astype(np.float32)


def _grown_bias(bias: _Rows, matrix: sparse.csr_matrix) -> _Rows:
    """Of the decoder: a new word is as likely beside the known ones as it is frequent beside them.

    >>> _grown_bias(np.zeros(1, np.float32), sparse.csr_matrix([[1.5, 0.5], [1.0, 0.5]])).round(2)
    array([ 0.  , -0.69], dtype=float32)
    """
    totals = np.log(np.asarray(matrix.sum(axis=0)).ravel() + 0.5)
    n_known = len(bias)
    seen = np.asarray((matrix[:, :n_known] > 0).sum(axis=0)).ravel()
    level = np.average(bias - totals[:n_known], weights=seen) if seen.any() else 0.0
    return np.concatenate([bias, totals[n_known:] + level]).astype(np.float32)
