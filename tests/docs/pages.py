"""The blocks of a page: its commands run in this process, its Python in one of its own."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from command_line import run

ROOT = Path(__file__).parents[2]


def blocks_of(text: str) -> list[tuple[str, str]]:
    """Kind and text of each fenced block."""
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)


def read_blocks(page: str) -> list[tuple[str, str]]:
    return blocks_of((ROOT / page).read_text(encoding="utf-8"))


def run_python(script: str, folder: Path) -> str:
    """Return what the script prints in an empty folder."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def run_commands(*lines: str) -> str:
    """Run each command line in the current folder, which may not fail; return what they print."""
    printed = ""
    for line in lines:
        program, *arguments = shlex.split(line, comments=True)
        assert program == "boltzhash"
        done = run(*arguments)
        assert done.code == 0, (line, done.err)
        printed += done.out + done.err
    return printed
