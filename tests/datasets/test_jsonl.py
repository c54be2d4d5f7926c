"""Corpora as JSONL: what is written is read, what is wrong is named."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from boltzhash.corpus import CorpusError
from boltzhash.datasets import write_jsonl
from boltzhash.datasets.jsonl import read_jsonl
from boltzhash.datasets.labelled import LabelledDocument, make_corpus

GOOD = '{"id": "%s", "text": "words", "labels": ["x"], "split": "%s", "raw": true}\n'
LINES = GOOD % (1, "train") + GOOD % (2, "val") + "\n" + GOOD % (3, "test")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    parts = {
        "train": [
            LabelledDocument("ü", "two\nlines\u2028", ("b", "a")),
            LabelledDocument("1", "", ()),
        ],
        "val": [LabelledDocument("2", "text", ("c",))],
        "test": [LabelledDocument("3", "text", ("a",))],
    }
    corpus = make_corpus("small", parts, [])
    path = tmp_path / "small.jsonl.gz"
    write_jsonl(corpus, path)
    first = path.read_bytes()
    again = read_jsonl(path, "small")
    assert again.label_names == corpus.label_names
    for part in ("train", "val", "test"):
        one, other = getattr(corpus, part), getattr(again, part)
        assert (one.ids, one.texts) == (other.ids, other.texts)
        assert (one.labels == other.labels).all()
    assert again.files == (path,)
    write_jsonl(again, path)
    assert path.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == ["small.jsonl.gz"]


def test_other_names_are_refused(tmp_path: Path) -> None:
    parts = {p: [LabelledDocument(p, "", ("x",))] for p in ("train", "val", "test")}
    with pytest.raises(ValueError, match=r"path must end with \.jsonl\.gz, got "):
        write_jsonl(make_corpus("small", parts, []), tmp_path / "small.json")


def test_blank_lines_and_other_fields_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(LINES)
    corpus = read_jsonl(tmp_path / "x.jsonl", "x")
    assert [corpus.train.ids, corpus.val.ids, corpus.test.ids] == [["1"], ["2"], ["3"]]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"id": "4",', "not valid JSON: "),
        ("[1]", "expected a JSON object, got list"),
        ('{"id": 4, "text": "", "labels": [], "split": "val"}', "'id' must be a string, got 4"),
        ('{"id": "4", "labels": [], "split": "val"}', "'text' must be a string, got None"),
        (
            '{"id": "4", "text": "", "labels": "x", "split": "val"}',
            "'labels' must be a list of strings, got 'x'",
        ),
        (
            '{"id": "4", "text": "", "labels": [1], "split": "val"}',
            r"'labels' must be a list of strings, got \[1\]",
        ),
        (
            '{"id": "4", "text": "", "labels": [], "split": "dev"}',
            "'split' must be one of train, val, test, got 'dev'",
        ),
        ("[" * 100_000, "not valid JSON: "),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    (tmp_path / "x.jsonl").write_text(LINES + line + "\n")
    with pytest.raises(CorpusError, match=rf"x\.jsonl, line 5: {problem}"):
        read_jsonl(tmp_path / "x.jsonl", "x")


def test_a_cut_file_is_named(tmp_path: Path) -> None:
    whole = gzip.compress("".join(GOOD % (i, "train") for i in range(3000)).encode())
    (tmp_path / "x.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorpusError, match=r"x\.jsonl\.gz, line \d+: expected intact data, got: "):
        read_jsonl(tmp_path / "x.jsonl.gz", "x")
