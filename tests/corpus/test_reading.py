"""Reading corpora: every format, every error message, and that nothing is read ahead of need."""

import csv
import gzip
import io
import json
import os
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from boltzhash.corpus import CorpusError, Document, read_corpus

THREE = [Document("a", "first"), Document(7, "zweites 二"), Document("c", "")]
ENCODING_HINT = (
    "; if it has another encoding, name it with encoding= (--encoding on the command line)"
)


def jsonl(documents: list[Document]) -> str:
    return "".join(json.dumps(document._asdict()) + "\n" for document in documents)


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def message(path: Path, **options: Any) -> str:
    """The error of reading a whole corpus, without the folder it is in."""
    with pytest.raises(CorpusError) as raised:
        list(read_corpus(path, **options))
    return str(raised.value).replace(f"{path.parent}{os.sep}", "")


# Arguments


@pytest.mark.parametrize("source", ["gone.jsonl", "gone", "gone.xyz"])
def test_a_missing_path_is_refused_before_reading(source: str) -> None:
    with pytest.raises(CorpusError) as raised:
        read_corpus(source)
    assert str(raised.value) == f"{source}: expected a file or a folder, got no such path"


def test_an_empty_path_is_not_the_current_folder() -> None:
    with pytest.raises(CorpusError) as raised:
        read_corpus("")
    assert str(raised.value) == "'': expected a file or a folder, got no such path"


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("a.txt", ".txt"), ("a.json", ".json"), ("a", ""), ("a.parquet.gz", ".gz"), ("a.gz", ".gz")],
)
def test_an_unknown_suffix_is_refused_before_reading(
    tmp_path: Path, name: str, suffix: str
) -> None:
    path = write(tmp_path / name, "")
    with pytest.raises(CorpusError) as raised:
        read_corpus(path)
    assert str(raised.value) == (
        f"{path}: expected .jsonl, .ndjson, .csv, .tsv (also with .gz), .parquet or a folder of "
        f"text files, got a file with the suffix {suffix!r}"
    )


@pytest.mark.parametrize("encoding", ["latin-99", "base64"])
def test_an_unknown_encoding_is_refused_before_reading(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(CorpusError) as raised:
        read_corpus(write(tmp_path / "a.jsonl", ""), encoding=encoding)
    assert str(raised.value) == f"encoding: expected one that Python knows, got {encoding!r}"


# JSONL


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "A.JSONL"])
def test_jsonl(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, jsonl(THREE))
    assert list(read_corpus(path)) == THREE
    assert list(read_corpus(str(path))) == THREE


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.ndjson.GZ"])
def test_jsonl_gz(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, gzip.compress(jsonl(THREE).encode()))
    assert list(read_corpus(path)) == THREE


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf-8-sig"])
def test_jsonl_with_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "a.jsonl", b"\xef\xbb\xbf" + jsonl(THREE).encode())
    assert list(read_corpus(path, encoding=encoding)) == THREE


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-32-le", "shift_jis"])
def test_jsonl_in_another_encoding(tmp_path: Path, encoding: str) -> None:
    text = "日本" if encoding == "shift_jis" else "café"
    line = json.dumps({"text": text}, ensure_ascii=False)
    path = write(tmp_path / "a.jsonl", f"{line}\n{line}\n".encode(encoding))
    assert list(read_corpus(path, encoding=encoding)) == [Document(0, text), Document(1, text)]


def test_jsonl_lines_end_as_they_like_but_not_at_unicode_separators(tmp_path: Path) -> None:
    content = '{"text": "a\u2028b"}\r\n{"text": "c\x85d"}\n\n  \n{"text": "e"}'
    assert list(read_corpus(write(tmp_path / "a.jsonl", content))) == [
        Document(0, "a\u2028b"),
        Document(1, "c\x85d"),
        Document(2, "e"),
    ]


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.ndjson", "a.csv", "a.tsv", "a.jsonl.gz", "a.csv.gz"]
)
def test_an_empty_file_is_an_empty_corpus(tmp_path: Path, name: str) -> None:
    content = gzip.compress(b"") if name.endswith(".gz") else b""
    assert list(read_corpus(write(tmp_path / name, content))) == []


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"id": "x"}, "x"),
        ({"id": 0}, 0),
        ({"id": -(10**30)}, -(10**30)),
        ({"id": ""}, ""),
        ({}, 1),
        ({"id": None}, 1),
        ({"id": True}, 1),
        ({"id": 1.0}, 1),
        ({"id": ["x"]}, 1),
        ({"key": "x"}, 1),
    ],
)
def test_the_default_id_is_the_field_or_the_running_number(
    tmp_path: Path, record: dict[str, object], expected: str | int
) -> None:
    lines = [json.dumps({"text": "t"}), "", json.dumps({"text": "t"} | record)]
    documents = list(read_corpus(write(tmp_path / "a.jsonl", "\n".join(lines))))
    assert documents[1].id == expected
    assert type(documents[1].id) is type(expected)


