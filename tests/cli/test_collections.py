"""The commands for collections: real runs, their output and exit codes, and one that is killed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import random
import signal
import sqlite3
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from boltzhash import ITQ, LSH
from boltzhash.cli.parser import main
from boltzhash.collection import Collection

TOPICS = [
    "star planet moon orbit galaxy comet telescope",
    "bread butter flour oven yeast dough jam",
    "judge law jury trial verdict lawyer witness",
]


def records(n: int, start: int = 0) -> list[dict[str, Any]]:
    rng = random.Random(start)
    return [
        {
            "id": i if i % 2 else str(i),
            "text": " ".join(rng.choices(TOPICS[i % 3].split(), k=5)),
            "year": 2000 + i % 10,
        }
        for i in range(start, start + n)
    ]


RECORDS = records(60)
TEXTS = [record["text"] for record in RECORDS]


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class Run(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments: object, stdin: str = "") -> Run:
    out, err = io.StringIO(), io.StringIO()
    here, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin.encode()))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as stopped:
                code = int(stopped.code or 0)
    finally:
        sys.stdin = here
    return Run(code, out.getvalue(), err.getvalue())


def succeed(*arguments: object, stdin: str = "") -> str:
    result = run(*arguments, stdin=stdin)
    assert (result.code, result.err) == (0, "")
    return result.out


def fail(code: int, *arguments: object) -> str:
    result = run(*arguments)
    assert (result.code, result.out) == (code, "")
    return result.err


class Made(NamedTuple):
    model: Path
    other: Path
    corpus: Path
    collection: Path


@pytest.fixture
def made(tmp_path: Path) -> Made:
    made = Made(*(tmp_path / name for name in ("model", "other", "corpus.jsonl", "collection")))
    ITQ(32).fit(TEXTS).save(made.model)
    LSH(64).fit(TEXTS).save(made.other)
    write_jsonl(made.corpus, RECORDS)
    succeed("index", made.model, made.corpus, "-o", made.collection)
    return made


def test_index_keeps_the_other_fields_as_metadata(made: Made) -> None:
    with Collection.open(made.collection) as collection:
        assert [document._asdict() for document in collection] == [
            {"id": r["id"], "text": r["text"], "metadata": {"year": r["year"]}} for r in RECORDS
        ]


def test_metadata_can_be_chosen(made: Made, tmp_path: Path) -> None:
    rows = [{**record, "a": 1, "b": [2], "metadata": {"c": 3}} for record in RECORDS[:3]]
    corpus = write_jsonl(tmp_path / "rows.jsonl", rows)
    expected = {"a,year": {"a", "year"}, "": set(), "b": {"b"}}
    for number, (fields, names) in enumerate(expected.items()):
        succeed("index", made.model, corpus, "-o", tmp_path / str(number), "--metadata", fields)
        with Collection.open(tmp_path / str(number)) as collection:
            assert {name for d in collection for name in d.metadata or {}} == names
    succeed("index", made.model, corpus, "-o", tmp_path / "all")
    with Collection.open(tmp_path / "all") as collection:
        assert next(iter(collection)).metadata == {"year": 2000, "a": 1, "b": [2], "c": 3}


def test_search_in_a_collection(made: Made) -> None:
    with Collection.open(made.collection) as collection:
        where = {"year": {">=": 2005}}
        expected = collection.search("bread and butter", 4, where=where)
        reranked = collection.search("bread and butter", 4, rerank=20)
    arguments = ("bread and butter", "-k", 4, "--json")
    for folders in ([made.collection], [made.model, made.collection]):
        (line,) = succeed("search", *folders, *arguments, "--where", json.dumps(where)).splitlines()
        hits = json.loads(line)["hits"]
        assert [hit["id"] for hit in hits] == expected.ids
        assert [hit["distance"] for hit in hits] == expected.distances.tolist()
    (line,) = succeed(
        "search", made.collection, *arguments, "--rerank", "--candidates", 20
    ).splitlines()
    assert [hit["id"] for hit in json.loads(line)["hits"]] == reranked.ids
    query, hit = succeed("search", made.collection, "-k", 1, "bread and butter").splitlines()
    assert query == "bread and butter"
    rank, _, _, text = hit.split(maxsplit=3)
    assert rank == "1"
    assert text in TEXTS


def test_queries_from_standard_input(made: Made) -> None:
    lines = succeed("search", made.collection, "--json", stdin="moon\n\njury\n").splitlines()
    assert [json.loads(line)["query"] for line in lines] == ["moon", "jury"]


def test_search_refuses(made: Made) -> None:
    assert "was made by another model" in fail(2, "search", made.other, made.collection, "moon")
    assert "is no collection" in fail(2, "search", made.model)
    assert "field 'year' has the operator '~'" in fail(
        2, "search", made.collection, "moon", "--where", '{"year": {"~": 1}}'
    )
    assert "expected a JSON object, got '[1'" in fail(
        2, "search", made.collection, "moon", "--where", "[1"
    )
    assert "--corpus is for a folder of codes" in fail(
        2, "search", made.collection, "moon", "--corpus", made.corpus
    )


def test_where_is_not_for_codes(made: Made, tmp_path: Path) -> None:
    succeed("encode", made.model, made.corpus, "-o", tmp_path / "codes")
    message = fail(2, "search", made.model, tmp_path / "codes", "moon", "--where", "{}")
    assert "--where is for a collection" in message


def test_index_refuses_what_is_there(made: Made) -> None:
    message = fail(5, "index", made.model, made.corpus, "-o", made.collection)
    assert "is a collection already: add to it with `boltzhash add`" in message
    assert "another model" in fail(2, "index", made.other, made.corpus, "-o", made.collection)


def test_index_without_a_corpus_makes_nothing(made: Made, tmp_path: Path) -> None:
    message = fail(2, "index", made.model, tmp_path / "nothing.jsonl", "-o", tmp_path / "new")
    assert "nothing.jsonl: expected a file or a folder" in message
    assert not (tmp_path / "new").exists()


def test_index_says_which_documents_mean_nothing(made: Made, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "odd.jsonl", [*RECORDS, {"id": "odd", "text": "xyzzy"}])
    result = run("index", made.model, corpus, "-o", tmp_path / "new")
    assert result.err.startswith("boltzhash: 1 documents have no word that the model knows")
    hits = json.loads(succeed("search", tmp_path / "new", "moon", "-k", 99, "--json"))["hits"]
    assert [hit["id"] for hit in hits if hit.get("no_known_word")] == ["odd"]


def test_add_and_upsert(made: Made, tmp_path: Path) -> None:
    more = write_jsonl(tmp_path / "more.jsonl", records(10, start=60))
    report = json.loads(succeed("add", made.collection, more, "--json"))
    assert (report["written"], report["documents"]) == (10, 70)
    message = fail(2, "add", made.collection, more)
    assert "the id '60' is in the collection already; nothing of its batch was added" in message
    changed = write_jsonl(tmp_path / "changed.jsonl", [{"id": 1, "text": "moon"}])
    succeed("add", made.collection, changed, "--upsert")
    with Collection.open(made.collection) as collection:
        document = collection.get(1)
        assert document is not None
        assert (document.text, len(collection)) == ("moon", 70)


def test_delete(made: Made) -> None:
    report = json.loads(succeed("delete", made.collection, "--json", 1, 2, '"4"', "nobody", "true"))
    assert report == {"deleted": 3, "not_there": 2, "documents": 57}
    assert succeed("delete", made.collection, stdin="5\n\n6\n") == (
        "deleted 2 documents, 55 are left\n"
    )
    with Collection.open(made.collection) as collection:
        assert [id_ for id_ in (1, "2", 3, "4", 5, "6") if id_ in collection] == [3]


def test_duplicates(made: Made) -> None:
    with Collection.open(made.collection) as collection:
        groups = collection.duplicates(3)
    assert groups
    lines = succeed("duplicates", made.collection, "--radius", 3, "--json").splitlines()
    assert [json.loads(line) for line in lines] == groups
    result = run("duplicates", made.collection, "--radius", 3)
    assert result.out == "".join("\t".join(map(str, group)) + "\n" for group in groups)
    n_extra = sum(len(group) - 1 for group in groups)
    assert f"{len(groups)} groups" in result.err
    assert f"{n_extra} documents fewer" in result.err
    assert "radius must be" in fail(2, "duplicates", made.collection, "--radius", -1)


def test_stats(made: Made) -> None:
    report = json.loads(succeed("stats", made.collection, "--json"))
    assert (report["documents"], report["bits"], report["method"]) == (60, 32, "ITQ")
    text = succeed("stats", made.collection, "--check")
    assert text.startswith("60 documents, 32 bits (ITQ), generation")
    for name in ("documents", "codes", "index"):
        assert f"{report['bytes_per_document'][name]} a document" in text


def test_stats_check_finds_damage(made: Made) -> None:
    with contextlib.closing(sqlite3.connect(made.collection / "collection.sqlite")) as connection:
        connection.execute("UPDATE documents SET text = 'changed by hand' WHERE id = 7")
        connection.commit()
    succeed("stats", made.collection)
    assert "is damaged: document number 8, id 7" in fail(2, "stats", made.collection, "--check")


def test_rehash(made: Made) -> None:
    report = json.loads(succeed("rehash", made.collection, made.other, "--json"))
    assert report == {"documents": 60, "bits": 64}
    assert json.loads(succeed("stats", made.collection, "--json"))["method"] == "LSH"


def test_backup_and_export_come_back(made: Made, tmp_path: Path) -> None:
    succeed("backup", made.collection, "-o", tmp_path / "backup")
    succeed("export", tmp_path / "backup", "-o", tmp_path / "out.jsonl")
    succeed("index", made.model, tmp_path / "out.jsonl", "-o", tmp_path / "again")
    with Collection.open(made.collection) as one, Collection.open(tmp_path / "again") as other:
        assert list(one) == list(other)
    assert "goes into a new folder" in fail(5, "backup", made.collection, "-o", tmp_path / "backup")


def test_what_is_no_collection(made: Made, tmp_path: Path) -> None:
    for command in (["stats"], ["delete", "1"], ["duplicates", "--radius", "1"]):
        message = fail(2, command[0], tmp_path, *command[1:])
        assert f"{tmp_path} is not a collection" in message


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "boltzhash", *map(str, arguments)],
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        **options,
    )


def n_documents(collection: Path) -> int:
    database = collection / "collection.sqlite"
    if not database.exists():
        return 0
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("SELECT n_documents FROM state").fetchone()[0])


def wait_until_more_than(n: int, collection: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while n_documents(collection) <= n:
        assert process.poll() is None, "ended too early"
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.002)


def test_a_killed_index_goes_on_where_it_stopped(made: Made, tmp_path: Path) -> None:
    rows = records(15_000)
    corpus = write_jsonl(tmp_path / "large.jsonl", rows)
    collection = tmp_path / "large"
    command = ("index", made.model, corpus, "-o", collection)
    done = 0
    for stop in (signal.SIGKILL, signal.SIGINT):
        with start(*command, stderr=subprocess.PIPE) as process:
            wait_until_more_than(done, collection, process)
            process.send_signal(stop)
            _, messages = process.communicate(timeout=60)
        assert process.returncode == (-9 if stop is signal.SIGKILL else 130), messages
        done = n_documents(collection)
        assert 0 < done < len(rows)
    message = fail(2, "index", made.model, made.corpus, "-o", collection)
    assert f"is unfinished: run `index {corpus}` again, not `index {made.corpus}`" in message
    result = run(*command, "--json")
    assert result.err == f"boltzhash: going on behind the {done} documents that are there\n"
    assert json.loads(result.out)["written"] == len(rows) - done
    with Collection.open(collection) as opened:
        assert [document.id for document in opened] == [row["id"] for row in rows]
        opened.check()


def test_add_goes_on_and_gives_up_what_was_interrupted(made: Made, tmp_path: Path) -> None:
    rows = records(1500, start=100)
    broken = tmp_path / "broken.jsonl"
    broken.write_text("".join(json.dumps(row) + "\n" for row in rows) + "no json\n")
    assert "line 1501: not valid JSON" in fail(2, "add", made.collection, broken)
    write_jsonl(broken, rows)
    result = run("add", made.collection, broken, "--json")
    assert result.err == "boltzhash: going on behind the 1024 documents that are there\n"
    assert json.loads(result.out)["written"] == 476
    broken.write_text("".join(json.dumps(row) + "\n" for row in records(1024, 5000)) + "no json\n")
    assert "line 1025" in fail(2, "add", made.collection, broken)
    more = write_jsonl(tmp_path / "more.jsonl", records(10, start=9000))
    result = run("add", made.collection, more, "--json")
    assert f"`add {broken}` was interrupted and can now no longer go on" in result.err
    assert json.loads(result.out)["documents"] == 60 + 1500 + 1024 + 10


def test_on_a_terminal_the_time_left_is_shown(made: Made, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    command = ("index", made.model, made.corpus, "-o", tmp_path / "new")
    with start(*command, stderr=theirs, stdout=subprocess.DEVNULL) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how a terminal ends
            while part := os.read(ours, 1000):
                shown += part
    os.close(ours)
    assert process.returncode == 0
    assert "60/60" in shown.decode()
