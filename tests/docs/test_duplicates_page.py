"""The examples of docs/duplicates.md are run: they print what it says, and no command fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from .pages import read_blocks, run_commands, run_python


def test_the_examples_do_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, commands), (_, script), (_, printed) = read_blocks("docs/duplicates.md")
    assert run_python(script, tmp_path) == printed
    monkeypatch.chdir(tmp_path)
    assert "deleted 0 documents, 1 are left" in run_commands(*commands.splitlines())
