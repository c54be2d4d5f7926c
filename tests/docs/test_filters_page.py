"""Every filter of docs/filters.md finds what the page says, and its other examples do as well."""

from __future__ import annotations

import doctest
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from boltzhash import LSH, Text
from boltzhash.collection import Collection

from .pages import ROOT, blocks_of, run_commands

pytestmark = pytest.mark.filterwarnings("ignore::boltzhash.collection.FilterWarning")

PAGE = (ROOT / "docs" / "filters.md").read_text(encoding="utf-8")
BLOCKS = blocks_of(PAGE)
ROWS = re.findall(r"^\| `(\{.*?\})` \| ([a-z ]*?) ?\|", PAGE, re.M)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Collection]:
    documents = [json.loads(line) for line in BLOCKS[0][1].splitlines()]
    hasher = LSH(n_bits=64, text=Text(max_df=1.0)).fit([document["text"] for document in documents])
    with Collection.create(tmp_path / "library", hasher) as collection:
        collection.add(documents)
        yield collection


def test_every_filter_finds_what_the_page_says(library: Collection) -> None:
    order = [document.id for document in library]
    assert len(ROWS) == PAGE.count("\n| `{") > 25
    for where, ids in ROWS:
        found = library.within("bread", 64, where=json.loads(where)).ids
        assert sorted(found, key=order.index) == ids.split(), where


def test_the_sessions_print_what_the_page_says(library: Collection) -> None:
    sessions = "\n".join(text for kind, text in BLOCKS if kind == "python")
    session = doctest.DocTestParser().get_doctest(sessions, {"library": library}, "page", None, 0)
    assert len(session.examples) == 4
    assert doctest.DocTestRunner().run(session).failed == 0


def test_every_command_finds_something(
    library: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (commands,) = (text for kind, text in BLOCKS if kind == "sh")
    for line in commands.splitlines():
        assert "paris" in run_commands(line), line
