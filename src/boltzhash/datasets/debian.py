"""Debian's package descriptions, labelled by section: a corpus on which no default was tuned.

Made from a release's lists of packages, as apt keeps them in ``/var/lib/apt/lists``: ``Packages`` and,
if that has only the first line of the descriptions, ``Translation-en``, joined by Description-md5.

The rule of selection was fixed before any model was run on it:

1. Packages of the sections in ``FORM_SECTIONS`` are dropped: those say what kind of file a package holds
   (documentation, headers, debugging symbols), not what it is about.
2. Of each source package one binary package is kept: the one with the same name, otherwise the first in
   alphabetical order. Siblings share most of their description.
3. Of equal texts the first is kept, in the order of the source packages' names.
4. Sections with fewer than ``MIN_DOCUMENTS`` packages left are dropped.
5. 80 % train, 10 % val, 10 % test by :func:`~boltzhash.datasets.labelled.split_by_hash` of the
   source package's name.

The text is the first line and the long description; the source package's name, which need not occur in
either, is the id.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from boltzhash.corpus import CorpusError
from boltzhash.datasets.archives import text_lines
from boltzhash.datasets.labelled import Corpus, LabelledDocument, make_corpus, split_by_hash

FORM_SECTIONS = frozenset(
    "debug doc introspection libdevel libs localization metapackages misc oldlibs tasks".split()
)
MIN_DOCUMENTS = 200
SHARES = (0.8, 0.1, 0.1)

PACKAGES = re.compile(r"(?:.*_)?Packages(?:\.gz|\.xz|\.bz2)?")
TRANSLATION = re.compile(r"(?:.*_)?Translation-en(?:\.gz|\.xz|\.bz2)?")

_FIELDS = frozenset(
    ("Package", "Source", "Section", "Description", "Description-md5", "Description-en")
)


class Package(NamedTuple):
    """A binary package with the source package it is built from, its section and its description."""

    name: str
    source: str
    section: str
    text: str


def read(folder: Path) -> Corpus:
    """Read all lists of packages in ``folder``, which should be those of one release's main."""
    lists, translations = _files(folder, PACKAGES), _files(folder, TRANSLATION)
    if not lists:
        raise CorpusError(
            f"{folder}: expected a file Packages (also with .gz, .xz or .bz2; one with .lz4 must be "
            "decompressed), got none"
        )
    documents = select(read_packages(lists, translations))
    parts = dict(zip(("train", "val", "test"), split_by_hash(documents, SHARES), strict=True))
    return make_corpus("debian", parts, [*lists, *translations])


def _files(folder: Path, name: re.Pattern[str]) -> list[Path]:
    return sorted(path for path in folder.iterdir() if name.fullmatch(path.name))


def read_packages(lists: Sequence[Path], translations: Sequence[Path]) -> list[Package]:
    """The packages of some lists; if one is in several lists, the first counts.

    Parameters
    ----------
    lists
        Files ``Packages``.
    translations
        Files ``Translation-en``, for descriptions of which ``lists`` have only the first line.
    """
    long: dict[str, str] = {}
    for path in translations:
        for number, fields in paragraphs(path):
            where = f"{path}, line {number}"
            long[_field(fields, "Description-md5", where)] = _field(fields, "Description-en", where)
    packages: dict[str, Package] = {}
    for path in lists:
        for number, fields in paragraphs(path):
            where = f"{path}, line {number}"
            name = _field(fields, "Package", where)
            source = fields.get("Source", name).split(" ")[0]  # a version may follow
            section = fields.get("Section", "").rpartition("/")[2]  # contrib/net → net
            if name not in packages and section:
                text = _description(fields, long, where)
                packages[name] = Package(name, source, section, text)
    return list(packages.values())


def _field(fields: dict[str, str], name: str, where: str) -> str:
    if not fields.get(name):
        raise CorpusError(f"{where}: expected a paragraph with {name}, got {', '.join(fields)}")
    return fields[name]


def _description(fields: dict[str, str], long: dict[str, str], where: str) -> str:
    own = fields.get("Description") or fields.get("Description-en", "")
    digest = fields.get("Description-md5")
    if "\n" not in own and digest is not None:
        if digest not in long:
            raise CorpusError(
                f"{where}: {fields['Package']} has only the first line of its description; expected "
                "the rest in a file Translation-en of the same release beside it"
            )
        own = long[digest]
    return _unfolded(own)


def _unfolded(description: str) -> str:
    r"""A description as text.

    >>> _unfolded("short\n long,\n in two lines\n .\n  * item")
    'short\nlong,\nin two lines\n\n * item'
    """
    first, *rest = description.split("\n")
    return "\n".join([first, *("" if line.strip() == "." else line[1:] for line in rest)]).strip()


def select(packages: Iterable[Package]) -> list[LabelledDocument]:
    """What steps 1 to 4 of the rule leave of ``packages``, as documents.

    >>> kept = [Package(f"pkg{n}", "pkg", "net", f"text {n}") for n in (2, 1)]
    >>> select(kept + [Package("pkg-doc", "pkg", "doc", "manual")])
    []
    """
    chosen: dict[str, Package] = {}
    for package in sorted(packages):
        if package.section not in FORM_SECTIONS and (
            package.source not in chosen or package.name == package.source
        ):
            chosen[package.source] = package
    by_text: dict[str, Package] = {}
    for source in sorted(chosen):
        by_text.setdefault(chosen[source].text, chosen[source])
    sizes = Counter(package.section for package in by_text.values())
    return [
        LabelledDocument(package.source, text, (package.section,))
        for text, package in by_text.items()
        if sizes[package.section] >= MIN_DOCUMENTS
    ]


def paragraphs(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The paragraphs of ``path`` (deb822) and the line each begins on; only the fields needed here."""
    fields: dict[str, str] = {}
    name, begin = "", 0
    for number, line in text_lines(path):
        if not line.strip():
            if begin:
                yield begin, fields
            fields, name, begin = {}, "", 0
        elif line[0] in " \t":
            if not name:
                raise CorpusError(
                    f"{path}, line {number}: expected Field: value, got {line[:40]!r}"
                )
            if name in _FIELDS:
                fields[name] += "\n" + line
        else:
            name, colon, value = line.partition(":")
            if not colon or " " in name:
                raise CorpusError(
                    f"{path}, line {number}: expected Field: value, got {line[:40]!r}"
                )
            begin = begin or number
            if name in _FIELDS:
                fields[name] = value.strip()
    if begin:
        yield begin, fields
