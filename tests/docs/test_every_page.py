"""Commands and Python on any page of the documentation: options exist, code is code, imports import.

test_every_block.py says which test runs what.
"""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from doctest import DocTestParser
from importlib import import_module
from pathlib import Path

import pytest

from boltzhash.cli.parser import build_parser
from boltzhash.errors import MissingExtraError

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.M | re.S)
PARSER = build_parser()
SHELL = re.compile(r"[|<>&;]+")


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(kind, text) for _, kind, text in BLOCK.findall(page.read_text(encoding="utf-8"))]


def commands() -> list[tuple[str, str]]:
    """Page and line; what follows in a pipeline is a line of its own."""
    found = []
    for page in PAGES:
        for kind, text in blocks(page):
            if kind not in ("", "sh", "bash", "console"):
                continue
            for line in text.replace("\\\n", " ").splitlines():
                for part in re.split(r" \| ", line):
                    if part.strip().startswith("boltzhash "):
                        found.append((page.relative_to(ROOT).as_posix(), part.strip()))
    return found


def source(text: str) -> str:
    """Of an interactive session only what was typed."""
    if not text.lstrip().startswith(">>>"):
        return text
    return "".join(example.source for example in DocTestParser().get_examples(text))


def snippets() -> list[tuple[str, str]]:
    return [
        (page.relative_to(ROOT).as_posix(), source(text))
        for page in PAGES
        for kind, text in blocks(page)
        if kind == "python"
    ]


@pytest.mark.parametrize(("page", "line"), commands())
def test_commands_have_the_options_that_they_are_shown_with(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    end = next((i for i, word in enumerate(words) if SHELL.fullmatch(word)), len(words))
    try:
        _, rest = PARSER.parse_known_args(words[:end])
    except SystemExit as stopped:
        pytest.fail(f"{page}: {line}: exit {stopped.code}")
    assert not [word for word in rest if word.startswith("-")]


@pytest.mark.parametrize(("page", "code"), snippets())
def test_python_compiles_and_what_it_imports_of_boltzhash_is_there(page: str, code: str) -> None:
    for node in ast.walk(ast.parse(code, page)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "boltzhash":
            try:
                module = import_module(str(node.module))
            except MissingExtraError as error:
                pytest.skip(f"{error}; tests/integrations runs it")
            for alias in node.names:
                assert hasattr(module, alias.name), f"{page}: {node.module}.{alias.name}"


def inline_commands() -> list[tuple[str, str]]:
    """Page and command, of those that stand in a sentence and may leave out what they are given."""
    found = []
    for page in PAGES:
        prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
        for command in re.findall(r"`boltzhash ([a-z][^`]*)`", prose):
            found.append((page.relative_to(ROOT).as_posix(), " ".join(command.split())))
    return found


def test_commands_in_sentences_are_commands_with_options_that_exist() -> None:
    (choices,) = (a.choices for a in PARSER._actions if isinstance(a, argparse._SubParsersAction))
    wrong = []
    for page, command in inline_commands():
        name, *words = command.split()
        options = {word.partition("=")[0] for word in words if re.match(r"--\w", word)}
        if name not in choices or options - choices[name]._option_string_actions.keys():
            wrong.append((page, command))
    assert not wrong
    assert len(inline_commands()) > 20


def test_pages_have_commands_and_python() -> None:
    assert len(commands()) > 70
    assert len(snippets()) > 20