def test_named_fields(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"key": "k", "body": "b", "id": "i", "text": "t"}')
    assert list(read_corpus(path, text_field="body", id_field="key")) == [Document("k", "b")]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("null", "null"),
        ("true", "bool True"),
        ("1.5", "float 1.5"),
        ("[1]", "list [1]"),
        ("{}", "dict {}"),
    ],
)
def test_an_id_must_be_a_string_or_an_integer(tmp_path: Path, value: str, shown: str) -> None:
    path = write(tmp_path / "a.jsonl", f'\n{{"text": "t", "key": {value}}}')
    assert message(path, id_field="key") == (
        f"a.jsonl, line 2: field 'key' must be a string or an integer, got {shown}"
    )


def test_a_missing_id(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "t", "id": 1}')
    assert message(path, id_field="key") == (
        "a.jsonl, line 1: expected a field 'key', got the fields: 'text', 'id'"
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": "t"', "not valid JSON: Expecting ',' delimiter (column 13)"),
        ('{"text":', "not valid JSON: Expecting value (column 9)"),
        ('{"text": "t"}}', "not valid JSON: Extra data (column 14)"),
        ('{"text": "t\tt"}', "not valid JSON: Invalid control character at (column 12)"),
        ('["t"]', "expected a JSON object, got list ['t']"),
        ('"t"', "expected a JSON object, got str 't'"),
        ("null", "expected a JSON object, got null"),
        ("{}", "expected a field 'text', got the fields: none"),
        ('{"body": 1, "Text": 2}', "expected a field 'text', got the fields: 'body', 'Text'"),
        ('{"text": null}', "field 'text' must be a string, got null"),
        ('{"text": 3}', "field 'text' must be a string, got int 3"),
        ('{"text": ["t"]}', "field 'text' must be a string, got list ['t']"),
        (
            r'{"text": "a\ud800"}',
            r"field 'text' must be Unicode, got the unpaired surrogate '\ud800'",
        ),
        (
            r'{"text": "", "id": "\udfff"}',
            r"field 'id' must be Unicode, got the unpaired surrogate '\udfff'",
        ),
    ],
)
def test_a_broken_jsonl_line(tmp_path: Path, line: str, problem: str) -> None:
    path = write(tmp_path / "a.jsonl", f'{{"text": "t"}}\r\n\n{line}\n{{"text": "t"}}\n')
    assert message(path) == f"a.jsonl, line 3: {problem}"


@pytest.mark.parametrize("line", ["[" * 100_000, '{"text": "t", "n": ' + "1" * 5000 + "}"])
def test_json_beyond_pythons_limits(tmp_path: Path, line: str) -> None:
    assert message(write(tmp_path / "a.jsonl", line)).startswith("a.jsonl, line 1: not valid JSON:")


def test_a_long_value_is_cut_in_the_message(tmp_path: Path) -> None:
    text = message(write(tmp_path / "a.jsonl", json.dumps(["x" * 10_000])))
    assert text.startswith("a.jsonl, line 1: expected a JSON object, got list ['xxx")
    assert len(text) < 120


def test_documents_before_a_broken_line_are_read(tmp_path: Path) -> None:
    documents = read_corpus(write(tmp_path / "a.jsonl", '{"text": "t"}\nbroken\n'))
    assert next(documents) == Document(0, "t")
    with pytest.raises(CorpusError, match="line 2"):
        next(documents)


# Encoding errors


