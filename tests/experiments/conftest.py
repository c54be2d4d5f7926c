"""The experiments are scripts beside the package: their folder goes on the path, results elsewhere."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

SCRIPTS = Path(__file__).parents[2] / "experiments"

Module = Callable[[str], ModuleType]
Record = Callable[..., None]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Module:
    """Import a script by its name."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module


@pytest.fixture
def results_folder(module: Module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder where result files are read and written instead of the committed ones."""
    folder = tmp_path / "results"
    for name in ("results", "runs"):
        monkeypatch.setattr(module(name), "FOLDER", folder)
    return folder


@pytest.fixture
def record(module: Module, results_folder: Path) -> Record:
    """Write a made-up result: record("tables", "NASH", "tmc", 32, seed=0, label_free=0.5, ...)."""

    def write(
        experiment: str, settings: str, corpus: str, bits: int, *, seed: int = 0, **more: Any
    ) -> None:
        precision = {
            protocol: more.pop(protocol.replace("-", "_"))
            for protocol in module("cells").PROTOCOLS
            if protocol.replace("-", "_") in more
        }
        named = {"settings": settings, "corpus": corpus, "bits": bits, "seed": seed}
        module("results").write(
            results_folder / experiment / f"{settings}-{corpus}-{bits}-{seed}.json",
            {"experiment": experiment, "precision": precision, **named, **more},
        )

    return write


@pytest.fixture
def small_corpus(
    module: Module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], Path]:
    """Put documents of four topics in the place of one of the corpora; gives its file."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("BOLTZHASH_DATA", str(folder))
    corpus = module("corpora").corpus
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
