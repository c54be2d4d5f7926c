"""Records that are left out: which can be, what is told of them, and that the others are all there."""

from pathlib import Path
from typing import Any

import pytest

from boltzhash.corpus import BadRecord, CorpusError, Document, read_corpus
from corpus_files import ENCODING_HINT, NO_TEXT, write
from small_corpus import write_parquet


def read_all(source: Path, **options: Any) -> tuple[list[Document], list[BadRecord]]:
    """The documents, and what was left out, without the folder of the corpus."""
    bad: list[BadRecord] = []
    documents = list(read_corpus(source, on_bad=bad.append, **options))
    return documents, [b._replace(where=b.where.replace(f"{source.parent}/", "")) for b in bad]


def test_bad_lines_of_jsonl(tmp_path: Path) -> None:
    lines = [
        b'{"text": "first"}',
        b'{"text": ',
        b'{"body": "x"}',
        b'{"text": "caf\xe9"}',
        b'{"text": "t", "id": 1.5}',
        b'{"text": null}',
        b'{"text": "last"}',
    ]
    documents, bad = read_all(write(tmp_path / "a.jsonl", b"\n".join(lines)))
    assert documents == [Document(0, "first"), Document(6, "last")]  # the row numbers of the file
    assert [b.where for b in bad] == [f"a.jsonl, line {number}" for number in range(2, 7)]
    assert [b.content for b in bad] == [
        '{"text":',
        {"body": "x"},
        '{"text": "caf\\xe9"}',
        {"text": "t", "id": 1.5},
        {"text": None},
    ]
    problems = [b.problem for b in bad]
    assert problems[:3] == [
        "not valid JSON: Expecting value (column 9)",
        f"expected a field 'text', got the fields: 'body'{NO_TEXT}",
        f"expected utf-8 text, got byte 0xe9 (invalid continuation byte){ENCODING_HINT}",
    ]
    assert [b.reason for b in bad] == [
        "not valid JSON",
        "expected a field 'text'",
        "expected utf-8 text",
        "field 'id' must be a string or an integer",
        "field 'text' must be a string",
    ]


def test_bad_rows_of_csv(tmp_path: Path) -> None:
    content = b'id,text\n1,a\n2\n3,b\0c\n4,"caf\xe9"\n5,"x"y\n6,z\n'
    documents, bad = read_all(write(tmp_path / "a.csv", content))
    assert documents == [Document("1", "a"), Document("6", "z")]
    assert [(b.where, b.reason) for b in bad] == [
        ("a.csv, line 3", "expected 2 fields (header)"),
        ("a.csv, line 4", "expected text"),
        ("a.csv, line 5", "expected utf-8 text"),
        ("a.csv, line 6", "not a valid row"),
    ]
    assert [b.content for b in bad][:3] == ["2", "3,b\0c", "4,caf\\xe9"]


def test_bad_rows_of_parquet(tmp_path: Path) -> None:
    columns = {"id": ["a", None, "c"], "text": ["x", "y", None], "raw": [b"1", b"2", b"3"]}
    path = write_parquet(tmp_path / "a.parquet", columns)
    documents, bad = read_all(path)
    assert documents == [Document("a", "x")]
    assert [(b.where, b.content) for b in bad] == [
        ("a.parquet, row 2", {"id": None, "text": "y"}),
        ("a.parquet, row 3", {"id": "c", "text": None}),
    ]
    documents, bad = read_all(path, metadata=["raw"])
    assert documents == []
    assert bad[0].content == {"id": "a", "raw": "b'1'", "text": "x"}
    assert "--metadata" in bad[0].problem


def test_a_file_of_a_folder_that_is_not_text(tmp_path: Path) -> None:
    write(tmp_path / "root" / "a.txt", "x")
    write(tmp_path / "root" / "b.txt", b"one\ncaf\xe9")
    documents, bad = read_all(tmp_path / "root")
    assert documents == [Document("a.txt", "x")]
    assert [(b.where, b.content) for b in bad] == [("root/b.txt, line 2", "b.txt")]


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.jsonl.gz", b"no gzip"), ("a.csv", b"id,body\n1,x\n"), ("a.parquet", b"no Parquet")],
)
def test_a_file_that_is_broken_as_a_whole_is_not_left_out(
    tmp_path: Path, name: str, content: bytes
) -> None:
    with pytest.raises(CorpusError):
        read_all(write(tmp_path / name, content))