@pytest.mark.parametrize("lines_before", [0, 1, 5000])
def test_a_wrong_encoding_names_line_and_byte(tmp_path: Path, lines_before: int) -> None:
    content = b'{"text": "x"}\n' * lines_before + b'{"text": "caf\xe9"}\n{"text": "x"}\n'
    assert message(write(tmp_path / "a.jsonl", content)) == (
        f"a.jsonl, line {lines_before + 1}: expected utf-8 text, "
        f"got byte 0xe9 (invalid continuation byte){ENCODING_HINT}"
    )


def test_a_wrong_encoding_inside_gzip(tmp_path: Path) -> None:
    content = gzip.compress(b"text\n\xc3\xa9\n\xff\n")
    assert message(write(tmp_path / "a.csv.gz", content)) == (
        f"a.csv.gz, line 3: expected utf-8 text, got byte 0xff (invalid start byte){ENCODING_HINT}"
    )


@pytest.mark.parametrize(
    ("encoding", "content", "problem"),
    [
        ("utf-8", b'{"text": "x"}\r\n"\xc3', "byte 0xc3 (unexpected end of data)"),
        ("ascii", '{"text": "x"}\r"é'.encode(), "byte 0xc3 (ordinal not in range(128))"),
        ("cp1252", b'{"text": "x"}\n"\x81', "byte 0x81 (character maps to <undefined>)"),
        ("utf-16", '{"text": "x"}\n"'.encode("utf-16")[:-1], "byte 0x22 (truncated data)"),
    ],
)
def test_the_line_of_a_wrong_byte_in_any_encoding(
    tmp_path: Path, encoding: str, content: bytes, problem: str
) -> None:
    assert message(write(tmp_path / "a.jsonl", content), encoding=encoding) == (
        f"a.jsonl, line 2: expected {encoding} text, got {problem}{ENCODING_HINT}"
    )


def test_utf16_without_its_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "x"}\n'.encode("utf-16-be"))
    assert message(path, encoding="utf-16").startswith("a.jsonl, line 1: ")


# Gzip


def test_truncated_gzip(tmp_path: Path) -> None:
    content = gzip.compress(jsonl(THREE).encode())[:-8]  # all the data, but not the checksum
    assert message(write(tmp_path / "a.jsonl.gz", content)) == (
        "a.jsonl.gz, line 4: expected intact gzip data, "
        "got: Compressed file ended before the end-of-stream marker was reached"
    )


def test_a_file_that_is_not_gzip(tmp_path: Path) -> None:
    assert message(write(tmp_path / "a.csv.gz", "text\nx\n")) == (
        "a.csv.gz, line 1: expected intact gzip data, got: Not a gzipped file (b'te')"
    )


@pytest.mark.parametrize(
    ("place", "line", "problem"),
    [(10, 1, "Error -3 while decompressing data: invalid block type"), (-6, 4, "CRC check failed")],
)
def test_damaged_gzip(tmp_path: Path, place: int, line: int, problem: str) -> None:
    content = bytearray(gzip.compress(jsonl(THREE).encode()))
    content[place] |= 0xFF
    assert message(write(tmp_path / "a.jsonl.gz", bytes(content))).startswith(
        f"a.jsonl.gz, line {line}: expected intact gzip data, got: {problem}"
    )


# CSV


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


def test_csv_in_utf16(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text\nä\n".encode("utf-16"))
    assert list(read_corpus(path, encoding="utf-16")) == [Document(0, "ä")]


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
        ("id,body\n", "line 1: expected a field 'text', got the fields: 'id', 'body'"),
        ("\n\nid, text\n", "line 3: expected a field 'text', got the fields: 'id', ' text'"),
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
        "a.tsv, line 1: expected a field 'key', got the fields: 'text', 'id'"
    )


# Parquet


def parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), path, **options)
    return path


def test_parquet(tmp_path: Path) -> None:
    columns = {"id": ["a", None, "c"], "text": ["x", "é", ""], "more": [[1], [2], None]}
    path = parquet(tmp_path / "a.parquet", columns)
    assert list(read_corpus(path)) == [Document("a", "x"), Document(1, "é"), Document("c", "")]


