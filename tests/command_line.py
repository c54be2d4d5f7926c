"""Runs of the ``boltzhash`` command, in this process or in one of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from boltzhash.cli.parser import main

Answer = TypeVar("Answer")

FIT = ("--bits", "16", "--epochs", "20")  # what makes a fit short
DEADLINE = 180.0  # seconds after which something that should have happened did not


class Run(NamedTuple):
    """What a run of the command gave back."""

    code: int
    out: str
    err: str


class Fitted(NamedTuple):
    """A corpus, a model of it and its codes; tests only read them."""

    corpus: Path
    model: Path
    codes: Path


class Made(NamedTuple):
    """A model, another one, a corpus and a collection of it, all a test's own."""

    model: Path
    other: Path
    corpus: Path
    collection: Path


def without_progress(err: str) -> str:
    """What a run said, without the lines that come every ten seconds if the machine is slow."""
    return re.sub(r"(?m)^boltzhash: \w+: .*(a second|each|left|so far)\n", "", err)


# In this process


def run(*arguments: object, stdin: str = "") -> Run:
    out, err = io.StringIO(), io.StringIO()
    here = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as stopped:  # argparse's way
                code = int(stopped.code or 0)
    finally:
        sys.stdin = here
    return Run(code, out.getvalue(), without_progress(err.getvalue()))


def succeed(*arguments: object, stdin: str = "") -> str:
    """What a run that must succeed, and have nothing to remark, prints."""
    result = run(*arguments, stdin=stdin)
    assert (result.code, result.err) == (0, "")
    return result.out


def refused(*arguments: object, stdin: str = "", code: int = 2) -> str:
    """The message of a run that must fail, in one line and without a traceback."""
    result = run(*arguments, stdin=stdin)
    assert (result.code, result.out) == (code, "")
    prefix = "boltzhash: error: "
    assert result.err.startswith(prefix)
    assert result.err.count("\n") == 1
    return result.err.removeprefix(prefix).rstrip("\n")


def misused(*arguments: object) -> str:
    """What is said of a command line that is none."""
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("usage: boltzhash")
    return result.err


def search_hits(*arguments: object, stdin: str = "") -> list[dict[str, Any]]:
    """The hits of a search for one query."""
    (line,) = succeed("search", *arguments, "--json", stdin=stdin).splitlines()
    hits: list[dict[str, Any]] = json.loads(line)["hits"]
    return hits


# In a process of its own


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", **variables}


@contextlib.contextmanager
def start(
    *arguments: object, program: str | None = None, **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """The command, or a program around it: nothing to read, and what it prints goes into pipes.

    It does not outlive the block, so that a test that fails does not wait for it.
    """
    how = ["-m", "boltzhash"] if program is None else ["-c", program]
    options = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "env": environment(),
        **options,
    }
    command = [sys.executable, *how, *map(str, arguments)]
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def run_apart(*arguments: object, input: str | None = None, **options: Any) -> Run:
    """A whole run; nothing is told of streams that the options lead elsewhere."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with start(*arguments, **options) as process:
        out, err = process.communicate(input, timeout=DEADLINE)
    return Run(process.returncode, out or "", without_progress(err or ""))


def run_on_terminal(*arguments: object) -> tuple[Run, str]:
    """A run with standard error on a terminal 100 columns wide, and what that showed."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    with start(*arguments, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how a terminal ends
            while part := os.read(ours, 1000):
                shown += part
        os.close(ours)
        out, _ = process.communicate(timeout=DEADLINE)
    return Run(process.returncode, out, ""), shown.decode()


def stop(process: subprocess.Popen[str], how: signal.Signals = signal.SIGINT) -> Run:
    """Send a signal and wait for the end, which nothing else can bring: standard input stays open."""
    process.send_signal(how)
    code = process.wait(timeout=DEADLINE)
    out, err = process.communicate()
    return Run(code, out, without_progress(err))


def wait_for(
    what: Callable[[], Answer], process: subprocess.Popen[str], log: Path | None = None
) -> Answer:
    """The first answer that is not empty, as long as the process, which may keep a log, runs."""
    end = time.monotonic() + DEADLINE
    while not (answer := what()):
        told = log.read_text() if log is not None else ""
        assert process.poll() is None, f"ended too early: {told or process.communicate()}"
        assert time.monotonic() < end, f"did not happen in time: {told}"
        time.sleep(0.005)
    return answer


# What a run leaves


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
