"""The examples of docs/drift.md are run: they print what the page says, and no command fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from boltzhash import SemanticHasher, Training
from boltzhash.collection import Collection
from boltzhash.hashers.shared import deep
from small_corpus import make_documents

from .pages import read_blocks, run_commands


def test_the_examples_do_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((_, commands),) = read_blocks("docs/drift.md")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(deep, "MINIMUM_STEPS", 20)
    old = make_documents(60)
    with Collection.create(
        "library", SemanticHasher(16, training=Training(epochs=5)).fit(d["text"] for d in old)
    ) as library:
        library.add(old)
        library.add({"id": i, "text": f"violin cello harp viola {i}"} for i in range(60))
    printed = run_commands(*commands.splitlines())
    advice = "worth it. boltzhash export library -o all.jsonl; boltzhash fit all.jsonl --method"
    assert advice in printed
    with Collection.open("library") as library:
        with library.snapshot() as now:
            drift = now.drift()
        assert drift is not None
        assert drift.is_worth_fitting is False