def test_parquet_with_named_columns_over_many_batches_and_row_groups(tmp_path: Path) -> None:
    numbers = list(range(1000))
    columns = {"text": numbers, "key": numbers, "body": [str(n) for n in numbers]}
    path = parquet(tmp_path / "a.parquet", columns, row_group_size=300)
    documents = list(read_corpus(path, text_field="body", id_field="key"))
    assert documents == [Document(n, str(n)) for n in numbers]


def test_parquet_without_ids_and_without_rows(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", {"text": ["x", "y"], "id": [1.0, 2.0]})
    assert list(read_corpus(path)) == [Document(0, "x"), Document(1, "y")]
    assert list(read_corpus(parquet(tmp_path / "b.parquet", {"text": []}))) == []


def test_parquet_reads_only_the_columns_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parquet(tmp_path / "a.parquet", {"text": ["x"], "id": [1], "vector": [[0.5] * 9]})
    file_class = pytest.importorskip("pyarrow.parquet").ParquetFile
    asked: list[list[str]] = []
    original = file_class.iter_batches

    def spy(self: Any, *arguments: Any, columns: list[str], **options: Any) -> Any:
        asked.append(columns)
        return original(self, *arguments, columns=columns, **options)

    monkeypatch.setattr(file_class, "iter_batches", spy)
    assert list(read_corpus(path)) == [Document(1, "x")]
    assert list(read_corpus(path, id_field="text")) == [Document("x", "x")]
    assert asked == [["id", "text"], ["text"]]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"body": ["x"]}, ": expected a field 'text', got the fields: 'body'"),
        ({"text": ["x", None]}, ", row 2: field 'text' must be a string, got null"),
        ({"text": [3]}, ", row 1: field 'text' must be a string, got int 3"),
        ({"text": [b"x"]}, ", row 1: field 'text' must be a string, got bytes b'x'"),
    ],
)
def test_a_broken_parquet_record(tmp_path: Path, columns: dict[str, Any], problem: str) -> None:
    assert message(parquet(tmp_path / "a.parquet", columns)) == f"a.parquet{problem}"


