"""Debian's descriptions: lists in the real format, joined, selected by the rule, damaged."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from boltzhash.corpus import CorpusError
from boltzhash.datasets import debian
from boltzhash.datasets.debian import Package, paragraphs, read, read_packages, select

PACKAGES = """\
Package: 0ad
Version: 0.0.26-3
Depends: 0ad-data (>= 0.0.26), libc6
Description: Real-time strategy game
Homepage: https://play0ad.com/
Description-md5: d94
Tag: game::strategy, interface::graphical,
 uitoolkit::sdl
Section: games

Package: libfoo1
Source: foo (1.2-3)
Description: network library
Description-md5: e05
Section: contrib/net
"""
TRANSLATION = """\
Package: 0ad
Description-md5: d94
Description-en: Real-time strategy game
 0 A.D. is a game of ancient warfare:
 .
  * build
  * fight

Package: libfoo1
Description-md5: e05
Description-en: network library
 Sends naïve packets.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "x_dists_main_binary-amd64_Packages").write_text(PACKAGES)
    with lzma.open(
        tmp_path / "x_dists_main_i18n_Translation-en.xz", "wt", encoding="utf-8"
    ) as file:
        file.write(TRANSLATION)
    return tmp_path


def packages_of(folder: Path) -> list[Package]:
    return read_packages(
        debian._files(folder, debian.PACKAGES), debian._files(folder, debian.TRANSLATION)
    )


def test_lists_and_translations_are_joined(folder: Path) -> None:
    text = "Real-time strategy game\n0 A.D. is a game of ancient warfare:\n\n * build\n * fight"
    assert packages_of(folder) == [
        Package("0ad", "0ad", "games", text),
        Package("libfoo1", "foo", "net", "network library\nSends naïve packets."),
    ]


def test_long_descriptions_in_the_list_itself(tmp_path: Path) -> None:
    (tmp_path / "Packages").write_text("Package: a\nSection: net\nDescription: short\n long\n")
    assert packages_of(tmp_path) == [Package("a", "a", "net", "short\nlong")]


def test_missing_translations_are_named(folder: Path) -> None:
    (folder / "x_dists_main_i18n_Translation-en.xz").unlink()
    expected = (
        r"Packages, line 1: 0ad has only the first line of its description; expected the rest"
    )
    with pytest.raises(CorpusError, match=expected):
        packages_of(folder)


def test_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "MIN_DOCUMENTS", 3)
    packages = [
        Package("libzip-dev", "zip", "libdevel", "headers"),
        Package("zip", "zip", "utils", "archiver"),
        Package("azip", "zip", "utils", "first in the alphabet, but not of the source's name"),
        Package("unzip-b", "unzip", "utils", "second"),
        Package("unzip-a", "unzip", "utils", "unpacker"),
        Package("tar", "tar", "utils", "tape"),
        Package("bsdtar", "libarchive", "utils", "tape"),  # libarchive comes first: its text stays
        Package("lonely", "lonely", "mail", "the only one of its section"),
        Package("manual", "manual", "doc", "form, not topic"),
    ]
    expected = [
        ("libarchive", "tape", ("utils",)),
        ("unzip", "unpacker", ("utils",)),
        ("zip", "archiver", ("utils",)),
    ]
    assert select(packages) == expected
    assert select(packages[::-1]) == expected


def test_a_whole_corpus(tmp_path: Path) -> None:
    lists = "".join(
        f"Package: {section}{i}\nSection: {section}\nDescription: {section} {i}\n words\n\n"
        for section, n in (("games", 250), ("net", 200), ("mail", 199), ("doc", 300))
        for i in range(n)
    )
    (tmp_path / "Packages").write_text(lists)
    corpus = read(tmp_path)
    assert corpus.label_names == ("games", "net")
    assert (len(corpus.train), len(corpus.val), len(corpus.test)) == (360, 45, 45)
    assert corpus.files == (tmp_path / "Packages",)


@pytest.mark.parametrize(
    ("text", "line"),
    [("Package: a\nno field\n", 2), (" continued\n", 1), ("A: b\n\n continued\n", 3)],
)
def test_lines_that_are_no_field_are_named(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "Packages").write_text(text)
    with pytest.raises(CorpusError, match=f"Packages, line {line}: expected Field: value, got '"):
        list(paragraphs(tmp_path / "Packages"))


def test_damaged_lists_are_named(folder: Path) -> None:
    path = folder / "x_dists_main_i18n_Translation-en.xz"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CorpusError, match=r"Translation-en\.xz, line \d+: expected intact data"):
        packages_of(folder)
    (folder / "x_dists_main_binary-amd64_Packages").write_bytes(b"Package: a\nSection: \xe9\n")
    path.unlink()
    with pytest.raises(CorpusError, match="Packages, line 2: expected UTF-8 text, got byte 0xe9"):
        packages_of(folder)
