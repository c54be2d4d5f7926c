"""The example of docs/langchain.md is run: it prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import environment

PAGE = Path(__file__).parents[2] / "docs" / "langchain.md"


def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    text = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    (printed,) = re.findall(r"^```text\n(.*?)^```", text, re.M | re.S)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
