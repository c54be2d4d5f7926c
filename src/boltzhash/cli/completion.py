"""``boltzhash completion``: commands and options for the Tab key of bash, zsh and fish.

The scripts are made from the parser, so they know what this version knows, and run without Python.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

from boltzhash.cli.reporting import OK


class Option(NamedTuple):
    """An option as it is typed, what it does, and what it takes: nothing, one of some words, or more."""

    spellings: list[str]
    help: str
    takes: bool
    choices: list[str]


class Command(NamedTuple):
    """A command with its options; what else it takes are files, as far as anybody can tell."""

    name: str
    help: str
    options: list[Option]
    choices: list[str]  # of what is no option


def add_parsers(subparsers: Any) -> None:
    """Hook the command into the command line."""
    parser = subparsers.add_parser(
        "completion",
        help="complete commands and options with the Tab key",
        description="Print what makes a shell complete commands and options. For bash, in ~/.bashrc: "
        'eval "$(boltzhash completion bash)". For zsh, in ~/.zshrc after compinit: eval "$(boltzhash '
        'completion zsh)". For fish: boltzhash completion fish > '
        "~/.config/fish/completions/boltzhash.fish",
    )
    parser.add_argument("shell", choices=list(SCRIPTS), help="whose Tab key")
    parser.set_defaults(run=completion, subparsers=subparsers)


def completion(options: argparse.Namespace) -> int:
    print(SCRIPTS[options.shell](commands_of(options.subparsers)))
    return OK


def commands_of(subparsers: Any) -> list[Command]:
    """What there is to complete, as the parser has it."""
    helps = {action.dest: action.help or "" for action in subparsers._choices_actions}
    return [
        Command(
            name,
            helps[name],
            [_option(action) for action in parser._actions if action.option_strings],
            [
                str(choice)
                for action in parser._actions
                if not action.option_strings
                for choice in action.choices or ()
            ],
        )
        for name, parser in subparsers.choices.items()
    ]


def _option(action: argparse.Action) -> Option:
    return Option(
        list(action.option_strings),
        action.help or "",
        action.nargs != 0,
        [str(choice) for choice in action.choices or ()],
    )


def bash(commands: list[Command]) -> str:
    """A function that bash asks; where it has no answer, bash completes files."""
    names = shlex.quote(" ".join(command.name for command in commands))
    cases = []
    for command in commands:
        typed = [spelling for option in command.options for spelling in option.spellings]
        cases.append(f"    {command.name}) options={shlex.quote(' '.join(typed))} ;;")
        if command.choices:
            cases[-1] = cases[-1][:-3] + f" choices={shlex.quote(' '.join(command.choices))} ;;"
    values = [
        f"    {'|'.join(f'{command.name}:{s}' for s in option.spellings)}) "
        f"choices={shlex.quote(' '.join(option.choices))} ;;"
        for command in commands
        for option in command.options
        if option.choices
    ]
    return "\n".join(
        [
            "_boltzhash() {",
            '  local current="${COMP_WORDS[COMP_CWORD]}" options="" choices=""',
            "  COMPREPLY=()",
            '  if [ "$COMP_CWORD" -eq 1 ]; then',
            f'    COMPREPLY=($(compgen -W {names} -- "$current"))',
            "    return",
            "  fi",
            '  case "${COMP_WORDS[1]}" in',
            *cases,
            "  esac",
            '  case "${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD-1]}" in',
            *values,
            "  esac",
            '  case "$current" in',
            '    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;',
            '    *) COMPREPLY=($(compgen -W "$choices" -- "$current")) ;;',
            "  esac",
            "}",
            "complete -o default -F _boltzhash boltzhash",
        ]
    )


def zsh(commands: list[Command]) -> str:
    """A function for compdef; may also lie in a file _boltzhash on $fpath."""
    described = " ".join(shlex.quote(f"{c.name}:{_line(c.help)}") for c in commands)
    cases = []
    for command in commands:
        words = f":value:({' '.join(command.choices)})" if command.choices else ":file:_files"
        specs = [f"*{words}"]
        for option in command.options:
            others = f"({' '.join(option.spellings)})" if len(option.spellings) > 1 else ""
            takes = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
            specs += [
                f"{others}{spelling}[{_in_brackets(option.help)}]{takes if option.takes else ''}"
                for spelling in option.spellings
            ]
        quoted = " \\\n        ".join(map(shlex.quote, specs))
        cases.append(f"    {command.name})\n      _arguments -s {quoted} ;;")
    return "\n".join(
        [
            "#compdef boltzhash",
            "_boltzhash() {",
            f"  local -a commands=({described})",
            "  if (( CURRENT == 2 )); then",
            "    _describe command commands",
            "    return",
            "  fi",
            "  local name=$words[2]",
            "  shift words",
            "  (( CURRENT-- ))",
            "  case $name in",
            *cases,
            "  esac",
            "}",
            'if [ "$funcstack[1]" = _boltzhash ]; then',
            '  _boltzhash "$@"',
            "else",
            "  compdef _boltzhash boltzhash",
            "fi",
        ]
    )


def fish(commands: list[Command]) -> str:
    """A line for each command and option."""
    lines = ["complete -c boltzhash -n __fish_use_subcommand -f"]
    for command in commands:
        lines.append(
            f"complete -c boltzhash -n __fish_use_subcommand -a {command.name} "
            f"-d {_fish_quoted(_line(command.help))}"
        )
        seen = f"complete -c boltzhash -n '__fish_seen_subcommand_from {command.name}'"
        if command.choices:
            lines.append(f"{seen} -f -a {_fish_quoted(' '.join(command.choices))}")
        for option in command.options:
            names = " ".join(_fish_name(spelling) for spelling in option.spellings)
            takes = "-r" if option.takes else ""
            if option.choices:
                takes = f"-x -a {_fish_quoted(' '.join(option.choices))}"
            parts = [seen, names, takes, f"-d {_fish_quoted(_line(option.help))}"]
            lines.append(" ".join(filter(None, parts)))
    return "\n".join(lines)


def _line(text: str) -> str:
    """The first part of a help text, without argparse's percent signs.

    >>> _line("such as 4GB: learn words")
    'such as 4GB'
    """
    return re.split(r"[:;]\s", " ".join(text.split()))[0].replace("%%", "%")


def _in_brackets(text: str) -> str:
    return re.sub(r"([\[\]:\\])", r"\\\1", _line(text))


def _fish_name(spelling: str) -> str:
    return f"-l {spelling[2:]}" if spelling.startswith("--") else f"-s {spelling[1:]}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: dict[str, Callable[[list[Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
