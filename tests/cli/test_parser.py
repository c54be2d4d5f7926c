"""The command line itself: its help, and what it makes of arguments that are none."""

import argparse
import re

import pytest

import boltzhash
from boltzhash.cli.parser import build_parser
from command_line import Fitted, Run, misused, run_apart, succeed


def commands() -> dict[str, argparse.ArgumentParser]:
    (choices,) = (
        action.choices
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return dict(choices)


@pytest.mark.parametrize(
    "command", ["fit", "encode", "index", "search", "explain", "evaluate", "demo"]
)
def test_every_option_of_a_command_has_a_help_text(command: str) -> None:
    parser = commands()[command]
    helps = {action.dest: action.help for action in parser._actions}
    assert len(helps) > 1
    assert [name for name, text in helps.items() if not text] == []
    shown = "".join(succeed(command, "--help").split())
    for text in helps.values():
        assert "".join(str(text).split()) in shown


@pytest.mark.parametrize("command", ["fit", "encode", "search", "explain", "evaluate"])
def test_defaults_in_the_help_are_the_defaults(command: str) -> None:
    defaults, named = {}, {}
    for action in commands()[command]._actions:
        in_brackets = re.search(r"\(([^()]*)\)$", action.help or "")
        if in_brackets and action.default is not None:
            defaults[action.dest] = str(action.default)
            named[action.dest] = in_brackets[1]
    assert named == defaults
    assert named


def test_help_lists_commands_and_exit_codes() -> None:
    shown = succeed("--help")
    for command in commands():
        assert re.search(rf"^    {command}\s+\w", shown, re.MULTILINE)
    codes = re.findall(r"^  (\d+)  \S", shown.partition("exit codes:\n")[2], re.MULTILINE)
    assert codes == ["0", "1", "2", "3", "4", "5", "130"]


def test_version() -> None:
    assert succeed("--version") == f"boltzhash {boltzhash.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["unheard"],
        ["fit", "corpus.jsonl", "-o", "model", "--bits", "many"],
        ["fit", "corpus.jsonl", "-o", "model", "--unheard"],
        ["search", "model"],
        ["index"],
    ],
    ids=" ".join,
)
def test_a_command_line_that_is_none(arguments: list[str]) -> None:
    assert misused(*arguments)


def test_the_command_as_a_process_of_its_own(fitted: Fitted) -> None:
    arguments = ("search", fitted.model, fitted.codes, "--json")
    result = run_apart(*arguments, input="ship sail\n\nsoup\n")
    assert result == Run(0, succeed(*arguments, stdin="ship sail\n\nsoup\n"), "")
    result = run_apart("search", fitted.corpus, fitted.codes, "ship")
    assert (result.code, result.out) == (2, "")
    assert "Traceback" not in result.err
