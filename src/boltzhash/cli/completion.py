"""``boltzhash completion``: commands and options for the Tab key, in scripts that shtab makes."""

from __future__ import annotations

import argparse
from typing import Any

from boltzhash.cli.reporting import OK


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
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], help="whose Tab key")
    parser.set_defaults(run=completion, subparsers=subparsers)


def completion(options: argparse.Namespace) -> int:
    import shtab

    for command in options.subparsers.choices.values():
        for argument in command._actions:
            if argument.choices is None and argument.nargs != 0:
                argument.complete = shtab.FILE  # as far as anybody can tell
    print(shtab.complete(options.parser, options.shell))
    return OK
