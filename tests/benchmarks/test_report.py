"""The tables of the benchmarks are those of the result files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tables_are_up_to_date() -> None:
    """Where this fails: ``python benchmarks/report.py``."""
    command = [sys.executable, str(ROOT / "benchmarks" / "report.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
