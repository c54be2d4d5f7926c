"""The examples of docs/collections.md are run: they print what the page says, and no command fails."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from boltzhash import ITQ
from boltzhash.cli.parser import main

PAGE = Path(__file__).parents[2] / "docs" / "collections.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def test_the_python_example_prints_what_the_page_says(tmp_path: Path) -> None:
    (_, script), (_, printed) = BLOCKS[:2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    def without_distances(text: str) -> str:  # which may differ with the machine's LAPACK
        return re.sub(r"^\d+ ", "", text, flags=re.M)

    assert without_distances(done.stdout) == without_distances(printed)


def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = next(text for _, text in BLOCKS if text.startswith("boltzhash index"))
    on_a_folder = [line for line in commands.splitlines() if "://" not in line]
    assert on_a_folder.pop().startswith("boltzhash serve library ")  # which would not end
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOLTZHASH_CACHE", str(tmp_path / "cache"))
    texts = [
        f"planets and moons {i} times, bread and butter {i // 3}, no{i % 9}" for i in range(40)
    ]
    for name, seed in {"model": 0, "new-model": 1}.items():
        ITQ(n_bits=64, random_state=seed).fit(texts).save(name)
    for name, some in {"corpus": texts[:30], "more": texts[30:]}.items():
        records = [{"id": f"{name}-{i}", "text": text} for i, text in enumerate(some)]
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert len(on_a_folder) == 15
    for line in on_a_folder:
        program, *arguments = shlex.split(line, comments=True)
        assert program == "boltzhash"
        assert main(arguments) == 0, line
