"""The classical hashers on the benchmark corpora, against figures measured elsewhere.

Fitted on train without labels; queries are test, database is train, a hit is relevant when it shares a
label; precision of the top 100 in expectation over ties.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from boltzhash import ITQ, LSH, Hasher, SelfTaughtHashing, SpectralHashing
from boltzhash.datasets.vdsh import Splits, load_mat
from boltzhash.metrics import ranking


@cache
def corpus(path: Path) -> Splits:
    return load_mat(path)


def precision(hasher: Hasher, splits: Splits) -> float:
    train, test = splits.train, splits.test
    hasher.fit(train.tfidf)
    codes, queries = hasher.transform(train.tfidf), hasher.transform(test.tfidf)
    return float(
        ranking.precision(queries, codes, query_labels=test.labels, labels=train.labels).mean()
    )


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [
        pytest.param("ng20", 0.5305, marks=pytest.mark.slow),
        ("reuters", 0.7050),
        ("tmc", 0.6985),
    ],
)
def test_itq_is_as_good_as_another_build(data_folder: Path, name: str, elsewhere: float) -> None:
    """LSA + ITQ at 32 bits, one seed of another implementation on the same files: within .01."""
    splits = corpus(data_folder / f"{name}.tfidf.mat")
    found = np.mean([precision(ITQ(32, random_state=seed), splits) for seed in range(5)])
    assert found >= elsewhere - 0.01


@pytest.mark.parametrize("name", ["ng20", "reuters"])
@pytest.mark.parametrize(
    "kind", [SpectralHashing, pytest.param(SelfTaughtHashing, marks=pytest.mark.slow)]
)
def test_learned_codes_beat_random_ones(data_folder: Path, name: str, kind: type[Hasher]) -> None:
    """By .10 at 32 bits, as in every published table of these methods."""
    splits = corpus(data_folder / f"{name}.tfidf.mat")
    assert precision(kind(32), splits) >= precision(LSH(32), splits) + 0.10  # type: ignore[call-arg]
