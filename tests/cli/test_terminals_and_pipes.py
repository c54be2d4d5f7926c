"""Where output goes: terminals, pipes that nobody reads, files that are full or closed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from command_line import DEADLINE, Fitted, Made, Run, contents, run_apart, run_on_terminal, start


def test_in_a_pipe_there_is_no_progress_bar(fitted_apart: tuple[Run, Path]) -> None:
    result, model = fitted_apart
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"wrote {model}: SemanticHasher, 16 bits")


def test_on_a_terminal_there_is_a_progress_bar(fitted: Fitted, tmp_path: Path) -> None:
    codes = tmp_path / "codes"
    done, shown = run_on_terminal("encode", fitted.model, fitted.corpus, "-o", codes)
    assert "encoding: " in shown
    assert "60 documents" in shown
    assert (done.code, done.out) == (0, f"wrote {codes}: 60 codes of 16 bits\n")


@pytest.mark.parametrize("lines_read", [0, 1])
def test_a_reader_that_has_seen_enough(fitted: Fitted, tmp_path: Path, lines_read: int) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("ship sail\n" * 2000)  # the answers are larger than the buffer of a pipe
    with (
        queries.open() as stdin,
        start("search", fitted.model, fitted.codes, stdin=stdin) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(lines_read):
            assert process.stdout.readline() == "ship sail\n"
        process.stdout.close()
        err = process.stderr.read()
        code = process.wait(timeout=DEADLINE)
    assert (code, err) == (0, "")


def test_a_short_answer_that_nobody_reads(fitted: Fitted) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert run_apart("explain", fitted.model, stdout=writing) == Run(0, "", "")
    finally:
        os.close(writing)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_an_answer_that_cannot_be_written(fitted: Fitted) -> None:
    with Path("/dev/full").open("w") as full:
        result = run_apart("explain", fitted.model, stdout=full)
    assert result == Run(
        5, "", "boltzhash: error: [Errno 28] No space left on device: 'standard output'\n"
    )


CLOSED_STREAMS = """
import sys
from boltzhash.cli.parser import main

sys.stdin = sys.stdout = None  # what Python makes of streams that are closed when it starts
sys.exit(main(sys.argv[1:]))
"""


def test_without_standard_output_there_is_no_traceback(fitted: Fitted, tmp_path: Path) -> None:
    arguments = ("encode", fitted.model, fitted.corpus, "-o", tmp_path / "codes")
    result = run_apart(*arguments, program=CLOSED_STREAMS)
    assert (result.code, result.err) == (0, "")
    assert contents(tmp_path / "codes") == contents(fitted.codes)


def test_nothing_is_coloured(made: Made) -> None:
    """So that NO_COLOR has nothing to turn off; the help is Python's own, and heeds it."""
    for arguments in (
        ("search", made.collection, "moon orbit"),
        ("explain", made.collection, "--nonsense"),
    ):
        done, shown = run_on_terminal(*arguments)
        assert "\x1b" not in done.out + done.err + shown
