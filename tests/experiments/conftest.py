"""Results that are made up and go elsewhere, documents of four topics, rows of tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from experiments.results import files
from experiments.runs import corpora
from experiments.tables import cells

ROOT = Path(__file__).parents[2]

Record = Callable[..., None]


@pytest.fixture
def results_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder where result files are read and written instead of the committed ones."""
    folder = tmp_path / "results"
    monkeypatch.setattr(files, "FOLDER", folder)
    return folder


def made_up(settings: str, corpus: str, bits: int, *, seed: int = 0, **more: Any) -> files.Result:
    """A result: made_up("NASH", "tmc", 32, seed=0, label_free=0.5, ...)."""
    precision = {
        protocol: more.pop(protocol.replace("-", "_"))
        for protocol in cells.PROTOCOLS
        if protocol.replace("-", "_") in more
    }
    named = {"settings": settings, "corpus": corpus, "bits": bits, "seed": seed}
    return {"run": f"{settings}-{corpus}-{bits}-{seed}", "precision": precision, **named, **more}


@pytest.fixture
def record(results_folder: Path) -> Record:
    """Write a made-up result: record("tables", "NASH", "tmc", 32, seed=0, label_free=0.5, ...)."""

    return lambda experiment, *run, **more: files.write(experiment, made_up(*run, **more))


def rows(table: str) -> list[list[str]]:
    """The cells of a Markdown table, without its head."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]
    ]


@pytest.fixture
def small_corpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """Put documents of four topics in the place of one of the corpora; gives its file."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("BOLTZHASH_DATA", str(folder))
    corpus = corpora.corpus
    corpus.cache_clear()

    def write(name: str) -> Path:
        rng = np.random.default_rng(0)
        contents = {}
        for part, size in (("train", 120), ("cv", 20), ("test", 20)):
            topics = np.arange(size) % 4
            likely = np.repeat(np.eye(4), 20, axis=1)[topics] * 0.4 + 0.05
            words = (rng.random((size, 80)) < likely) * rng.random((size, 80))
            contents[part] = sparse.csr_matrix(words)
            contents[f"gnd_{part}"] = np.eye(4)[topics]
        path = folder / f"{name}.tfidf.mat"
        savemat(path, contents)
        return path

    yield write
    corpus.cache_clear()  # no later test is to find these documents
