"""Collections of corpora that are searched as they are: made once, in the cache, and made again when
the corpus has changed.

A corpus, as it is read, has a folder in the cache, and in it one collection, named after the state
that the corpus was in. A collection is made under another name, by one process at a time, and gets its
own when it is whole.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from boltzhash.cli.arguments import add_fields, add_metadata, read_documents, with_progress
from boltzhash.cli.learning import add_learning, opened_or_learned
from boltzhash.cli.opening import is_collection
from boltzhash.cli.reporting import say
from boltzhash.version import __version__

_ENDS = 64 * 1024  # bytes at either end of a file whose contents are compared
_UNFINISHED = "unfinished-"
_LOCK = "lock"


def cached_collection(corpus: str, options: argparse.Namespace) -> str:
    """Where the collection of a corpus is, read as the options say; made first if need be."""
    place = _place(corpus, options)
    state = _state(Path(corpus))
    whole = place / state
    if is_collection(str(whole)):
        say(f"{corpus} has not changed since it was read into {whole}")
        return str(whole)
    say(
        f"reading {corpus} into {whole}, once; `boltzhash index` makes a collection that you name and "
        "keep"
    )
    place.mkdir(parents=True, exist_ok=True, mode=0o700)  # the texts may be nobody else's business
    with _alone(place):
        if not is_collection(str(whole)):  # which another process may have made by now
            _make(corpus, options, place, state)
    return str(whole)


def _make(corpus: str, options: argparse.Namespace, place: Path, state: str) -> None:
    unfinished = place / (_UNFINISHED + state)
    _remove(path for path in place.glob(_UNFINISHED + "*") if path != unfinished)
    unfinished.mkdir(exist_ok=True)
    making = _as_if_indexed(corpus, options, unfinished / "collection")
    try:
        with opened_or_learned(making) as collection:
            documents = with_progress(read_documents(making), "indexing")
            collection.add_resumably(documents, f"search {corpus}")
        if _state(Path(corpus)) != state:
            raise ValueError(f"{corpus} changed while it was read: try again")
    except Exception:  # but Ctrl-C keeps what is done: the next search resumes there
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    (unfinished / "collection").rename(place / state)
    _remove(path for path in place.iterdir() if path.is_dir() and path.name != state)


def _remove(folders: Iterable[Path]) -> None:
    """Of states that the corpus is no longer in."""
    for folder in list(folders):
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Until no other process is here. The lock is SQLite's, which ends with its process."""
    with closing(sqlite3.connect(place / _LOCK, timeout=0.5, isolation_level=None)) as connection:
        waits = False
        while True:
            try:
                connection.execute("BEGIN EXCLUSIVE")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise OSError(f"{place / _LOCK}: {error}") from error
                if not waits:
                    say("another process is reading it: waiting for that")
                waits = True
        yield


def _as_if_indexed(corpus: str, options: argparse.Namespace, output: Path) -> argparse.Namespace:
    """What ``boltzhash index CORPUS -o OUTPUT`` would have for options."""
    parser = argparse.ArgumentParser()
    add_metadata(parser)
    add_learning(parser)
    defaults = vars(parser.parse_args([]))
    return argparse.Namespace(
        **{**defaults, **vars(options), "corpus": [corpus], "output": str(output)}
    )


def _place(corpus: str, options: argparse.Namespace) -> Path:
    """The folder of a corpus as it is read: other fields or another encoding make other documents."""
    from boltzhash.datasets import cache_folder

    parser = argparse.ArgumentParser()
    add_fields(parser)
    reading = {name: getattr(options, name) for name in vars(parser.parse_args([]))}
    path = os.path.abspath(corpus)
    name = re.sub(r"[^\w.-]", "_", Path(path).name)[:40]
    return cache_folder() / "collections" / f"{name}-{_digest([path, reading])}"


def _state(corpus: Path) -> str:
    """Changes with the files of a corpus, and with what a collection would be made by."""
    from boltzhash.corpus.folder import visible_files

    files = list(visible_files(corpus)) if corpus.is_dir() else [corpus]
    facts = [
        [str(path.relative_to(corpus)), found.st_size, found.st_mtime_ns]
        for path in files
        if path.exists()
        for found in [path.stat()]
    ]
    ends = _ends(corpus) if corpus.is_file() else None
    learns = importlib.util.find_spec("torch") is not None
    return _digest([facts, ends, learns, __version__])


def _ends(path: Path) -> str:
    """The beginning and the end of a file: a change that keeps size and time is likely to show here."""
    with path.open("rb") as file:
        begins = file.read(_ENDS)
        file.seek(max(0, path.stat().st_size - _ENDS))
        return hashlib.sha256(begins + file.read(_ENDS)).hexdigest()


def _digest(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
