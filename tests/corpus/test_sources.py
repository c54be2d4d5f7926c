"""What can be named as a corpus: folders of records, several files, patterns, lines, standard input."""

import gzip
from pathlib import Path

import pytest

from boltzhash.corpus import CorpusError, Document, read_corpus
from corpus_files import feed, message, refusal, write
from small_corpus import as_jsonl, write_parquet

ONE = as_jsonl([{"text": "one"}, {"id": "b", "text": "two"}])
THREE = "id,text\nc,three\n"


# Folders of records


def test_the_records_of_a_folder_are_those_of_its_files(tmp_path: Path) -> None:
    """In the order of their paths; documents without an id are numbered over all of them."""
    write(tmp_path / "1.jsonl", ONE)
    write(tmp_path / "sub" / "2.csv.gz", gzip.compress(THREE.encode()))
    write_parquet(tmp_path / "sub" / "3.parquet", {"text": ["four"]})
    write(tmp_path / ".hidden", "not this")
    write(tmp_path / "_SUCCESS", "")
    write(tmp_path / "logo.png", b"\x89PNG\0\0")
    assert list(read_corpus(tmp_path)) == [
        Document(0, "one"),
        Document("b", "two"),
        Document("c", "three"),
        Document(3, "four"),
    ]


def test_a_folder_of_records_and_texts_is_asked_about(tmp_path: Path) -> None:
    write(tmp_path / "corpus.jsonl", ONE)
    write(tmp_path / "README.md", "about it")
    with pytest.raises(CorpusError) as raised:
        read_corpus(tmp_path)  # at once
    pattern = tmp_path / "*.jsonl"
    assert str(raised.value) == (
        f"{tmp_path}: expected files of records or texts, got both: 1 files of records, such as "
        "'corpus.jsonl', and others, such as 'README.md'. Name the files that are meant, such as "
        f"'{pattern}', or make every file a document with format='files' (--format files on the "
        "command line)"
    )
    assert [document.text for document in read_corpus(pattern)] == ["one", "two"]
    assert list(read_corpus(tmp_path, format="files")) == [
        Document("README.md", "about it"),
        Document("corpus.jsonl", ONE),
    ]


def test_a_link_to_records_that_are_gone_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "1.jsonl", ONE)
    (tmp_path / "2.jsonl").symlink_to("gone.jsonl")
    for source in (tmp_path, tmp_path / "*.jsonl"):
        assert [document.text for document in read_corpus(source)] == ["one", "two"]
    assert caplog.messages == [f"{tmp_path / '2.jsonl'} is left out: a link that leads nowhere"] * 2


# Several files, and patterns


def test_several_sources_are_one_corpus(tmp_path: Path) -> None:
    one, three = write(tmp_path / "1.jsonl", ONE), write(tmp_path / "3.csv", THREE)
    texts = write(tmp_path / "notes" / "a.txt", "a note").parent
    assert list(read_corpus([three, texts, str(one)])) == [
        Document("c", "three"),
        Document("a.txt", "a note"),
        Document(2, "one"),
        Document("b", "two"),
    ]


def test_a_pattern_is_filled_in_unless_a_file_has_that_name(tmp_path: Path) -> None:
    for number in (2, 10, 1):
        write(tmp_path / "deep" / f"{number}.jsonl", as_jsonl([{"text": f"{number}"}]))
    for pattern in ("deep/*.jsonl", "**/*.jsonl", "deep/[12]*.jsonl"):
        assert [d.text for d in read_corpus(tmp_path / pattern)] == ["1", "10", "2"]
    assert refusal(tmp_path / "*.csv") == (
        f"{tmp_path / '*.csv'}: expected a pattern of files, got one that matches none"
    )
    exact = write(tmp_path / "[1].jsonl", as_jsonl([{"text": "exact"}]))
    assert [document.text for document in read_corpus(exact)] == ["exact"]


def test_standard_input_can_be_named_once(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="standard input: expected - once, got it twice"):
        read_corpus(["-", "-"])


@pytest.mark.parametrize("source", [7, None, b"corpus.jsonl"])
def test_what_is_no_path_is_told_what_to_pass(source: object) -> None:
    with pytest.raises(
        TypeError, match=r"source must be a path, a list of paths or a data frame, got a .*: pass"
    ):
        read_corpus(source)  # type: ignore[arg-type]


# A document a line


def test_lines_of_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "first one\r\n\n  \n second\tone \nthird")
    expected = [Document(0, "first one"), Document(1, " second\tone "), Document(2, "third")]
    assert list(read_corpus(path, format="lines")) == expected
    packed = write(tmp_path / "a.txt.gz", gzip.compress(path.read_bytes()))
    assert list(read_corpus(packed, format="lines")) == expected
    assert "--lines" in message(path)


def test_lines_of_all_texts_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "one\ntwo\n")
    write(tmp_path / "b.csv", "three\n")
    expected = [Document(0, "one"), Document(1, "two"), Document(2, "three")]
    assert list(read_corpus(tmp_path, format="lines")) == expected


# Formats


def test_a_format_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "export", THREE)
    assert list(read_corpus(path, format="csv")) == [Document("c", "three")]
    with pytest.raises(CorpusError) as raised:
        read_corpus(path, format="xml")
    assert str(raised.value) == (
        "format: expected one of jsonl, ndjson, csv, tsv, parquet, lines, files, got 'xml'"
    )


def test_text_files_that_are_named_can_be_documents(tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "# Title\n")
    assert list(read_corpus([path], format="files")) == [Document(str(path), "# Title\n")]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("format", "content", "expected"),
    [
        (None, ONE, [Document(0, "one"), Document("b", "two")]),
        ("csv", THREE, [Document("c", "three")]),
        ("tsv", THREE.replace(",", "\t"), [Document("c", "three")]),
        ("lines", "é\nx\n", [Document(0, "é"), Document(1, "x")]),
    ],
)
def test_standard_input_of_every_kind(
    monkeypatch: pytest.MonkeyPatch,
    pack: object,
    format: str | None,
    content: str,
    expected: list[Document],
) -> None:
    assert callable(pack)
    feed(monkeypatch, pack(content.encode()))
    assert list(read_corpus("-", format=format)) == expected


def test_csv_on_standard_input_is_told_how_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, THREE.encode())
    with pytest.raises(
        CorpusError, match=r"line 1: not valid JSON: .*; if it is CSV, .*--format csv"
    ):
        list(read_corpus("-"))


def test_gzip_on_standard_input_that_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, gzip.compress(ONE.encode())[:-8])
    with pytest.raises(CorpusError, match="standard input, line 3: expected intact gzip data"):
        list(read_corpus("-"))


@pytest.mark.parametrize("format", ["parquet", "files"])
def test_what_standard_input_cannot_be(format: str) -> None:
    with pytest.raises(CorpusError, match="standard input: expected "):
        read_corpus("-", format=format)
