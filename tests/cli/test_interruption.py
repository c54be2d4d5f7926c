"""Commands that are interrupted: what they leave, and how they go on (exit code 130)."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from boltzhash import SemanticHasher
from boltzhash.collection import Collection
from boltzhash.training import loop
from command_line import (
    FIT,
    Fitted,
    Made,
    Run,
    contents,
    names,
    refused,
    run,
    run_apart,
    start,
    stop,
    succeed,
    wait_for,
)
from small_corpus import as_jsonl, make_records, write_jsonl
from snapshots import Newest


def count_epochs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows by one with every epoch that is trained from here on."""
    epochs: list[int] = []
    epoch = loop._epoch

    def counted(*arguments: Any) -> Any:
        epochs.append(1)
        return epoch(*arguments)

    monkeypatch.setattr(loop, "_epoch", counted)
    return epochs


HELD_FIT = """
import sys, time
from boltzhash.cli.parser import main
from boltzhash.training import loop

def held(*arguments, train=loop._epoch):
    if arguments[-1] == 30:
        time.sleep(600)  # until the signal comes
    return train(*arguments)

loop._epoch = held
loop.SECONDS_BETWEEN_CHECKPOINTS = -1
sys.exit(main(sys.argv[1:]))
"""


def epochs_kept(checkpoint: Path) -> int:
    if not checkpoint.exists():
        return 0
    return len(json.loads((checkpoint / "config.json").read_text())["history"])


