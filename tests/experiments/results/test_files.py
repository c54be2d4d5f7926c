"""Result files: the same bytes whoever writes and in whatever order, and nothing lost on the way."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.results import files

from ..conftest import ROOT

WRITER = """
import sys
from experiments.results.files import write
for number in sys.argv[1:]:
    write("sweep", {"run": f"run-{int(number):03}", "value": int(number), "curve": [0.5] * 2000})
    print(number, flush=True)
"""
Writer = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def writer(results_folder: Path) -> Writer:
    """Start a process that writes runs of these numbers one by one and says each when it is written."""
    results_folder.mkdir()

    def start(numbers: list[int]) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WRITER, *map(str, numbers)]
        environment = {**os.environ, "RESULTS": str(results_folder)}
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
        )

    return start


def some_results(numbers: range) -> list[dict[str, Any]]:
    return [{"run": f"run-{n:03}", "value": n, "curve": [0.5] * 2000} for n in numbers]


def test_the_order_of_writing_and_of_keys_does_not_matter(results_folder: Path) -> None:
    path = results_folder / "sweep.jsonl"
    results = some_results(range(20))
    files.write("sweep", *results)
    whole = path.read_bytes()
    assert list(results_folder.iterdir()) == [path]  # nothing half-written beside it
    path.unlink()
    for result in random.Random(0).sample(results, 20):
        files.write("sweep", dict(reversed(result.items())))
    assert path.read_bytes() == whole
    files.write("sweep", results[7])  # once more
    assert path.read_bytes() == whole
    assert files.read_all("sweep") == [{"format": files.FORMAT, **result} for result in results]


def test_a_run_that_is_written_again_takes_the_place_of_the_old(results_folder: Path) -> None:
    files.write("sweep", *some_results(range(3)))
    files.write("sweep", {"run": "run-001", "value": 100})
    assert [result["value"] for result in files.read_all("sweep")] == [0, 100, 2]
    files.write("other", {"run": "run-001", "value": 5})
    assert [r["value"] for r in files.read_all("other", "never run", "sweep")] == [5, 0, 100, 2]


def test_processes_that_write_at_once_lose_nothing(writer: Writer, results_folder: Path) -> None:
    numbers = random.Random(0).sample(range(60), 60)
    started = [writer(numbers[place::3]) for place in range(3)]
    for process in started:
        process.communicate()
        assert process.returncode == 0
    together = (results_folder / "sweep.jsonl").read_bytes()
    files.write("alone", *some_results(range(60)))
    assert together == (results_folder / "alone.jsonl").read_bytes()


def test_a_killed_process_loses_only_what_it_was_writing(
    writer: Writer, results_folder: Path
) -> None:
    said: set[int] = set()
    for attempt in range(5):
        with writer([n for n in range(400) if n not in said]) as process:
            assert process.stdout is not None
            said.add(int(process.stdout.readline()))  # it is writing now
            time.sleep(0.02 * attempt)
            process.kill()
            said |= {int(number) for number in process.stdout.read().split()}
        written = {result["value"] for result in files.read_all("sweep")}
        assert said <= written
        assert len(written - said) <= 1  # written, and killed before it was said
    assert len(said) < 400


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (json.dumps({"run": "b", "format": 1}), "format 1, this code reads"),
        (json.dumps({"run": "b"}), "format None"),
        ("[1]", "format None"),
        ('{"format":', "cannot be read as a result"),
        ("<<<<<<< ours", "cannot be read as a result"),
        (json.dumps({"format": files.FORMAT}), "does not say which run it is of"),
        (json.dumps({"format": files.FORMAT, "run": "a"}), "is a second result of a"),
    ],
)
def test_lines_that_are_not_understood_are_refused_and_kept(
    results_folder: Path, line: str, message: str
) -> None:
    files.write("sweep", {"run": "a"})
    path = results_folder / "sweep.jsonl"
    text = path.read_text() + line
    path.write_text(text)
    for use in (lambda: files.read_all("sweep"), lambda: files.write("sweep", {"run": "c"})):
        with pytest.raises(SystemExit, match=rf"line 2 of .*sweep.jsonl .*{message}"):
            use()
        assert path.read_text() == text
        assert list(results_folder.iterdir()) == [path]


def test_results_of_another_machine_are_taken_over(results_folder: Path, tmp_path: Path) -> None:
    files.write("sweep", {"run": "a", "value": 1})
    theirs = tmp_path / "theirs" / "sweep.jsonl"
    theirs.parent.mkdir()
    theirs.write_text(json.dumps({"format": files.FORMAT, "run": "b", "value": 2}) + "\n")
    command = [sys.executable, "-m", "experiments.results", str(theirs)]
    environment = {**os.environ, "RESULTS": str(results_folder)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout == "sweep: 1 results taken over\n"
    assert [result["value"] for result in files.read_all("sweep")] == [1, 2]
    theirs.unlink()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "sweep.jsonl cannot be read: " in done.stderr
