"""What the documentation shows is what the results give."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .conftest import ROOT


@pytest.mark.parametrize("room", ["tables", "figures"])
def test_tables_and_figures_in_the_docs_are_what_the_results_give(room: str) -> None:
    command = [sys.executable, "-m", f"experiments.{room}", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
