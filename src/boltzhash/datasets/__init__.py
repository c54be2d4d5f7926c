"""The benchmark corpora: texts, labels and splits under one interface."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from boltzhash.arguments import check
from boltzhash.corpus import CorpusError
from boltzhash.datasets import debian, newsgroups, reuters, tmc
from boltzhash.datasets.download import DownloadError, Source, cache_folder, fetch
from boltzhash.datasets.jsonl import read_jsonl, write_jsonl
from boltzhash.datasets.labelled import Corpus, Part

__all__ = [
    "Corpus",
    "CorpusUnavailableError",
    "DownloadError",
    "Part",
    "cache_folder",
    "fetch_corpus",
    "write_jsonl",
]


class CorpusUnavailableError(CorpusError, FileNotFoundError):
    """A corpus is nowhere to be found; the message says which file goes where."""


@dataclass(frozen=True)
class _Kind:
    """How a corpus is recognised in a folder, read, and obtained."""

    jsonl: str  # name of the file without .jsonl.gz
    original: Callable[[Path], Path | None]  # where in a folder its original files are
    read: Callable[[Path], Corpus]
    files: str  # the original files, for messages
    source: Source | None = None


def _file(name: str) -> Callable[[Path], Path | None]:
    return lambda folder: folder / name if (folder / name).is_file() else None


def _folder_of(subfolder: str, holds: Callable[[Path], bool]) -> Callable[[Path], Path | None]:
    """The subfolder, or the folder itself, that holds some files."""

    def find(folder: Path) -> Path | None:
        candidates = (folder / subfolder, folder)
        return next((path for path in candidates if path.is_dir() and holds(path)), None)

    return find


def _holds_tmc(folder: Path) -> bool:
    return any((folder / name).is_file() for pair in tmc.FILES.values() for name in pair)


def _holds_debian(folder: Path) -> bool:
    return any(debian.PACKAGES.fullmatch(path.name) for path in folder.iterdir())


CORPORA = {
    "reuters": _Kind(
        "reuters",
        _file(reuters.SOURCE.file),
        reuters.read,
        f"{reuters.SOURCE.file} (Reuters-21578, SGML)",
        reuters.SOURCE,
    ),
    "newsgroups": _Kind(
        "ng20",
        _file(newsgroups.SOURCE.file),
        newsgroups.read,
        newsgroups.SOURCE.file,
        newsgroups.SOURCE,
    ),
    "tmc": _Kind(
        "tmc",
        _folder_of("tmc", _holds_tmc),
        tmc.read,
        f"a folder tmc with {', '.join(n for pair in tmc.FILES.values() for n in pair)} "
        f"(the competition's files, from {tmc.PAGE}, an address that has not been tried)",
    ),
    "debian": _Kind(
        "debian",
        _folder_of("debian", _holds_debian),
        debian.read,
        "a folder debian with Packages and Translation-en of a Debian release (a Debian system "
        "keeps both in /var/lib/apt/lists; files with .lz4 must be decompressed)",
    ),
}


def fetch_corpus(name: str, data: str | Path | None = None) -> Corpus:
    """A benchmark corpus: texts, labels and train / val / test; read, and downloaded if need be.

    Parameters
    ----------
    name : "reuters", "newsgroups", "tmc" or "debian"
    data
        The folder with the corpus, which is then the only one searched. By default the folder that
        ``BOLTZHASH_DATA`` names and, if that does not have it, the cache (``BOLTZHASH_CACHE``, or the
        platform's), into which Reuters and 20 Newsgroups are downloaded.

    A folder may hold ``reuters.jsonl.gz``, ``ng20.jsonl.gz``, ``tmc.jsonl.gz`` or ``debian.jsonl.gz``
    (one document per line with its split, see :mod:`boltzhash.datasets.jsonl`), which come first, or the
    original files; ``docs/datasets.md`` names them and says how they are divided.

    Returns
    -------
    Corpus
        ``train``, ``val`` and ``test``, each with ``ids``, ``texts`` and ``labels``, a bool array
        (n_documents, n_labels).

    Raises
    ------
    CorpusUnavailableError
        The corpus is in none of these places; the message says which file goes where.
    CorpusError
        A file is there but damaged or in another format; the message says where.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> line = '{"id": "%s", "text": "some words", "labels": ["x"], "split": "%s"}\\n'
    >>> lines = "".join(line % (part, part) for part in ("train", "val", "test"))
    >>> _ = (folder / "tmc.jsonl").write_text(lines)
    >>> corpus = fetch_corpus("tmc", data=folder)
    >>> corpus
    <Corpus tmc: 1 / 1 / 1 documents, 1 labels>
    >>> corpus.train.texts, corpus.train.labels
    (['some words'], array([[ True]]))
    """
    check("name", name, *CORPORA)
    kind = CORPORA[name]
    folders = _folders(data)
    for folder in folders:
        corpus = _read_from(folder, name, kind)
        if corpus is not None:
            return corpus
    problem = ""
    if data is None and kind.source is not None:
        try:
            return kind.read(fetch(kind.source))
        except DownloadError as error:
            problem = f". {error}"
    places = " or ".join(map(str, folders))
    raise CorpusUnavailableError(
        f"the corpus {name} was not found: expected {kind.jsonl}.jsonl.gz, or {kind.files}, in "
        f"{places}{problem}"
    )


def _folders(data: str | Path | None) -> list[Path]:
    if data is not None:
        if not Path(data).is_dir():
            raise CorpusUnavailableError(f"data must be a folder, got {data}, which is not one")
        return [Path(data)]
    named = os.environ.get("BOLTZHASH_DATA")
    return [*([Path(named)] if named else []), cache_folder()]


def _read_from(folder: Path, name: str, kind: _Kind) -> Corpus | None:
    """The corpus in a folder, None if it is not there."""
    for suffix in (".jsonl.gz", ".jsonl"):
        path = folder / f"{kind.jsonl}{suffix}"
        if path.is_file():
            return read_jsonl(path, name)
    original = kind.original(folder) if folder.is_dir() else None
    if original is None:
        return None
    if folder == cache_folder() and kind.source is not None:
        original = fetch(kind.source)  # it is there, so this only checks it
    return kind.read(original)
