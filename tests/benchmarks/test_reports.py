"""The tables and figures of the docs are those of the result files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("report.py", ""),
        ("collection_report.py", "all blocks are up to date\n"),
        ("alternatives.py", ""),
    ],
)
def test_what_is_written_is_up_to_date(script: str, said: str) -> None:
    """Where this fails: ``python benchmarks/…`` without ``--check``."""
    command = [sys.executable, str(SCRIPTS / script), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, said), done.stderr
