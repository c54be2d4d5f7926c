"""What many tests need: a small corpus with topics, and the benchmark corpora where they are at hand."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from boltzhash.search import compiled
from small_corpus import TOPICS

pytest_plugins = ["services", "browsing"]  # fixtures that tests of several rooms share

# A shell that starts the suite in the background has interrupts ignored, and programs it starts as well;
# tests of what an interrupt does need them.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest.register_assert_rewrite("command_line")

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def _kernel_of_the_environment() -> None:
    compiled.kernel_name.cache_clear()


@pytest.fixture(autouse=True)
def _own_process() -> Iterator[None]:
    """Undo what commands set for the whole process, the log, and what numba sets, torch's threads."""
    logger, torch = logging.getLogger("boltzhash"), sys.modules.get("torch")
    logger.setLevel(logging.NOTSET)
    logger.handlers = []
    n_threads = torch and torch.get_num_threads()
    yield
    if torch and torch.get_num_threads() != n_threads:
        torch.set_num_threads(n_threads)


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Thirty texts of eight words from each of the three topics."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(TOPICS[topic].split(), 8)) for topic in TOPICS for _ in range(30)]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The benchmark corpora; tests that need them skip where BOLTZHASH_DATA is not set."""
    folder = os.environ.get("BOLTZHASH_DATA")
    if not folder:
        pytest.skip("BOLTZHASH_DATA does not name a folder with the benchmark corpora")
    return Path(folder)
