"""The examples of docs/long_documents.md are run: they print what it says, and no command fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boltzhash import Collection

from .pages import ROOT, read_blocks, run_commands, run_python


def test_the_examples_do_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, commands), (_, script), (_, printed), *_ = read_blocks("docs/long_documents.md")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "manuals").mkdir()
    for name in ("collections", "filters", "service"):  # pages that are long enough
        text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        if name == "service":
            text += " The option -f overwrites files, whichever they are. " + text
        (tmp_path / "manuals" / f"{name}.txt").write_text(text, encoding="utf-8")
    for line in commands.splitlines():
        shown = run_commands(line)
        if "--json" in line:
            hit = json.loads(shown)["hits"][0]
    assert hit["id"] == "service.txt"
    with Collection.open("library") as library:
        text = library.get("service.txt")
    assert text is not None
    assert "overwrites" in text.text[hit["passage"]["start"] : hit["passage"]["end"]]
    assert run_python(script, tmp_path / "apart") == printed