def test_an_interrupted_fit_goes_on_to_the_same_model(
    fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_epochs, done = 60, 30
    options = ("--bits", 8, "--epochs", n_epochs)
    model, checkpoint = tmp_path / "model", tmp_path / "model.checkpoint"
    with start("fit", fitted.corpus, "-o", model, *options, program=HELD_FIT) as process:
        wait_for(lambda: epochs_kept(checkpoint) == done, process)
        assert stop(process) == Run(
            130,
            "",
            f"boltzhash: interrupted: {checkpoint} keeps what is done; the same command resumes from "
            "there\n",
        )
    assert names(tmp_path) == ["model.checkpoint"]
    assert epochs_kept(checkpoint) == done

    epochs = count_epochs(monkeypatch)
    resumed = run("fit", fitted.corpus, "-o", model, *options, "--json")
    assert resumed.code == 0
    assert len(epochs) == n_epochs - done
    assert str(checkpoint) in resumed.err
    assert json.loads(resumed.out)["epochs"] == n_epochs
    assert names(tmp_path) == ["model"]

    whole = tmp_path / "whole"
    report = json.loads(succeed("fit", fitted.corpus, "-o", whole, *options, "--json"))
    assert len(epochs) == n_epochs - done + n_epochs
    assert contents(model) == contents(whole)
    different = {"model", "seconds"}
    assert {k: v for k, v in json.loads(resumed.out).items() if k not in different} == {
        k: v for k, v in report.items() if k not in different
    }


@pytest.mark.usefixtures("checkpoint_every_epoch")
def test_a_checkpoint_of_another_fit_is_not_gone_on_from(
    fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = loop._epoch

    def interrupted(*arguments: Any) -> Any:
        if arguments[-1] == 3:
            raise KeyboardInterrupt
        return epoch(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "_epoch", interrupted)
        assert run("fit", fitted.corpus, "-o", tmp_path / "model", *FIT, "--seed", 3).code == 130
    assert names(tmp_path) == ["model.checkpoint"]
    assert run("fit", fitted.corpus, "-o", tmp_path / "model", *FIT).code == 0
    assert contents(tmp_path / "model") == contents(fitted.model)


def test_a_damaged_checkpoint_is_named(fitted: Fitted, tmp_path: Path) -> None:
    checkpoint = tmp_path / "model.checkpoint"
    checkpoint.mkdir()
    result = run("fit", fitted.corpus, "-o", tmp_path / "model", *FIT)
    assert result.code == 2
    assert f"error: {checkpoint} is not a boltzhash checkpoint folder" in result.err
    assert names(tmp_path) == ["model.checkpoint"]


@pytest.mark.usefixtures("checkpoint_every_epoch")
def test_a_model_that_could_not_be_saved_need_not_be_fitted_again(
    fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint may go when the model is on the disk, and not before."""
    arguments = ("fit", fitted.corpus, "-o", tmp_path / "model", *FIT)

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(SemanticHasher, "save", full_disk)
        assert run(*arguments).code == 5
    assert names(tmp_path) == ["model.checkpoint"]

    epochs = count_epochs(monkeypatch)
    assert run(*arguments).code == 0
    assert len(epochs) < 20
    assert contents(tmp_path / "model") == contents(fitted.model)
    assert names(tmp_path) == ["model"]


# Encoding and indexing


def test_an_interrupted_encode_leaves_nothing(fitted: Fitted, tmp_path: Path) -> None:
    arguments = ("encode", fitted.model, "-", "-o", tmp_path / "codes")
    with start(*arguments, stdin=subprocess.PIPE) as process:
        wait_for(lambda: names(tmp_path), process)  # the folder under construction
        assert stop(process) == Run(130, "", "boltzhash: interrupted: nothing was kept\n")
    assert names(tmp_path) == []


def n_documents(collection: Path) -> int:
    database = collection / "collection.sqlite"
    if not database.exists():
        return 0
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("SELECT n_documents FROM state").fetchone()[0])


def test_a_killed_index_goes_on_where_it_stopped(made: Made, tmp_path: Path) -> None:
    """While it is killed the corpus comes through a pipe that never ends, so it is never done."""
    rows = make_records(15_000)
    corpus, collection = tmp_path / "large.jsonl", tmp_path / "large"
    command = ("index", made.model, corpus, "-o", collection)
    corpus.symlink_to("/dev/stdin")
    done = 0
    for how, code, came in ((signal.SIGKILL, -9, 7_500), (signal.SIGINT, 130, 15_000)):
        with start(*command, stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            process.stdin.write(as_jsonl(rows[:came]))
            process.stdin.flush()
            wait_for(lambda before=done: n_documents(collection) > before, process)
            stopped = stop(process, how)
        assert stopped.code == code, stopped.err
        done = n_documents(collection)
        assert 0 < done < came
    corpus.unlink()
    write_jsonl(corpus, rows)
    message = refused("index", made.model, made.corpus, "-o", collection)
    assert f"is unfinished: run `index {corpus}` again, not `index {made.corpus}`" in message
    result = run(*command, "--json")
    assert result.err == f"boltzhash: resuming after the {done} documents that are already there\n"
    assert json.loads(result.out)["written"] == len(rows) - done
    with Collection.open(collection) as opened:
        assert [document.id for document in opened] == [row["id"] for row in rows]
        Newest(opened).check()


def test_add_goes_on_and_gives_up_what_was_interrupted(made: Made, tmp_path: Path) -> None:
    rows = make_records(1500, start=100)
    broken = tmp_path / "broken.jsonl"
    broken.write_text(as_jsonl(rows) + "no json\n")
    assert "line 1501: not valid JSON" in refused("add", made.collection, broken)
    write_jsonl(broken, rows)
    result = run("add", made.collection, broken, "--json")
    assert result.err == "boltzhash: resuming after the 1024 documents that are already there\n"
    assert json.loads(result.out)["written"] == 476
    broken.write_text(as_jsonl(make_records(1024, 5000)) + "no json\n")
    assert "line 1025" in refused("add", made.collection, broken)
    more = write_jsonl(tmp_path / "more.jsonl", make_records(10, start=9000))
    result = run("add", made.collection, more, "--json")
    assert f"`add {broken}` was interrupted and can no longer resume" in result.err
    assert json.loads(result.out)["documents"] == 60 + 1500 + 1024 + 10


@pytest.mark.parametrize(
    ("command", "method", "kept"),
    [
        ("rehash", "rehash", "the same command resumes where it stopped"),
        ("upsert", "upsert", "what was written stays; run the same command again"),
    ],
)
def test_what_else_is_interrupted_says_what_is_kept(
    made: Made, monkeypatch: pytest.MonkeyPatch, command: str, method: str, kept: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Collection, method, interrupted)
    arguments = {
        "rehash": ("rehash", made.collection, made.other),
        "upsert": ("add", made.collection, made.corpus, "--upsert"),
    }
    assert run(*arguments[command]) == Run(130, "", f"boltzhash: interrupted: {kept}\n")


# An input that has changed


@pytest.fixture
def interrupted(made: Made, tmp_path: Path) -> tuple[Path, Path]:
    """A corpus with a bad line near its end, and a collection of what comes before that."""
    corpus, library = tmp_path / "large.jsonl", tmp_path / "library"
    corpus.write_text(as_jsonl(make_records(1100)) + "no json\n")
    assert "line 1101" in refused("index", made.model, corpus, "-o", library)
    assert n_documents(library) == 1024
    return corpus, library


def test_a_cleaned_corpus_is_not_taken_for_the_one_that_was_interrupted(
    made: Made, interrupted: tuple[Path, Path]
) -> None:
    """The ids are the same; texts that stay would be the old ones."""
    corpus, library = interrupted
    cleaned = [{**record, "text": f"cleaned {record['text']}"} for record in make_records(1100)]
    write_jsonl(corpus, cleaned)
    command = ("index", made.model, corpus, "-o", library)
    result = run(*command)
    assert result.code == 2
    assert (
        "ids, texts or metadata up to number 1023 are no longer those that were added" in result.err
    )
    assert result.err.endswith(
        "To start over, run the same command with --start-over: it deletes the 1024 documents that "
        f"are in {library}, and begins again\n"
    )
    assert n_documents(library) == 1024
    assert json.loads(run(*command, "--start-over", "--json").out)["written"] == 1100
    with Collection.open(library) as opened:
        assert [document.text for document in opened] == [record["text"] for record in cleaned]
        Newest(opened).check()
    message = refused(*command, "--start-over", code=5)
    assert message.startswith(f"{library} is already a collection")  # a finished one stays


def test_another_corpus_can_start_over(made: Made, interrupted: tuple[Path, Path]) -> None:
    _, library = interrupted
    command = ("index", made.model, made.corpus, "-o", library)
    assert refused(*command).endswith("or start over with --start-over")
    succeed(*command, "--start-over")
    assert n_documents(library) == 60


def test_an_add_whose_corpus_has_changed_says_how_to_overwrite(made: Made, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(as_jsonl(make_records(1100, start=100)) + "no json\n")
    refused("add", made.collection, corpus)
    cleaned = [{**r, "text": f"cleaned {r['text']}"} for r in make_records(1100, start=100)]
    write_jsonl(corpus, cleaned)
    result = run("add", made.collection, corpus)
    assert result.code == 2
    assert "To start over, run the same command with --upsert" in result.err
    succeed("add", made.collection, corpus, "--upsert")
    with Collection.open(made.collection) as opened:
        assert Newest(opened).state.unfinished is None
        assert [document.text for document in opened][60:] == [r["text"] for r in cleaned]


# At any moment


INTERRUPT = "import os, signal; os.kill(os.getpid(), signal.SIGINT)\n"
INTERRUPTED_IMPORT = f"""
import sys
class Hook:
    def find_spec(self, name, *_):
        if name == "{{0}}":
            {INTERRUPT}
sys.modules.pop("{{0}}", None)
sys.meta_path.insert(0, Hook())
from boltzhash.__main__ import run
sys.exit(run())
"""


@pytest.mark.parametrize("module", ["argparse", "boltzhash.cli.parser"])
def test_ctrl_c_while_the_command_is_imported(tmp_path: Path, module: str) -> None:
    """A module in its place, or a hook, sends the signal in the middle of that."""
    result = run_apart("methods", program=INTERRUPTED_IMPORT.format(module))
    assert result == Run(130, "", "boltzhash: interrupted\n")


@pytest.mark.parametrize("module", ["torch", "boltzhash.training.loop"])
def test_ctrl_c_while_torch_is_imported(fitted: Fitted, tmp_path: Path, module: str) -> None:
    program = INTERRUPTED_IMPORT.format(module)
    result = run_apart("fit", fitted.corpus, "-o", tmp_path / "model", program=program)
    assert result == Run(130, "", "boltzhash: interrupted: nothing was kept\n")
    assert names(tmp_path) == []


def test_ctrl_c_when_all_is_done(fitted: Fitted) -> None:
    """While Python ends, it would otherwise show where it was."""
    program = f"""
import atexit, sys
from boltzhash.__main__ import run
def interrupt():
    {INTERRUPT}
atexit.register(interrupt)
sys.exit(run())
"""
    result = run_apart("explain", fitted.model, program=program)
    assert (result.code, result.err) == (130, "boltzhash: interrupted\n")
    assert result.out.startswith("bit 0")


def test_an_interrupted_fit_without_a_checkpoint_says_so(fitted: Fitted, tmp_path: Path) -> None:
    arguments = ("fit", "-", "-o", tmp_path / "model", *FIT)
    program = """
import os, signal, sys
from boltzhash.__main__ import run
from boltzhash.training import loop

def interrupted(*_):
    os.kill(os.getpid(), signal.SIGINT)

loop._epoch = interrupted
sys.exit(run())
"""
    result = run_apart(*arguments, program=program, input=fitted.corpus.read_text())
    assert result == Run(130, "", "boltzhash: interrupted: nothing was kept\n")
    assert names(tmp_path) == []


def test_an_interrupted_index_says_what_it_keeps(made: Made, tmp_path: Path) -> None:
    rows, library = make_records(15_000), tmp_path / "library"
    with start("index", made.model, "-", "-o", library, stdin=subprocess.PIPE) as process:
        wait_for(lambda: (library / "collection.sqlite").exists(), process)
        stopped = stop(process)
    assert stopped == Run(130, "", "boltzhash: interrupted: nothing was kept\n")
    with start("index", made.model, "-", "-o", library, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(as_jsonl(rows))
        process.stdin.flush()
        wait_for(lambda: n_documents(library) > 0, process)
        stopped = stop(process)
    kept = n_documents(library)
    assert stopped == Run(
        130,
        "",
        f"boltzhash: interrupted: {library} keeps the first {kept} documents; the same command "
        "resumes after them\n",
    )
