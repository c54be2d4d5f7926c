"""The commands that the README shows are run, in their order: none of them fails."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from boltzhash.cli.parser import main
from boltzhash.hashers.shared import deep
from small_corpus import make_documents, write_jsonl

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
COMMANDS = [
    line for _, block in BLOCKS for line in block.splitlines() if line.startswith("boltzhash ")
]


def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("umap", reason="umap-learn is not installed")
    monkeypatch.setattr(deep, "DEFAULT_EPOCHS", 2)
    monkeypatch.setattr(deep, "MINIMUM_STEPS", 2)
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
        arguments = shlex.split(line, comments=True)[1:]
        if arguments[0] == "index" and number > 0:
            arguments[-1] = f"library-{number}"  # which the README makes more than once
        assert main(arguments) == 0, line
