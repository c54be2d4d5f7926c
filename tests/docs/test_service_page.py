"""The examples of docs/service.md are run, in order, and their answers compared with those printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from boltzhash.server.refusals import CODES

PAGE = Path(__file__).parents[2] / "docs" / "service.md"


def fits(printed: Any, came: Any) -> bool:
    """Whether an answer is the printed one; "…" stands for any value, "…*" for any more of a list."""
    if printed == "…":
        return True
    if isinstance(printed, dict):
        return (
            isinstance(came, dict)
            and printed.keys() == came.keys()
            and all(fits(printed[name], came[name]) for name in printed)
        )
    if isinstance(printed, list):
        if printed and printed[-1] == "…*":
            printed, came = printed[:-1], came[: len(printed) - 1]
        return len(printed) == len(came) and all(map(fits, printed, came))
    return bool(printed == came)


def test_every_example_answers_as_printed(serve: Callable[..., Any], tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("the examples use curl")
    blocks = re.findall(r"^```(sh|json)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    make, start, *examples = blocks
    environment = {**os.environ, "PATH": f"{_commands(tmp_path)}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-ec", make[1]], cwd=tmp_path, env=environment, check=True)
    assert "boltzhash serve library" in start[1]
    n_compared = 0
    with serve(tmp_path / "library", key="secret") as service:
        for (kind, command), (next_kind, printed) in pairwise(examples):
            if (kind, next_kind) != ("sh", "json"):
                continue
            assert "http://localhost:8000" in command
            here = command.replace("http://localhost:8000", service.address)
            done = subprocess.run(["bash", "-c", here], capture_output=True, text=True, check=True)
            assert fits(json.loads(printed), json.loads(done.stdout)), (command, done.stdout)
            n_compared += 1
    assert n_compared == sum(kind == "sh" for kind, _ in examples) > 10


def _commands(folder: Path) -> Path:
    """A folder with `boltzhash` as this Python has it."""
    command = folder / "bin" / "boltzhash"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m boltzhash "$@"\n')
    command.chmod(0o755)
    return command.parent


def test_all_codes_of_errors_are_named() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (listed,) = re.findall(r"`code` is for programs: (.*?)\. Every", text, re.DOTALL)
    nobody_reads = {"hung_up"}
    assert set(re.findall("`(.+?)`", listed)) == set(CODES) - nobody_reads
