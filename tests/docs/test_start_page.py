"""The commands of docs/start.md are run: they print what the page says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from command_line import environment

from .pages import read_blocks

BLOCKS = read_blocks("docs/start.md")


def test_commands_and_python_print_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "boltzhash"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m boltzhash "$@"\n')
    command.chmod(0o755)
    env = environment(PATH=f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    shown, ran = "", []
    for kind, block in BLOCKS:
        if kind in ("sh", "python"):
            how = ["sh", "-ec"] if kind == "sh" else [sys.executable, "-c"]
            done = subprocess.run(
                [*how, block], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            shown = done.stdout
            ran.append(kind)
        elif kind == "text":  # what index says, which has seconds in it, comes before
            assert shown.endswith(block)
    assert ran == ["sh", "python"]


def test_the_other_commands_are_those_of_the_installation() -> None:
    """What needs a network or does not end: benchmarks/installing.py, the service's tests."""
    others = [block.splitlines() for kind, block in BLOCKS if kind == ""]
    assert others == [
        ["pip install boltzhash", "boltzhash demo"],
        ["pip install 'boltzhash[serve]'", "boltzhash serve boltzhash-demo"],
    ]
