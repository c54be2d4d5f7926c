"""The examples of docs/duplicates.md are run: they print what the page says, and no command fails."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from boltzhash.cli.parser import main

PAGE = Path(__file__).parents[2] / "docs" / "duplicates.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def test_the_examples_do_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (_, commands), (_, script), (_, printed) = BLOCKS
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == printed
    monkeypatch.chdir(tmp_path)
    for line in commands.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "boltzhash"
        assert main(arguments) == 0, line
    assert "deleted 0 documents, 1 are left" in capsys.readouterr().err
