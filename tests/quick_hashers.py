"""Hashers with settings that are quick on the texts of the fixture ``texts``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import hamming
from boltzhash.hashers import HASHERS
from small_corpus import TOPICS

# Each as far as a hasher has it, but for the exceptions: so a further hasher is tested as it comes.
QUICK = {"n_bits": 16, "epochs": 30, "hidden_units": 32, "device": "cpu"}
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "SelfTaughtHashing": {"n_neighbors": 5},
    # In so few steps edges would outweigh the words of such short texts.
    "SNUH": {"kl_weight": (0.0, 0.1), "kl_ramp": 1.0},
    "StackedRBM": {
        "epochs": 200,
        "pretraining_epochs": 100,
        "pretraining_rate": 0.05,
        "learning_rate": 0.002,
        "hidden_units": (32,),
    },
}
TOPIC_OF_TEXTS = [topic for topic in TOPICS for _ in range(30)]


def quick(kind: str = "CorrSH", **changes: Any) -> Any:
    known = HASHERS[kind].defaults()
    settings = {name: value for name, value in QUICK.items() if name in known}
    return HASHERS[kind](**{**settings, **EXCEPTIONS.get(kind, {}), **changes})


def separation(codes: NDArray[np.uint8], labels: list[str] = TOPIC_OF_TEXTS) -> float:
    """How many bits codes of one label are nearer than others, on average."""
    distances = hamming(codes, codes)
    same = np.equal.outer(labels, labels)
    return float(distances[~same].mean() - distances[same].mean())
