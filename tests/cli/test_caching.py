"""``boltzhash search CORPUS``: a collection of it in the cache, made once for each of its states."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from boltzhash.cli import caching
from boltzhash.collection import Collection
from command_line import DEADLINE, Made, Run, names, refused, run, start, succeed
from small_corpus import make_records, write_corpus, write_jsonl


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BOLTZHASH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "collections"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "corpus.jsonl", make_records(60))


STATE = "[0-9a-f]{16}"


def kept(cache: Path, also: str = "lock") -> list[Path]:
    """The collections in the cache; nothing else is left there but the lock."""
    files = [path.name for path in cache.glob("*/*") if not path.is_dir()]
    assert [name for name in files if not re.fullmatch(f"lock|{also}", name)] == []
    return sorted(path for path in cache.glob("*/*") if path.is_dir())


def hits(result: Run) -> list[str]:
    assert result.code == 0, result.err
    return result.out.splitlines()[1:]


def test_a_corpus_is_read_once_and_answers_as_its_collection_would(
    corpus: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run("search", corpus, "star planet", "-k", 3)
    (collection,) = kept(cache)
    assert first.err.splitlines()[0] == (
        f"boltzhash: reading {corpus} into {collection}, once; `boltzhash index` makes a collection "
        "that you name and keep"
    )
    run("index", corpus, "-o", tmp_path / "library")
    assert first.out == succeed("search", tmp_path / "library", "star planet", "-k", 3)
    where = ("--where", '{"year": 2003}')
    expected = succeed("search", tmp_path / "library", "star planet", *where)
    monkeypatch.setattr(caching, "opened_or_learned", None)  # nothing is made again
    again = run("search", corpus, "star planet", *where)
    assert (again.out, again.err) == (
        expected,
        f"boltzhash: {corpus} has not changed since it was read into {collection}\n",
    )
    assert oct(collection.parent.stat().st_mode & 0o777) == "0o700"


def test_a_changed_corpus_is_read_anew(corpus: Path, cache: Path) -> None:
    run("search", corpus, "star")
    before = kept(cache)
    write_jsonl(corpus, [*make_records(60), {"id": "new", "text": "xylophone"}])
    (first, *_) = hits(run("search", corpus, "xylophone"))
    assert first.split()[2] == "new"
    (after,) = kept(cache)
    assert [after] != before


def test_a_change_shows_though_size_and_time_are_the_same(corpus: Path, cache: Path) -> None:
    run("search", corpus, "star")
    found, text = corpus.stat(), corpus.read_text()
    corpus.write_text(text.replace("planet", "xplane"))
    os.utime(corpus, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert corpus.stat().st_size == found.st_size
    assert "xplane" in run("search", corpus, "xplane").out


def test_a_changed_folder_is_read_anew(tmp_path: Path) -> None:
    corpus = write_corpus("folder", tmp_path)
    run("search", corpus, "star")
    for name, text in (("new.txt", "xylophone"), ("000.txt", "celesta"), ("new.txt", None)):
        if text is None:
            (corpus / name).unlink()
        else:
            (corpus / name).write_text(text)
        result = run("search", corpus, text or "xylophone", "-k", 99, "--by", "codes")
        assert "boltzhash: reading " in result.err
        assert (name in [line.split()[2] for line in hits(result)]) == (text is not None)


def test_other_fields_make_another_collection(tmp_path: Path, cache: Path) -> None:
    rows = [
        {"name": f"n{i}", "body": r["text"], "text": make_records(20)[i + 9]["text"]}
        for i, r in enumerate(make_records(9))
    ]
    corpus = write_jsonl(tmp_path / "corpus.jsonl", rows)
    run("search", corpus, "star")
    (first, *_) = hits(
        run("search", corpus, rows[4]["body"], "--text-field", "body", "--id-field", "name")
    )
    assert first.split()[2] == "n4"
    assert len(kept(cache)) == 2


def test_records_that_are_left_out_are_told_of_and_kept(corpus: Path, cache: Path) -> None:
    with corpus.open("a") as file:
        file.write("no json\n")
    assert "line 61: not valid JSON" in run("search", corpus, "star").err
    result = run("search", corpus, "star", "--skip-bad")
    (collection,) = kept(cache, f"{STATE}.skipped.jsonl")
    told = f"1 records were left out (1 × not valid JSON): see {collection}.skipped.jsonl"
    assert told in result.err
    assert len(hits(result)) == 10
    write_jsonl(corpus, make_records(60))
    run("search", corpus, "star", "--skip-bad")
    assert len(kept(cache)) == 1  # the file is gone with the state that it told of


# What is refused


def test_what_cannot_be_searched_as_it_is(made: Made, tmp_path: Path, cache: Path) -> None:
    assert "standard input cannot be" in refused("search", "-", "moon", stdin="{}")
    message = refused("search", made.corpus, "moon", "--corpus", made.corpus)
    assert "--corpus is for a folder of codes" in message
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run("search", empty, "moon").err.endswith(
        f"error: {empty}: expected a folder with text files, got one without any (hidden and binary "
        "files do not count)\n"
    )
    picture = tmp_path / "picture.png"
    picture.touch()
    assert "expected .jsonl" in run("search", picture, "moon").err
    assert kept(cache) == []


def test_a_question_is_not_taken_for_a_path(corpus: Path) -> None:
    for question in ("what is http://example.com", "star " * 2000, "a/b/../c", "."):
        result = run("search", corpus, question)
        assert result.code == 0 or "no word to search for" in result.err


# Others, and interruptions


def test_nothing_is_answered_from_what_was_not_finished(
    corpus: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Collection.add_resumably

    def interrupted(self: Collection, documents: Any, name: str) -> int:
        add(self, [next(documents)], name)
        raise KeyboardInterrupt

    monkeypatch.setattr(Collection, "add_resumably", interrupted)
    assert run("search", corpus, "star").code == 130
    monkeypatch.setattr(Collection, "add_resumably", add)
    (unfinished,) = kept(cache)
    assert unfinished.name.startswith("unfinished-")
    write_jsonl(corpus, make_records(30))
    assert len(hits(run("search", corpus, "star", "-k", 99, "--by", "codes"))) == 30
    (whole,) = kept(cache)
    assert not whole.name.startswith("unfinished-")


def test_a_corpus_that_changes_while_it_is_read_is_not_kept(
    corpus: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Collection.add_resumably

    def meanwhile(self: Collection, documents: Any, name: str) -> int:
        done = add(self, documents, name)
        write_jsonl(corpus, make_records(61))
        return done

    monkeypatch.setattr(Collection, "add_resumably", meanwhile)
    result = run("search", corpus, "star")
    assert result.code == 2
    assert result.err.endswith(f"error: {corpus} changed while it was read: try again\n")
    assert kept(cache) == []


def test_a_second_process_waits_for_the_first(corpus: Path, cache: Path) -> None:
    run("search", corpus, "star")
    (place,) = cache.iterdir()
    before = names(place)
    write_jsonl(corpus, make_records(61))
    with (
        closing(sqlite3.connect(place / "lock", isolation_level=None)) as lock,
        start("search", corpus, "star", "-k", "1") as process,
    ):
        lock.execute("BEGIN EXCLUSIVE")
        assert process.stderr is not None
        assert process.stderr.readline().startswith(f"boltzhash: reading {corpus}")
        assert process.stderr.readline() == (
            "boltzhash: another process is reading it: waiting for that\n"
        )
        assert set(names(place)) - {"lock-journal"} == set(before)  # nothing is made meanwhile
        lock.execute("ROLLBACK")
        out, err = process.communicate(timeout=DEADLINE)
    assert (process.returncode, len(out.splitlines())) == (0, 2), err
    (after,) = kept(cache)
    assert after.name not in before


def test_a_cache_that_cannot_be_made(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOLTZHASH_CACHE", str(corpus / "inside a file"))
    result = run("search", corpus, "star")
    assert result.code == 5
    assert str(corpus / "inside a file") in result.err
    assert names(corpus.parent) == ["corpus.jsonl"]
