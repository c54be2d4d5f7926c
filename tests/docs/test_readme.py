"""The commands that the README shows are run, in their order: none of them fails."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from quick_hashers import make_defaults_short
from small_corpus import make_documents, write_jsonl

from .pages import read_blocks, run_commands

COMMANDS = [
    line
    for _, block in read_blocks("README.md")
    for line in block.splitlines()
    if line.startswith("boltzhash ")
]


def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("umap", reason="umap-learn is not installed")
    make_defaults_short(monkeypatch, 2)
    monkeypatch.chdir(tmp_path)
    texts = [f"{document['text']} interest rates" for document in make_documents(60)]
    rows = [
        {"id": f"report-{i}", "text": text, "year": 2000 + i, "topic": i % 3}
        for i, text in enumerate(texts)
    ]
    write_jsonl(Path("corpus.jsonl"), rows)
    write_jsonl(Path("huge.jsonl"), rows)
    write_jsonl(Path("queries.jsonl"), [{"_id": "q1", "text": "star planet"}])
    Path("qrels.tsv").write_text("q1\treport-0\t1\n")
    np.save("vectors.npy", np.random.default_rng(0).normal(size=(len(rows), 8)))
    assert COMMANDS[-1].startswith("boltzhash serve library ")  # which would not end
    assert len(COMMANDS) > 15
    for number, line in enumerate(COMMANDS[:-1]):
        # The README makes the same library more than once.
        again = line.startswith("boltzhash index ") and number > 0
        run_commands(re.sub(r"\S+\s*(#.*)?$", f"library-{number}", line) if again else line)
