"""The demo, on a corpus that is learned in a second."""

import re
from pathlib import Path

import pytest

from boltzhash import SemanticHasher
from boltzhash.cli import demo
from boltzhash.collection import Collection
from boltzhash.corpus import Document, docstrings
from boltzhash.errors import needs_extra
from boltzhash.hashers.semantic_hasher import PURPOSES
from boltzhash.hashers.shared.settings import with_changes
from command_line import run, succeed
from small_corpus import DOCUMENTS


def test_the_demo_answers_its_questions_and_mine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    documents = [Document(d["id"], f"name in words\n\n{d['text']}") for d in DOCUMENTS]
    monkeypatch.setattr(docstrings, "docstring_corpus", lambda: documents)
    quick = with_changes(PURPOSES["questions"], training__epochs=10)
    monkeypatch.setitem(PURPOSES, "questions", quick)
    kept = str(tmp_path / "kept")
    lines = succeed("demo", "planet orbit", "--output", kept).splitlines()
    assert lines[0] == "learning from the docstrings of this Python: a minute or two, once"
    assert lines[1].startswith("60 docstrings read in ")
    for question in (*demo.QUESTIONS, "planet orbit"):
        assert lines.count(question) == 1
    last = lines[lines.index("planet orbit") + 1 :]
    hits = [line.split() for line in last if re.match(r" +\d+ +\d+\.\d\d  \w+-\d+ +\w", line)]
    assert [int(hit[0]) for hit in hits] == [1, 2, 3, 4, 5]
    assert {"planet", "orbit"} <= {word.rstrip(".") for word in hits[0][3:]}
    assert lines[-2].endswith(f'boltzhash search {kept} "sort a list"')
    assert lines[-1].endswith(f"boltzhash serve {kept}")
    with Collection.open(kept) as collection:
        assert [(d.id, d.text) for d in collection] == [(d.id, d.text) for d in documents]
    monkeypatch.setattr(SemanticHasher, "fit", None)  # what was learned is used again
    again = succeed("demo", "planet orbit", "--output", kept).splitlines()
    assert again[0].startswith("60 docstrings read in ")  # nothing is learned
    assert again[again.index("planet orbit") :] == lines[lines.index("planet orbit") :]
    monkeypatch.setattr(docstrings, "docstring_corpus", lambda: documents[1:])
    refused = run("demo", "--output", kept)
    assert (refused.code, "something else" in refused.err) == (5, True)


def test_without_torch_the_demo_answers_by_words_and_linear_codes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise needs_extra("fit", "torch", "train")

    documents = [Document(d["id"], d["text"]) for d in DOCUMENTS]
    monkeypatch.setattr(docstrings, "docstring_corpus", lambda: documents)
    monkeypatch.setattr(SemanticHasher, "fit", refuse)
    result = run("demo", "planet orbit", "--output", tmp_path / "kept")
    assert result.code == 0
    assert result.err == (
        "boltzhash: fit needs torch, which is not installed: pip install 'boltzhash[train]' for "
        "learned codes; going on with words, and the codes of ITQ, a linear method\n"
    )
    with Collection.open(tmp_path / "kept") as collection:
        assert type(collection.hasher).__name__ == "ITQ"
        assert collection.hasher.n_bits == 64
