"""Corpora as CSV and TSV: quotes, line ends, headers, and rows that are none."""

import csv
import gzip
import io
from pathlib import Path

import pytest

from boltzhash.corpus import CorpusError, Document, read_corpus
from corpus_files import NO_ID, NO_TEXT, message, write


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.tsv.gz", "a.CSV"])
def test_csv(tmp_path: Path, name: str) -> None:
    rows = [["text", "n", "id"], ['a, "b"\tc\r\nd', "1", "x"], ["", "2", "7"], ["é", "", ""]]
    stream = io.StringIO()
    csv.writer(stream, "excel-tab" if ".tsv" in name else "excel").writerows(rows)
    content = stream.getvalue().encode()
    path = write(tmp_path / name, gzip.compress(content) if name.endswith(".gz") else content)
    expected = [Document("x", 'a, "b"\tc\r\nd'), Document("7", ""), Document("", "é")]
    assert list(read_corpus(path)) == expected


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_csv_line_ends(tmp_path: Path, line_end: str) -> None:
    path = write(tmp_path / "a.csv", line_end.join(["text", "a", "", "b"]))
    assert list(read_corpus(path)) == [Document(0, "a"), Document(1, "b")]


def test_csv_with_a_byte_order_mark_and_named_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b'\xef\xbb\xbf"body",key\nb,k\n')
    assert list(read_corpus(path, text_field="body", id_field="key")) == [Document("k", "b")]


def test_a_csv_field_longer_than_the_csv_module_allows_by_default(tmp_path: Path) -> None:
    before = csv.field_size_limit(131_072)
    try:
        text = "x" * 300_000
        path = write(tmp_path / "a.csv", f"text\n{text}\n")
        assert list(read_corpus(path)) == [Document(0, text)]
        csv.field_size_limit(2**31 - 1)  # somebody else's higher limit is not lowered
        assert list(read_corpus(path)) == [Document(0, text)]
        assert csv.field_size_limit() == 2**31 - 1
    finally:
        csv.field_size_limit(before)


def test_a_header_alone_is_an_empty_corpus(tmp_path: Path) -> None:
    assert list(read_corpus(write(tmp_path / "a.csv", "id,text\n"))) == []


HINT = "is a quote not closed or not doubled?)"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("id,body\n", f"line 1: expected a field 'text', got the fields: 'id', 'body'{NO_TEXT}"),
        (
            "\n\nid, text\n",
            f"line 3: expected a field 'text', got the fields: 'id', ' text'{NO_TEXT}",
        ),
        ("text,id,text\n", "line 1: expected one field 'text', got 2 of that name"),
        ('id,text\n1,"a\nb"\n2\n', "line 4: expected 2 fields (header), got 1"),
        ("id,text\n1,a,b\n", "line 2: expected 2 fields (header), got 3"),
        (
            'id,text\n1,"a\nb"\n2,"open\n3,c\n',
            f"line 4: not a valid row: unexpected end of data (read up to line 5; {HINT}",
        ),
        (
            'id,text\n1,"a "b" c"\n',
            f"line 2: not a valid row: ',' expected after '\"' (read up to line 2; {HINT}",
        ),
        (
            "id,text\n1,a\n2,b\0c\n",
            "line 3: expected text, got a NUL byte; is the file binary, "
            "or in an encoding such as utf-16?",
        ),
    ],
)
def test_broken_csv(tmp_path: Path, content: str, problem: str) -> None:
    assert message(write(tmp_path / "a.csv", content)) == f"a.csv, {problem}"


def test_a_missing_id_column(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "text\tid\nx\t1\n")
    assert message(path, id_field="key") == (
        f"a.tsv, line 1: expected a field 'key', got the fields: 'text', 'id'{NO_ID}"
    )


def test_columns_become_metadata_where_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "corpus.csv"
    path.write_text("id,text,year,lang\na,x,2020,de\n")
    (all_of_them,) = read_corpus(path, metadata=True)
    assert all_of_them.metadata == {"year": "2020", "lang": "de"}
    (chosen,) = read_corpus(path, metadata=["lang"])
    assert chosen.metadata == {"lang": "de"}
    with pytest.raises(CorpusError, match="line 1: expected a field 'price', got the fields"):
        list(read_corpus(path, metadata=["price"]))
