"""Precision of the top 100, at the end and after every epoch.

The figure that a run reports for its last epoch comes from the library's own codes and measure
(``final``), and so does the curve over epochs of a model that trains on the CPU. On a GPU the curve is
computed there in float32, since encoding all documents a hundred times on a CPU would take
longer than training; a bit whose location is within rounding of 0 may differ there, which moves the
precision by some .0001.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from boltzhash.codes import Codes, unpack
from boltzhash.hashers import VDSH
from boltzhash.hashers.shared.halves import agreement_of_halves, halves, n_nearest
from boltzhash.hashers.shared.inference import Floats, Posterior
from boltzhash.metrics import ranking
from boltzhash.text.tfidf import unit_rows
from boltzhash.training.networks import linear
from experiments.runs.corpora import Corpus, Split

TOP = 100
BLOCK = 256  # documents whose covariances are held at a time


class Precision(NamedTuple):
    val: float
    test: float


class Final(NamedTuple):
    """Of a model that is done: precision of each query, and the codes of the database."""

    val: Floats
    test: Floats
    database: Codes

    def means(self) -> Precision:
        return Precision(float(self.val.mean()), float(self.test.mean()))


def final(hasher: Any, corpus: Corpus) -> Final:
    """By the library: what a user gets."""
    database = hasher.transform(corpus.train.tfidf)

    def precision(queries: Split) -> Floats:
        codes = hasher.transform(queries.tfidf)
        return ranking.precision(
            codes, database, query_labels=queries.labels, labels=corpus.train.labels, k=TOP
        )

    return Final(precision(corpus.val), precision(corpus.test), database)


def posterior_figures(hasher: Any, corpus: Corpus) -> dict[str, float] | None:
    """Return the sureness of a Boltzmann posterior on test, and the reach of its couplings.

    ``bits_differ`` is the share of bits at which the Boltzmann machine, all other bits held at the
    code, would say otherwise: the sign of μ_i + ½ Σ_ii + Σ_{j≠i} Σ_ij s_j is not that of μ_i.
    """
    if not hasattr(hasher, "posterior"):
        return None
    sums = np.zeros(4)
    for start in range(0, corpus.test.tfidf.shape[0], BLOCK):
        p: Posterior = hasher.posterior(corpus.test.tfidf[start : start + BLOCK])
        code = p.location > 0
        coupling = np.abs(p.covariance() * (1 - np.eye(code.shape[1]))).sum(axis=2)
        differs = (conditional_logits(p, code.astype(np.float64)) > 0) != code
        parts = (np.abs(p.location), np.sqrt(p.variances()), coupling, differs)
        sums += [part.sum() for part in parts]
    location, deviation, coupling_sum, differ = sums / (corpus.test.tfidf.shape[0] * hasher.n_bits)
    return {
        "mean_abs_location": location,
        "mean_deviation": deviation,
        "mean_abs_coupling": coupling_sum / (hasher.n_bits - 1),
        "bits_differ": differ,
    }


def conditional_logits(p: Posterior, s: Floats) -> Floats:
    """μ_i + ½ Σ_ii + Σ_{j≠i} Σ_ij s_j of each document."""
    variances = p.variances()
    projected = np.einsum("nmv,nm->nv", p.factor, s)
    coupled = p.diagonal * s + np.einsum("nmv,nv->nm", p.factor, projected) - variances * s
    return np.asarray(p.location + 0.5 * variances + coupled)


def agreement(hasher: Any, corpus: Corpus, database: Codes) -> float:
    """How well the halves of val's documents agree on the codes of train that are near: no labels.

    At most 1,000 documents of two words or more, of which no hasher has learned.
    """
    matrix = corpus.val.tfidf[np.diff(corpus.val.tfidf.indptr) >= 2][:1000]
    both = halves(matrix, np.random.default_rng(0))
    one, other, documents = (
        np.where(unpack(codes), np.float32(1), np.float32(-1))
        for codes in (*(hasher.encode(half) for half in both), database)
    )
    return float(agreement_of_halves(one, other, documents, n_nearest(len(documents))).mean())


class Curve:
    """Precision of a deep hasher as it trains; remembers every ``every``-th epoch and the last."""

    def __init__(self, corpus: Corpus, device: torch.device, every: int = 1) -> None:
        self._corpus = corpus
        self._every = every
        self._on_device = OnDevice(corpus, device) if device.type == "cuda" else None
        self.epochs: list[tuple[int, float, float]] = []

    def __call__(self, hasher: Any) -> None:
        epoch = hasher.history_[-1].epoch
        if epoch % self._every and epoch != hasher._n_epochs(self._corpus.train.tfidf.shape[0]):
            return
        on_device = self._on_device
        found = on_device(hasher) if on_device else final(hasher, self._corpus).means()
        self.epochs.append((epoch, *(round(value, 5) for value in found)))

    def leave_medians(self, hasher: Any) -> None:
        """Have the library find the medians of VDSH once, at the end: on a GPU the curve finds its own,
        and encoding all documents on a CPU after every epoch would take five times as long as training.
        """
        if self._on_device is None:
            return

        def finish(rows: sparse.csr_matrix) -> None:
            if hasher.history_[-1].epoch == hasher._n_epochs(rows.shape[0]):
                type(hasher)._finish(hasher, rows)

        hasher._finish = finish


class OnDevice:
    """The twin of :func:`final` that computes in float32 on a device."""

    def __init__(self, corpus: Corpus, device: torch.device) -> None:
        self._corpus = corpus
        self._device = device
        train = torch.from_numpy(corpus.train.labels.astype(np.float32)).to(device)
        self._relevant = {
            name: torch.from_numpy(split.labels.astype(np.float32)).to(device) @ train.T > 0
            for name, split in (("val", corpus.val), ("test", corpus.test))
        }

    def __call__(self, hasher: Any) -> Precision:
        codes = self._codes(hasher)
        return Precision(
            *(
                expected_precision_on_device(codes[name], codes["train"], self._relevant[name])
                for name in ("val", "test")
            )
        )

    @torch.no_grad()
    def _codes(self, hasher: Any) -> dict[str, Tensor]:
        weights = {
            name: torch.from_numpy(w).to(self._device) for name, w in hasher.weights_.items()
        }
        network, locations = hasher.recipe()["network"], {}
        for name in ("train", "val", "test"):
            h = _inputs(self._corpus, name, network.input_length, self._device)
            for layer in ("hidden1", "hidden2") if network.hidden_units else ():
                h = linear(h, weights[f"{layer}.weight"], weights[f"{layer}.bias"]).relu()
            head = (weights["heads.location.weight"], weights["heads.location.bias"])
            locations[name] = linear(h, *head)
        cut = locations["train"].quantile(0.5, dim=0) if isinstance(hasher, VDSH) else 0.0
        return {name: location > cut for name, location in locations.items()}


# A worker measures many models on the same documents; spreading them out takes a second. Those of the
# last corpus alone are kept: twenty workers share the memory of a GPU.
_kept: dict[tuple[str, str, float | None], Tensor] = {}


def _inputs(corpus: Corpus, name: str, length: float | None, device: torch.device) -> Tensor:
    """What the network reads of a split, dense on the device."""
    key = (corpus.sha256, name, length)
    if key not in _kept:
        for other in [k for k in _kept if k[0] != corpus.sha256]:
            del _kept[other]
        matrix: sparse.csr_matrix = getattr(corpus, name).tfidf
        if length is not None:
            matrix = unit_rows(matrix) * length
        _kept[key] = torch.from_numpy(matrix.astype(np.float32).toarray()).to(device)
    return _kept[key]


def expected_precision_on_device(queries: Tensor, codes: Tensor, relevant: Tensor) -> float:
    """The twin of :func:`boltzhash.metrics.precision` for bits on a device."""
    n_bits = queries.shape[1]
    signs = [bits.float() * 2 - 1 for bits in (queries, codes)]
    distances = ((n_bits - signs[0] @ signs[1].T) / 2).round().long()
    cells = len(queries) * (n_bits + 1)
    place = torch.arange(len(queries), device=queries.device).unsqueeze(-1) * (n_bits + 1)
    keys = (place + distances).flatten()
    shape = (len(queries), n_bits + 1)
    there = torch.bincount(keys, minlength=cells).view(shape).double()
    hits = torch.bincount(keys[relevant.flatten()], minlength=cells).view(shape).double()
    nearer = there.cumsum(1) - there
    taken = torch.minimum((TOP - nearer).clamp(min=0), there)
    return float((hits * taken / there.clamp(min=1)).sum(1).mean() / TOP)