def test_parquet_ids_that_are_not_ids(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", {"text": ["x", "y"], "id": [1.5, 2.5]})
    assert message(path, id_field="id") == (
        "a.parquet, row 1: field 'id' must be a string or an integer, got float 1.5"
    )
    assert message(path, id_field="key") == (
        "a.parquet: expected a field 'key', got the fields: 'text', 'id'"
    )


def test_corrupt_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    expected = "a.parquet, row 1: expected intact Parquet data, got: "
    assert message(write(tmp_path / "a.parquet", b"")).startswith(expected)
    assert message(write(tmp_path / "a.parquet", b"PAR1 and no more PAR1")).startswith(expected)


def test_parquet_with_damaged_data(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", {"text": ["abcdefgh" * 40]}, compression="zstd")
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36  # after the magic number, before the footer
    write(path, bytes(content))
    assert message(path).startswith("a.parquet, row 1: expected intact Parquet data, got: ")


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet", b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet", raising=False)
    with pytest.raises(ImportError) as raised:
        read_corpus(path)
    assert str(raised.value) == (
        "Parquet needs pyarrow, which is not installed: pip install 'boltzhash[parquet]'"
    )


# Folders


def test_a_folder_is_read_in_the_order_of_relative_paths(tmp_path: Path) -> None:
    names = ["a.txt", "b/c.md", "b/a/z", "a/b", "a-b", "ab", "Z.txt", "é.txt", "b.txt", "a/b.c"]
    for name in names:
        write(tmp_path / name, f"text of {name}\r\n")
    expected = [Document(name, f"text of {name}\r\n") for name in sorted(names)]
    assert list(read_corpus(tmp_path)) == expected
    assert list(read_corpus(f"{tmp_path}{os.sep}")) == expected


def test_hidden_and_binary_files_are_not_documents(tmp_path: Path) -> None:
    write(tmp_path / ".hidden", "x")
    write(tmp_path / ".git" / "config", "x")
    write(tmp_path / "sub" / ".DS_Store", "x")
    write(tmp_path / "image.png", b"\x89PNG\0\0")
    write(tmp_path / "last.bin", b"x" * 8191 + b"\0\xff")
    write(tmp_path / "text", b"x" * 8192 + b"\0")
    write(tmp_path / "empty", b"")
    expected = [Document("empty", ""), Document("text", "x" * 8192 + "\0")]
    assert list(read_corpus(tmp_path)) == expected


def test_a_hidden_folder_can_itself_be_the_corpus(tmp_path: Path) -> None:
    write(tmp_path / ".notes" / "a", "x")
    assert list(read_corpus(tmp_path / ".notes")) == [Document("a", "x")]


def test_folder_encodings(tmp_path: Path) -> None:
    write(tmp_path / "bom" / "a", b"\xef\xbb\xbfx")
    write(tmp_path / "wide" / "a", "é".encode("utf-16"))
    assert list(read_corpus(tmp_path / "bom")) == [Document("a", "x")]
    assert list(read_corpus(tmp_path / "wide", encoding="utf-16")) == [Document("a", "é")]


def test_a_wrong_encoding_in_a_folder(tmp_path: Path) -> None:
    path = write(tmp_path / "a" / "b.txt", b"one\ntwo\r\nthr\xe9e\n")
    with pytest.raises(CorpusError) as raised:
        list(read_corpus(tmp_path))
    assert str(raised.value) == (
        f"{path}, line 3: expected utf-8 text, "
        f"got byte 0xe9 (invalid continuation byte){ENCODING_HINT}"
    )


@pytest.mark.parametrize("content", [None, b"\0"])
def test_a_folder_without_text_files(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        write(tmp_path / "sub" / "binary", content)
    with pytest.raises(CorpusError) as raised:
        list(read_corpus(tmp_path))
    assert str(raised.value) == (
        f"{tmp_path}: expected a folder with text files, got one without any "
        "(hidden and binary files do not count)"
    )


def link(path: Path, target: Path | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.symlink_to(target)
    except OSError:
        pytest.skip("symbolic links cannot be made here")


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "far", "f")
    root = tmp_path / "root"
    write(root / "a" / "x", "x")
    link(root / "a" / "self", ".")
    link(root / "a" / "up", root)
    link(root / "b" / "to_a", root / "a")
    link(root / "file", root / "a" / "x")
    link(root / "out", tmp_path / "elsewhere")
    assert [document.id for document in read_corpus(root)] == [
        "a/x",
        "b/to_a/x",
        "file",
        "out/far",
    ]


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    write(tmp_path / "a", "x")
    for target in ("gone", "b"):  # the second is a link to itself
        link(tmp_path / "b", target)
        assert message(tmp_path).endswith("b: expected a file, got a link that leads nowhere")
        (tmp_path / "b").unlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path / "a", "x")
    os.mkfifo(tmp_path / "pipe")
    assert list(read_corpus(tmp_path)) == [Document("a", "x")]


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are Unicode here")
def test_a_file_name_that_is_not_unicode(tmp_path: Path) -> None:
    write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")), "x")
    with pytest.raises(CorpusError) as raised:
        list(read_corpus(tmp_path))
    assert str(raised.value) == (
        f"{tmp_path}: file name 'caf\\udce9' must be Unicode, got the unpaired surrogate '\\udce9'"
    )


# Standard input


def feed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> io.TextIOWrapper:
    stdin = io.TextIOWrapper(io.BytesIO(content), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", stdin)
    return stdin


@pytest.mark.parametrize("source", ["-", Path("-")])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, source: str | Path) -> None:
    content = b'\xef\xbb\xbf\n{"id": "a", "text": "\xc3\xa9"}\n{"text": "x"}'
    stdin = feed(monkeypatch, content)
    assert list(read_corpus(source)) == [Document("a", "é"), Document(1, "x")]
    assert not stdin.buffer.closed


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"text": "x"}\n{', "line 2: not valid JSON: "),
        (b'{"text": "x"}\n\xff', "line 2: expected utf-8 text, got byte 0xff"),
    ],
)
def test_errors_on_standard_input(
    monkeypatch: pytest.MonkeyPatch, content: bytes, problem: str
) -> None:
    stdin = feed(monkeypatch, content)
    with pytest.raises(CorpusError) as raised:
        list(read_corpus("-"))
    assert str(raised.value).startswith(f"standard input, {problem}")
    assert not stdin.buffer.closed


def test_standard_input_is_read_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with open(reading) as stdin, open(writing, "w") as producer:
        monkeypatch.setattr(sys, "stdin", stdin)
        documents = read_corpus("-")
        for number in range(3):
            producer.write(json.dumps({"text": f"message {number}"}) + "\n")
            producer.flush()
            assert next(documents) == Document(number, f"message {number}")
        producer.close()
        assert list(documents) == []


