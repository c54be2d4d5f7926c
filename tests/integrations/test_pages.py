"""The examples of the pages on other libraries are run: they print what the pages say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import environment

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    "langchain.md": "langchain_core",
    "llama_index.md": "llama_index.core",
    "haystack.md": "haystack",
    "data_frames.md": "pandas",
    "assistants.md": "mcp",
}


@pytest.mark.parametrize("page", PAGES)
def test_the_example_prints_what_the_page_says(page: str, tmp_path: Path) -> None:
    pytest.importorskip(PAGES[page])
    text = (DOCS / page).read_text(encoding="utf-8")
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
