"""The commands of docs/corpora.md, as they are written there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from boltzhash import LSH, Collection
from command_line import environment
from small_corpus import make_documents, write_jsonl

PAGE = Path(__file__).parents[2] / "docs" / "corpora.md"


def commands() -> list[str]:
    (block,) = re.findall(r"```\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    return [line.partition("  #")[0].strip() for line in block.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the commands name; the model is there already, so that it need not be learned."""
    parts = [make_documents(60)[start : start + 10] for start in range(0, 60, 10)]
    write_jsonl(tmp_path / "corpus.jsonl", make_documents(60))
    (tmp_path / "data" / "deep").mkdir(parents=True)
    write_jsonl(tmp_path / "data" / "1.jsonl", parts[0])
    write_jsonl(tmp_path / "data" / "deep" / "2.jsonl", parts[1])
    write_jsonl(tmp_path / "part-1.jsonl", parts[0])
    csv = "id,text\n" + "".join(f"{d['id']},{d['text']}\n" for d in parts[1])
    (tmp_path / "part-2.csv").write_text(csv)
    (tmp_path / "export.csv").write_text(csv)
    subprocess.run(["gzip", tmp_path / "part-2.csv"], check=True)
    (tmp_path / "more").mkdir()
    write_jsonl(tmp_path / "more" / "3.jsonl", parts[2])
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("star planet")
    (tmp_path / "lines.txt").write_text("star planet\nbread butter\n")
    (tmp_path / "dirty.jsonl").write_text('{"text": "star"}\nno\n{"text": "moon"}\n')
    return tmp_path


def test_the_commands_do_what_they_say(folder: Path) -> None:
    LSH(16).fit([document["text"] for document in make_documents(60)]).save(folder / "model")
    fit, *rest = commands()
    assert fit == "boltzhash fit corpus.jsonl -o model"
    program = f"{sys.executable} -m boltzhash "
    for command in rest:
        script = command.replace("boltzhash ", program)
        subprocess.run(["sh", "-c", script], cwd=folder, env=environment(), check=True)
    counts = {"library": 30, "notes-library": 1, "lines-library": 2, "clean-library": 2}
    for name, n in counts.items():
        with Collection.open(folder / name) as collection:
            assert len(collection) == n, name
    for name, n in {"codes": 20, "export-codes": 10}.items():
        assert len((folder / name / "ids.jsonl").read_text().splitlines()) == n, name
    assert (folder / "clean-library.skipped.jsonl").exists()
