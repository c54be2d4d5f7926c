"""What SemanticHasher reaches on the benchmark corpora, and with how much memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from boltzhash import CorrSH, SemanticHasher, Training
from boltzhash.datasets.vdsh import Splits, load_mat
from boltzhash.metrics import precision


def precision_on_test(hasher: SemanticHasher, data: Splits) -> float:
    """Last epoch, queries = test, database = train, top 100, expected over ties."""
    queries, database = hasher.transform(data.test.tfidf), hasher.transform(data.train.tfidf)
    return float(
        precision(queries, database, query_labels=data.test.labels, labels=data.train.labels).mean()
    )


def test_a_short_fit_on_real_text_beats_no_learning(data_folder: Path) -> None:
    """Ten epochs on Reuters: a broken term of the loss shows here, in a quarter of a minute.

    Five seeds lay between .716 and .726 when this was written; an untrained network reaches .24.
    """
    data = load_mat(data_folder / "reuters.tfidf.mat")
    hasher = SemanticHasher(32, training=Training(epochs=10, device="cpu")).fit(data.train.tfidf)
    assert precision_on_test(hasher, data) > 0.69


def test_fitting_never_makes_the_corpus_dense(data_folder: Path) -> None:
    """ng20 as a dense float32 matrix alone would take .45 GB; all of a fit stays under 1.5 GB."""
    script = (
        "from pathlib import Path\n"
        "from boltzhash import SemanticHasher\n"
        "from boltzhash.datasets.vdsh import load_mat\n"
        f"train = load_mat({str(data_folder / 'ng20.tfidf.mat')!r}).train.tfidf\n"
        "SemanticHasher(32).set_params(training__epochs=1, training__device='cpu').fit(train)\n"
        "status = Path('/proc/self/status').read_text()\n"  # ru_maxrss counts what started it, too
        "print(status.partition('VmHWM:')[2].split()[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) * 1024 < 1.5e9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "corpus", "asked"),
    [
        ("published", "ng20", 0.52),
        ("published", "reuters", 0.69),
        ("default", "ng20", 0.58),
        ("default", "reuters", 0.72),
    ],
)
def test_precision_at_32_bits(data_folder: Path, settings: str, corpus: str, asked: float) -> None:
    """Mean of three seeds, last epoch, no labels; within one standard error of what is asked.

    The published settings on reuters lie at the bar itself: triples of seeds gave .697, .693 and .689.
    """
    data = load_mat(data_folder / f"{corpus}.tfidf.mat")
    make = CorrSH.as_published if settings == "published" else SemanticHasher
    reached = [
        precision_on_test(make(32, random_state=seed).fit(data.train.tfidf), data)
        for seed in range(3)
    ]
    print(f"{settings} {corpus}: {np.mean(reached):.4f} {np.round(reached, 4).tolist()}")
    assert np.mean(reached) + np.std(reached, ddof=1) / np.sqrt(len(reached)) >= asked
