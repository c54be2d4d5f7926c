"""benchmarks/alternatives.py: what it counts, and the libraries of it that the tests have at hand."""

from __future__ import annotations

import gzip
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from small_corpus import make_documents

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def alternatives() -> Iterator[ModuleType]:
    sys.path.insert(0, str(SCRIPTS))  # as Python does for a script
    yield importlib.import_module("alternatives")
    sys.path.remove(str(SCRIPTS))


def test_precision_is_the_share_of_right_ones_among_a_hundred(alternatives: ModuleType) -> None:
    documents = [{"labels": ["a"]}, {"labels": ["b"]}, {"labels": ["a", "b"]}]
    alike = {"documents": documents, "queries": [{"labels": ["a"]}, {"labels": ["b"]}]}
    assert alternatives.precision([[0, 2, 1], [0]], alike) == 0.01  # 2 and 0 of 100


def test_questions_are_measured_by_ids(alternatives: ModuleType, tmp_path: Path) -> None:
    lines = b'{"_id": "x", "text": "one"}\n{"_id": "y", "text": "two"}\n'
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "second?"}\n')
    (tmp_path / "qrels.tsv").write_text("1\ty\t1\n")
    asked = alternatives.Cranfield(tmp_path)
    assert asked.ndcg([[1, 0]]) == 1.0
    assert asked.ndcg([[0, 1]]) == 0.6309  # 1 / log2(3)


@pytest.mark.parametrize("name", ["bm25s", "boltzhash"])
def test_a_library_finds_texts_of_the_topic(
    alternatives: ModuleType, name: str, tmp_path: Path
) -> None:
    contestants: Any = importlib.import_module("contestants")
    documents = make_documents(1200)
    task = contestants.Task("task", [d["text"] for d in documents], ["star planet moon"], tmp_path)
    ways = contestants.CONTESTANTS[name](task)
    for way, measured in ways.items():
        ((first, *_, last),) = measured["ranked"]
        assert documents[first]["id"].startswith("sky-"), way
        assert documents[last]["id"].startswith("sky-"), way
        assert measured["bytes a document"] > 0
    if name == "boltzhash":
        assert ways["64 bits"]["bytes a document"] == 8


def test_a_page_without_marks_is_refused(alternatives: ModuleType) -> None:
    begin = "<!-- written by benchmarks/alternatives.py -->"
    page = alternatives.with_table(f"before\n{begin}\nold\n<!-- end -->\nafter", "new")
    assert page == f"before\n{begin}\n\nnew\n\n<!-- end -->\nafter"
    with pytest.raises(ValueError, match="has no <!-- written by"):
        alternatives.with_table("before", "new")
