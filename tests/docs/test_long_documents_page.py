"""The examples of docs/long_documents.md are run: they print what it says, and no command fails."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from boltzhash import Collection
from boltzhash.cli.parser import main

PAGE = Path(__file__).parents[2] / "docs" / "long_documents.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def test_the_examples_do_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (_, commands), (_, script), (_, printed), *_ = BLOCKS
    monkeypatch.chdir(tmp_path)
    (tmp_path / "manuals").mkdir()
    for name in ("collections", "filters", "service"):  # pages that are long enough
        text = PAGE.with_name(f"{name}.md").read_text(encoding="utf-8")
        if name == "service":
            text += " The option -f overwrites files, whichever they are. " + text
        (tmp_path / "manuals" / f"{name}.txt").write_text(text, encoding="utf-8")
    for line in commands.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "boltzhash"
        assert main(arguments) == 0, line
        if "--json" in arguments:
            hit = json.loads(capsys.readouterr().out.splitlines()[-1])["hits"][0]
    assert hit["id"] == "service.txt"
    with Collection.open("library") as library:
        text = library.get("service.txt")
    assert text is not None
    assert "overwrites" in text.text[hit["passage"]["start"] : hit["passage"]["end"]]
    (tmp_path / "apart").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path / "apart",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == printed
