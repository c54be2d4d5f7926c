"""The command line over every engine: a folder or a URL, the same words and the same answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from boltzhash import Hasher
from boltzhash.cli.parser import main
from boltzhash.collection import Collection

TEXTS = ["star planet", "moon orbit", "bread butter", "oven flour", "ship sail", "anchor wave"]
RECORDS = [{"id": i, "text": TEXTS[i % 6], "half": i < 9} for i in range(18)]


@pytest.fixture
def location(engine: Any, long_hasher: Hasher) -> str:
    """Return the location of an empty collection."""
    return str(engine.location(engine.create(long_hasher)))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return path


@pytest.fixture
def model(tmp_path: Path, long_hasher: Hasher) -> Path:
    long_hasher.save(tmp_path / "model")
    return tmp_path / "model"


def test_from_a_corpus_to_answers(
    location: str, corpus: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: object) -> list[Any]:
        assert main([*map(str, arguments), "--json"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    (indexed,) = run("index", model, corpus, "-o", location)
    assert "@" not in indexed["collection"]
    assert (indexed["written"], indexed["documents"]) == (18, 18)
    (answer,) = run("search", location, "moon orbit", "-k", "2", "--where", '{"half": true}')
    assert [(hit["id"], hit["distance"]) for hit in answer["hits"]] == [(1, 0), (7, 0)]
    assert answer["hits"][0]["snippet"] == "moon orbit"
    (again,) = run("search", model, location, "moon orbit", "-k", "2")
    assert [hit["id"] for hit in again["hits"]] == [1, 7]
    (again,) = run("search", model, location, "moon orbit", "-k", "2", "--order", "words")
    assert [hit["id"] for hit in again["hits"]] == [1, 7]
    with Collection.open(location) as collection:
        for by in ("words", "both"):
            (answer,) = run("search", location, "star sail", "-k", "4", "--by", by)
            expected = collection.search("star sail", 4, by=by)
            assert [hit["id"] for hit in answer["hits"]] == expected.ids
            assert answer["by"] == by
    copies = [{"id": 6, "similarity": 1.0}, {"id": 12, "similarity": 1.0}]
    assert run("duplicates", location)[0] == {"kept": 0, "duplicates": copies}
    assert run("delete", location, "0")[0]["documents"] == 17
    assert run("add", location, corpus, "--upsert")[0]["documents"] == 18
    assert run("stats", location, "--check")[0]["documents"] == 18
    assert run("backup", location, "-o", tmp_path / "backup")[0]["backup"]
    assert run("stats", tmp_path / "backup", "--check")[0]["documents"] == 18
    assert run("export", location, "-o", tmp_path / "all.jsonl")[0]["documents"] == 18
    if pytest.importorskip("umap", reason="umap-learn is not installed"):
        assert run("map", location)[0]["documents"] == 18


def test_from_a_corpus_without_a_model_to_answers(
    location: str, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = f"{location}_learned"
    assert main(["index", str(corpus), "-o", new, "--bits", "32"]) == 0
    assert "18 documents, codes of 32 bits (ITQ)" in capsys.readouterr().out
    assert main(["search", new, "moon orbit", "-k", "1"]) == 0
    assert "moon orbit" in capsys.readouterr().out.splitlines()[1]
    assert main(["index", str(corpus), "-o", new]) == 5


@pytest.mark.parametrize("command", ["index", "search", "stats", "serve"])
@pytest.mark.parametrize("url", ["mysql://ann:hunter2@host/db", "http://ann:hunter2@host"])
def test_an_engine_that_is_not_known_makes_no_folder(
    url: str,
    command: str,
    corpus: Path,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = [str(model), str(corpus), "-o"] if command == "index" else []
    before = sorted(tmp_path.rglob("*"))
    assert main([command, *arguments, url]) == 2
    message = capsys.readouterr().err
    assert "a collection is a folder or postgresql://…" in message
    assert "hunter2" not in message
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.engines
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hunter2@127.0.0.1:1/db#books",
        "postgresql://127.0.0.1:1/db?user=ann&password=hunter2#books",
    ],
)
def test_a_password_on_the_command_line_is_warned_about_and_not_shown(
    url: str,
    corpus: Path,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nobody listens there."""
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert main(["index", str(model), str(corpus), "-o", url]) == 5
    shown = "".join(capsys.readouterr())
    assert "can be seen in the list of processes" in shown
    assert "PGPASSWORD or ~/.pgpass" in shown
    assert "127.0.0.1:1" in shown
    assert "hunter2" not in shown
    assert sorted(tmp_path.rglob("*")) == before
