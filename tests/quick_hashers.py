"""Hashers with settings that are quick on the texts of the fixture ``texts``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from boltzhash.codes import hamming
from boltzhash.hashers import HASHERS
from boltzhash.hashers.semantic_hasher import PURPOSES
from boltzhash.hashers.shared import deep
from boltzhash.hashers.shared.deep import DeepHasher
from boltzhash.hashers.shared.settings import with_changes
from small_corpus import TOPICS

# Each as far as a hasher has it, but for the exceptions: so a further hasher is tested as it comes.
QUICK = {
    "n_bits": 16,
    "training__epochs": 30,
    "network__hidden_units": 32,
    "training__device": "cpu",
}
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "SelfTaughtHashing": {"n_neighbors": 5},
    # In so few steps the divergence would outweigh the words of such short texts.
    "CorrSH": {
        "training__learning_rate": 0.02,
        "training__batch_size": 30,
        "objective__kl_weight": (0.0, 0.1),
    },
    # So would edges.
    "SNUH": {"objective__kl_weight": (0.0, 0.1), "objective__kl_ramp": 1.0},
    "StackedRBM": {
        "training__epochs": 200,
        "pretraining_epochs": 100,
        "pretraining_rate": 0.05,
        "training__learning_rate": 0.002,
        "hidden_units": (32,),
    },
}
TOPIC_OF_TEXTS = [topic for topic in TOPICS for _ in range(30)]


def quick(kind: str = "SemanticHasher", **changes: Any) -> Any:
    known = HASHERS[kind].param_names()
    settings = {name: value for name, value in QUICK.items() if name in known}
    return HASHERS[kind]().set_params(**{**settings, **EXCEPTIONS.get(kind, {}), **changes})


def make_defaults_short(monkeypatch: pytest.MonkeyPatch, epochs: int) -> None:
    """Fits of so few epochs, however small the corpus, unless a fit has its own number."""
    monkeypatch.setattr(DeepHasher, "USUAL_EPOCHS", epochs)
    monkeypatch.setattr(deep, "MINIMUM_STEPS", epochs)
    short = with_changes(PURPOSES["questions"], training__least_steps=None)
    monkeypatch.setitem(PURPOSES, "questions", short)


def separation(codes: NDArray[np.uint8], labels: list[str] = TOPIC_OF_TEXTS) -> float:
    """How many bits codes of one label are nearer than others, on average."""
    distances = hamming(codes, codes)
    same = np.equal.outer(labels, labels)
    return float(distances[~same].mean() - distances[same].mean())
