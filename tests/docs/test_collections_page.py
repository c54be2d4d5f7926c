"""The examples of docs/collections.md are run: they print what the page says, and no command fails."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from boltzhash import ITQ

from .pages import read_blocks, run_commands, run_python

BLOCKS = read_blocks("docs/collections.md")


def test_the_python_example_prints_what_the_page_says(tmp_path: Path) -> None:
    (_, script), (_, printed), (_, held), (_, told) = BLOCKS[:4]

    def without_distances(text: str) -> str:  # which may differ with the machine's LAPACK
        return re.sub(r"^\d+ ", "", text, flags=re.M)

    assert without_distances(run_python(script, tmp_path)) == without_distances(printed)
    assert run_python(f"from boltzhash import Collection\n{held}", tmp_path) == told


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
    run_commands(*on_a_folder)
