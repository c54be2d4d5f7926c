"""What many tests need: a small corpus with topics, and the benchmark corpora where they are at hand."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

pytest_plugins = ["services"]  # fixtures that tests of several rooms share

# A shell that starts the suite in the background has interrupts ignored, and programs it starts as well;
# tests of what an interrupt does need them.
signal.signal(signal.SIGINT, signal.default_int_handler)

TOPICS = {
    "sky": "star planet moon orbit comet telescope galaxy eclipse meteor nebula asteroid sun",
    "kitchen": "bread butter oven flour sugar recipe bake dough salt pepper soup onion",
    "sea": "ship sail anchor harbour captain wave tide mast deck crew voyage storm",
}


def topic_texts(n_per_topic: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts of eight words from one of three topics, and the topic of each."""
    rng = np.random.default_rng(seed)
    labels = [topic for topic in TOPICS for _ in range(n_per_topic)]
    return [" ".join(rng.choice(TOPICS[topic].split(), 8)) for topic in labels], labels


@pytest.fixture(scope="session")
def texts() -> list[str]:
    return topic_texts(30)[0]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The benchmark corpora; tests that need them skip where BOLTZHASH_DATA is not set."""
    folder = os.environ.get("BOLTZHASH_DATA")
    if not folder:
        pytest.skip("BOLTZHASH_DATA does not name a folder with the benchmark corpora")
    return Path(folder)
