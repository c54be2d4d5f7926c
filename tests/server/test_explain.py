"""Words of bits: those that set the documents of one side apart from the others."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from boltzhash.server.distinctive import Occurrences
from boltzhash.server.explain import side_words
from boltzhash.text.analyzer import Analyzer


def test_words_of_a_side_are_distinctive_not_frequent() -> None:
    """Everyone says "the"; "data" tells every bit apart, "csv" only the first."""
    rng = np.random.default_rng(0)
    bits = rng.random((400, 8)) < 0.5
    data = bits.mean(axis=1) > 0.5  # goes with all bits a little
    columns = [np.ones(400, bool), data, bits[:, 0] & (rng.random(400) < 0.8)]
    has = sparse.csr_matrix(np.stack(columns, axis=1).astype(np.float64))
    off, on = side_words(Occurrences(has, ["the", "data", "csv"]), bits, Analyzer())
    assert on[0] == ["csv", "data"]
    assert all(side[:1] == ["data"] for side in on[1:])
    assert not any("the" in side for side in on + off)
