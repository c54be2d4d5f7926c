"""Corpora as folders: which files are documents, in which order, and links."""

import os
import sys
from pathlib import Path

import pytest

from boltzhash.corpus import Document, read_corpus
from corpus_files import ENCODING_HINT, refusal, write


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
    assert refusal(tmp_path) == (
        f"{path}, line 3: expected utf-8 text, "
        f"got byte 0xe9 (invalid continuation byte){ENCODING_HINT}"
    )


@pytest.mark.parametrize("content", [None, b"\0"])
def test_a_folder_without_text_files(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        write(tmp_path / "sub" / "binary", content)
    assert refusal(tmp_path) == (
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
    assert [document.id for document in read_corpus(root)] == ["a/x", "b/to_a/x", "file", "out/far"]


@pytest.mark.parametrize("target", ["gone", "b"], ids=["nowhere", "itself"])
def test_a_link_that_leads_nowhere_is_left_out_with_a_warning(
    tmp_path: Path, target: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "a", "x")
    link(tmp_path / "b", target)
    assert list(read_corpus(tmp_path)) == [Document("a", "x")]
    assert caplog.messages == [f"{tmp_path / 'b'} is left out: a link that leads nowhere"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path / "a", "x")
    os.mkfifo(tmp_path / "pipe")
    assert list(read_corpus(tmp_path)) == [Document("a", "x")]


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are Unicode here")
def test_a_file_name_that_is_not_unicode(tmp_path: Path) -> None:
    write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")), "x")
    assert refusal(tmp_path) == (
        f"{tmp_path}: file name 'caf\\udce9' must be Unicode, got the unpaired surrogate '\\udce9'"
    )
