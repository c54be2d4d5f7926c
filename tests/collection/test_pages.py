"""What docs/scale.md and docs/collections.md show of servers, run on them: with the URLs of these."""

from __future__ import annotations

import re
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from boltzhash import Hasher
from boltzhash.cli.parser import main
from quick_hashers import make_defaults_short

from .conftest import WORDS

pytestmark = pytest.mark.engines

DOCS = Path(__file__).parents[2] / "docs"
POSTGRES = "postgresql://ann@db.example/shop"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture
def folder(tmp_path: Path, long_hasher: Hasher, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model and the corpus of the commands."""
    long_hasher.save(tmp_path / "model")
    texts = [f"{one} {other} moons" for one in WORDS for other in WORDS]
    lines = [f'{{"id": {i}, "text": "{text}", "year": 2021}}\n' for i, text in enumerate(texts)]
    (tmp_path / "corpus.jsonl").write_text("".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", ["scale.md", "collections.md"])
def test_commands_with_a_url(page: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("umap", reason="umap-learn is not installed")

    make_defaults_short(monkeypatch, 2)
    lines = [
        line for block in blocks(page) for line in block.splitlines() if f'"{POSTGRES}' in line
    ]
    commands = [line for line in lines if line.startswith("boltzhash ")]
    assert commands
    for line in commands:
        _, *arguments = shlex.split(line, comments=True)
        if arguments[0] != "serve":  # which would not end
            here = [a.replace(f"{POSTGRES}#", f"{postgres_url}#{page[:5]}_") for a in arguments]
            assert main(here) == 0, line


def test_python(postgres_url: str, long_hasher: Hasher) -> None:
    (opening,) = (
        block
        for block in blocks("scale.md")
        if block.startswith("from boltzhash import Collection")
    )
    opening = opening.replace(POSTGRES, postgres_url)
    names: dict[str, Any] = {"hasher": long_hasher}
    with ExitStack() as opened:
        libraries = []
        for line in opening.splitlines():
            exec(line, names)
            if line.startswith("library"):
                libraries.append(opened.enter_context(names["library"]))
        created, reopened = libraries
        created.add({"id": i, "text": f"{word} moons"} for i, word in enumerate(WORDS * 20))
        assert len(reopened) == 20 * len(WORDS)
