"""Archives and compressed files: intact, cut, too large, and with names that lead elsewhere."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from boltzhash.corpus import CorpusError
from boltzhash.datasets import archives
from boltzhash.datasets.archives import read_tar, text_lines

WriteTar = Callable[..., Path]

ANY = re.compile(".*", re.DOTALL)


def test_only_wanted_files_in_their_order(write_tar: WriteTar) -> None:
    folder = tarfile.TarInfo("a.sgm")
    folder.type = tarfile.DIRTYPE
    path = write_tar({"b.sgm": b"2", "README": b"no", "d/a.sgm": b"1"}, [folder])
    found = list(read_tar(path, re.compile(r".*\.sgm")))
    assert found == [("b.sgm", b"2"), ("d/a.sgm", b"1")]


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/.."])
def test_names_that_lead_elsewhere_are_refused(write_tar: WriteTar, name: str) -> None:
    path = write_tar({name: b"1"})
    with pytest.raises(
        CorpusError, match=r"x\.tar\.gz: expected plain files, got a link or an odd"
    ):
        list(read_tar(path, ANY))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(write_tar: WriteTar, kind: bytes) -> None:
    member = tarfile.TarInfo("b")
    member.type, member.linkname = kind, "a"
    path = write_tar({"a": b"1"}, [member])
    with pytest.raises(CorpusError, match="expected plain files"):
        list(read_tar(path, ANY))


def test_nothing_is_written(tmp_path: Path, write_tar: WriteTar) -> None:
    path = write_tar({"a/b": b"1"})
    list(read_tar(path, ANY))
    assert [path.name for path in tmp_path.rglob("*")] == ["x.tar.gz"]


def test_sizes_are_limited(write_tar: WriteTar, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tar({"a": bytes(1000), "b": bytes(1000)})
    monkeypatch.setattr(archives, "MAX_MEMBER", 999)
    with pytest.raises(CorpusError, match="a has 1000 bytes; expected at most 999"):
        list(read_tar(path, ANY))
    monkeypatch.setattr(archives, "MAX_MEMBER", 1000)
    monkeypatch.setattr(archives, "MAX_TOTAL", 1999)
    with pytest.raises(CorpusError, match="expected at most 1999 bytes in all, got more"):
        list(read_tar(path, re.compile("nothing")))


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.6, 0.95])
def test_a_cut_archive_is_named(write_tar: WriteTar, kept: float) -> None:
    path = write_tar({f"f{i}": bytes(range(256)) * i for i in range(40)})
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(CorpusError, match=r"x\.tar\.gz: expected an intact tar archive, got: "):
        list(read_tar(path, ANY))


OPENERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


@pytest.mark.parametrize("suffix", OPENERS)
def test_lines(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.txt{suffix}"
    path.write_bytes(OPENERS[suffix]("één\r\n\ntwee\x0b\u2028".encode()))
    assert list(text_lines(path)) == [(1, "één"), (2, ""), (3, "twee\x0b\u2028")]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_cut_lines_are_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.txt{suffix}"
    whole = OPENERS[suffix](b"".join(b"line %d\n" % i for i in range(5000)))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorpusError, match=r"x\.txt\..*, line \d+: expected intact data, got: "):
        list(text_lines(path))
    path.write_bytes(b"no such format")
    with pytest.raises(CorpusError, match=r"line 1: expected intact data, got: "):
        list(text_lines(path))


def test_other_encodings_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"fine\nM\xfcller\n")
    with pytest.raises(CorpusError, match=r"x\.txt, line 2: expected UTF-8 text, got byte 0xfc"):
        list(text_lines(tmp_path / "x.txt"))


def test_endless_lines_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_LINE", 100)
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"short\n" + bytes(1000)))
    with pytest.raises(CorpusError, match="line 2: expected lines below 100 bytes"):
        list(text_lines(tmp_path / "x.gz"))
