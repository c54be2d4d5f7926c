"""Memory that is kept while a model is trained."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

COUNTED = """
import resource
import numpy as np
from boltzhash.training.memory import kept_memory

def faults_of_ten():
    np.ones(5_000_000)  # the first has to ask
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        np.ones(5_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with kept_memory():
    kept = faults_of_ten()
print(kept, faults_of_ten())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_blocks_are_used_again_until_the_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True
    )
    kept, given_back = map(int, done.stdout.split())
    assert kept < given_back / 10