# Streaming


def test_a_file_is_opened_when_the_first_document_is_asked_for(tmp_path: Path) -> None:
    sources = [
        write(tmp_path / "a.jsonl", '{"text": "old"}\n'),
        write(tmp_path / "a.csv", "text\nold\n"),
        write(tmp_path / "folder" / "a", "old").parent,
    ]
    pending = [read_corpus(source) for source in sources]
    write(tmp_path / "a.jsonl", '{"text": "new"}\n')
    write(tmp_path / "a.csv", "text\nnew\n")
    write(tmp_path / "folder" / "a", "new")
    assert [next(documents).text for documents in pending] == ["new"] * 3


TEXT = "x" * 1000
COUNT = 8000  # 8 MB of text, of which a tenth would be too much to hold


def big_jsonl(folder: Path) -> Path:
    return write(folder / "a.jsonl", f'{{"text": "{TEXT}"}}\n' * COUNT)


def big_csv_gz(folder: Path) -> Path:
    content = "text\n" + f"{TEXT}\n" * COUNT
    return write(folder / "a.csv.gz", gzip.compress(content.encode(), compresslevel=1))


def big_folder(folder: Path) -> Path:
    for number in range(16):
        write(folder / str(number), TEXT * (COUNT // 16))
    return folder


@pytest.mark.parametrize("make", [big_jsonl, big_csv_gz, big_folder])
def test_memory_does_not_grow_with_the_corpus(tmp_path: Path, make: Any) -> None:
    documents = read_corpus(make(tmp_path))
    tracemalloc.start()
    try:
        size = sum(len(document.text) for document in documents)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size == COUNT * len(TEXT)
    assert peak < 2_000_000


def test_parquet_memory_does_not_grow_with_a_row_group(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    texts = [f"{number:08}" * 125 for number in range(COUNT)]
    options = {"row_group_size": COUNT, "compression": "none", "use_dictionary": False}
    path = parquet(tmp_path / "a.parquet", {"text": texts}, **options)
    before = pyarrow.total_allocated_bytes()
    most = 0
    for number, document in enumerate(read_corpus(path)):
        assert document == Document(number, texts[number])
        most = max(most, pyarrow.total_allocated_bytes() - before)
    assert 0 < most < 4_000_000


# Metadata


def test_other_fields_become_metadata_where_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(
        '{"id": "a", "text": "x", "year": 2020, "tags": ["t"], "metadata": {"lang": "de", "year": 1}}\n'
        '{"key": 7, "text": "y", "metadata": "no object"}\n'
    )
    assert [document.metadata for document in read_corpus(path)] == [None, None]
    assert [document.metadata for document in read_corpus(path, metadata=True)] == [
        {"year": 1, "tags": ["t"], "lang": "de"},
        {"key": 7, "metadata": "no object"},
    ]
    chosen = read_corpus(path, metadata=["year", "tags"])
    assert [document.metadata for document in chosen] == [{"year": 2020, "tags": ["t"]}, {}]


def test_columns_become_metadata_where_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "corpus.csv"
    path.write_text("id,text,year,lang\na,x,2020,de\n")
    (all_of_them,) = read_corpus(path, metadata=True)
    assert all_of_them.metadata == {"year": "2020", "lang": "de"}
    (chosen,) = read_corpus(path, metadata=["lang"])
    assert chosen.metadata == {"lang": "de"}
    with pytest.raises(CorpusError, match="line 1: expected a field 'price', got the fields"):
        list(read_corpus(path, metadata=["price"]))


def test_parquet_columns_become_metadata_where_asked_for(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "corpus.parquet"
    columns = {"id": ["a"], "text": ["x"], "year": [2020], "lang": [None]}
    parquet.write_table(pyarrow.table(columns), path)
    (all_of_them,) = read_corpus(path, metadata=True)
    assert all_of_them.metadata == {"year": 2020, "lang": None}
    (chosen,) = read_corpus(path, metadata=["year"])
    assert chosen.metadata == {"year": 2020}
    (none,) = read_corpus(path)
    assert none.metadata is None
