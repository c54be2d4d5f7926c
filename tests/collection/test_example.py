"""examples/postgresql.py against a server: it makes its collection, and finds it again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "postgresql.py"


@pytest.mark.engines
def test_makes_a_collection_and_finds_it_again(postgres_url: str, tmp_path: Path) -> None:
    def run(*arguments: str, **variables: str) -> str:
        return subprocess.run(
            [sys.executable, SCRIPT, *arguments],
            cwd=tmp_path,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    first, second = run(postgres_url), run(BOLTZHASH_POSTGRES=postgres_url)
    assert first.startswith("made postgresql://")
    assert "#example_docstrings is there already\n" in second
    assert first.splitlines()[1:] == second.splitlines()[1:]
    assert "64 bits by ITQ\nwait for a thread to finish\n   1 " in first
