"""A full disk: what is in a collection can still be read, and errors name what could not be written.

SQLite needs a small file beside the database for its locks, which a full disk has no room for. A limit
on the size of files has the same effect.
"""

from __future__ import annotations

import resource
import shutil
from pathlib import Path

import pytest

from boltzhash import LSH, Collection
from command_line import Run, run_apart
from small_corpus import make_records
from snapshots import Newest

FULL_DISK = """
import resource, sys
from boltzhash.cli.parser import main

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
sys.exit(main(sys.argv[1:]))
"""
FEW = 5  # so that what they print or export fits


def on_a_full_disk(*arguments: object) -> Run:
    return run_apart(*arguments, program=FULL_DISK)


@pytest.fixture(params=["at rest", "with a log"])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A collection; with a log, what was written last is only there, as after a crash."""
    records = make_records(FEW)
    documents = [{"id": record["id"], "text": record["text"]} for record in records]
    hasher = LSH(16).fit([record["text"] for record in make_records(60)])
    with Collection.create(tmp_path / "made", hasher) as collection:
        collection.add(documents)
        if request.param == "with a log":
            shutil.copytree(tmp_path / "made", tmp_path / "library")
            (tmp_path / "library" / "collection.sqlite-shm").unlink()
            assert (tmp_path / "library" / "collection.sqlite-wal").stat().st_size > 0
    if request.param == "at rest":
        shutil.copytree(tmp_path / "made", tmp_path / "library")
        assert not (tmp_path / "library" / "collection.sqlite-wal").exists()
    return tmp_path / "library"


def test_what_is_there_can_be_read(library: Path, tmp_path: Path) -> None:
    for arguments in (
        ("search", library, "star planet", "-k", 1),
        ("search", library, "star planet", "-k", 1, "--by", "words"),
        ("stats", library, "--check"),
        ("export", library, "-o", tmp_path / "out.jsonl"),
    ):
        result = on_a_full_disk(*arguments)
        assert (result.code, result.err) == (0, ""), arguments
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == FEW


def test_what_cannot_be_written_is_named(library: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "more.jsonl"
    corpus.write_text('{"id": "new", "text": "star"}\n')
    result = on_a_full_disk("add", library, corpus)
    assert result == Run(
        5,
        "",
        "boltzhash: error: [Errno 28] no space left; the collection is as it was: "
        f"'{library / 'collection.sqlite'}'\n",
    )
    result = on_a_full_disk("backup", library, "-o", tmp_path / "copy")
    assert result.code == 5
    assert result.err.endswith(f": '{tmp_path / 'copy'}'\n")
    with Collection.open(library) as collection:
        assert len(collection) == FEW
        Newest(collection).check()


def test_an_export_that_does_not_fit_is_named(library: Path, tmp_path: Path) -> None:
    with Collection.open(library) as collection:
        collection.add([{"id": "long", "text": "x" * 2000}])
    result = on_a_full_disk("export", library, "-o", tmp_path / "out.jsonl")
    expected = f"boltzhash: error: [Errno 27] File too large: '{tmp_path / 'out.jsonl'}'\n"
    assert result == Run(5, "", expected)
    assert not (tmp_path / "out.jsonl").exists()


def test_when_there_is_room_again_it_is_written_as_before(library: Path) -> None:
    """Also by a process that opened the collection while there was none."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        collection = Collection.open(library)
        assert len(collection) == FEW
        with pytest.raises(OSError, match="no space left"):
            collection.add([{"id": "new", "text": "star"}])
        assert len(collection.search("star", k=100)) == FEW
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    with collection:
        assert collection.add([{"id": "new", "text": "star"}]) == 1
        assert "new" in collection
