"""The collection of docs/embeddings.md is made and asked: it prints what the page says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from quick_hashers import make_defaults_short
from small_corpus import make_documents, write_jsonl

from .pages import ROOT, blocks_of, run_commands, run_python

PAGE = (ROOT / "docs" / "embeddings.md").read_text(encoding="utf-8")
BLOCKS = blocks_of(PAGE.partition("\n## A collection of them\n")[2])


def test_the_python_example_prints_what_the_page_says(tmp_path: Path) -> None:
    (_, script), (_, printed) = BLOCKS[:2]
    assert run_python(script, tmp_path) == printed


def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = next(text for _, text in BLOCKS if text.startswith("boltzhash fit")).splitlines()
    monkeypatch.chdir(tmp_path)
    make_defaults_short(monkeypatch, 2)
    rng = np.random.default_rng(0)
    for name, n in {"corpus": 240, "more": 10}.items():
        records = [
            {"id": f"{name}-{i}", "text": f"{document['text']} central bank", "year": 2021}
            for i, document in enumerate(make_documents(n))
        ]
        write_jsonl(tmp_path / f"{name}.jsonl", records)
        vectors = np.eye(3, 8)[np.arange(n) % 3] + rng.standard_normal((n, 8)) / 4
        np.save(tmp_path / {"corpus": "vectors.npy", "more": "more.npy"}[name], vectors)
    np.save(tmp_path / "query.npy", np.eye(8)[0])
    assert len(commands) == 8
    run_commands(*commands)
