"""The figures of the docs are those of the result files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_blocks_of_the_docs_are_up_to_date() -> None:
    """Where this fails: ``python benchmarks/collection_report.py``."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "collection_report.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "all blocks are up to date\n"), done.stderr
