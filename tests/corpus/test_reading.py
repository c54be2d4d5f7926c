"""Reading corpora: their kinds, JSONL, encodings, standard input, and nothing ahead of need."""

import gzip
import json
import os
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from boltzhash.corpus import CorpusError, Document, read_corpus
from corpus_files import AS_STRING, ENCODING_HINT, NO_ID, NO_TEXT, feed, message, write
from small_corpus import as_jsonl

THREE = [Document("a", "first"), Document(7, "zweites 二"), Document("c", "")]
LINES = as_jsonl(document._asdict() for document in THREE)


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
        f"{path}: expected .jsonl, .ndjson, .csv, .tsv (also with .gz), .parquet or a folder, got a "
        f"file with the suffix {suffix!r}; if each of its lines is a document, say so with "
        "format='lines' (--lines on the command line), else name its format with format= (--format)"
    )


@pytest.mark.parametrize("encoding", ["latin-99", "base64"])
def test_an_unknown_encoding_is_refused_before_reading(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(CorpusError) as raised:
        read_corpus(write(tmp_path / "a.jsonl", ""), encoding=encoding)
    assert str(raised.value) == f"encoding: expected one that Python knows, got {encoding!r}"


# JSONL


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "A.JSONL"])
def test_jsonl(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, LINES)
    assert list(read_corpus(path)) == THREE
    assert list(read_corpus(str(path))) == THREE


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.ndjson.GZ"])
def test_jsonl_gz(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, gzip.compress(LINES.encode()))
    assert list(read_corpus(path)) == THREE


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf-8-sig"])
def test_jsonl_with_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "a.jsonl", b"\xef\xbb\xbf" + LINES.encode())
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
        ({"_id": "beir"}, "beir"),
        ({"_id": "beir", "id": "own"}, "own"),
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


NO_VALUE = "; give each document an id, or leave the field out, then the row number is the id"
WHOLE = (
    ": a whole number kept as a float, as pandas does where a value of the column is missing; make the "
    f"column integers (in pandas, dtype 'Int64'), or take 12 as a string with {AS_STRING}"
)
NOT_AN_ID = {
    "null": f"null{NO_VALUE}",
    "NaN": f"float nan{NO_VALUE}",
    "true": f"bool True; to take its text as the id, pass {AS_STRING}",
    "1.5": f"float 1.5; to take its text as the id, pass {AS_STRING}",
    "12.0": f"float 12.0{WHOLE}",
    "[1]": f"list [1]; to take its text as the id, pass {AS_STRING}",
    "{}": f"dict {{}}; to take its text as the id, pass {AS_STRING}",
}


@pytest.mark.parametrize("field", ["id", "_id", "key"])
@pytest.mark.parametrize("value", NOT_AN_ID)
def test_an_id_must_be_a_string_or_an_integer(tmp_path: Path, value: str, field: str) -> None:
    """A row number in its place would go unnoticed, whether the field was named or not."""
    path = write(tmp_path / "a.jsonl", f'\n{{"text": "t", "{field}": {value}}}')
    options = {"id_field": "key"} if field == "key" else {}
    assert message(path, **options) == (
        f"a.jsonl, line 2: field '{field}' must be a string or an integer, got {NOT_AN_ID[value]}"
    )


@pytest.mark.parametrize(
    ("value", "id_"),
    [
        *[('"x"', "x"), ("7", "7"), ("1.5", "1.5"), ("12.0", "12"), ("true", "true")],
        *[("[1]", "[1]"), ('{"é": 1}', '{"é": 1}')],
    ],
)
def test_any_id_can_be_taken_as_a_string(tmp_path: Path, value: str, id_: str) -> None:
    path = write(tmp_path / "a.jsonl", f'{{"text": "t", "id": {value}}}\n{{"text": "u"}}')
    assert [d.id for d in read_corpus(path, id_as_string=True)] == [id_, "1"]


def test_a_missing_id(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "t", "id": 1}')
    assert message(path, id_field="key") == (
        f"a.jsonl, line 1: expected a field 'key', got the fields: 'text', 'id'{NO_ID}"
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
        ("{}", f"expected a field 'text', got the fields: none{NO_TEXT}"),
        (
            '{"body": 1, "Text": 2}',
            f"expected a field 'text', got the fields: 'body', 'Text'{NO_TEXT}",
        ),
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


# Gzip


def test_truncated_gzip(tmp_path: Path) -> None:
    content = gzip.compress(LINES.encode())[:-8]  # all the data, but not the checksum
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
    content = bytearray(gzip.compress(LINES.encode()))
    content[place] |= 0xFF
    assert message(write(tmp_path / "a.jsonl.gz", bytes(content))).startswith(
        f"a.jsonl.gz, line {line}: expected intact gzip data, got: {problem}"
    )


# Standard input


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
