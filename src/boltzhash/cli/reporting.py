"""What commands print: results for people or machines on standard output, notes on standard error."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from boltzhash.text.tokens import printable

OK, SOMETHING_TO_DO, BAD_INPUT, MISSING_EXTRA, TRAINING_FAILED = 0, 1, 2, 3, 4
FILE_ERROR, INTERRUPTED = 5, 130

EXIT_CODES = """\
exit codes:
  0  done
  1  doctor found something to do
  2  wrong arguments or bad input (the message names the file, line or argument)
  3  an optional dependency is missing (the message says what to install)
  4  training failed: it diverged, or all documents got the same code
  5  a file could not be read or written; what was there before is untouched
  130  interrupted; the same fit, index, add or rehash command resumes where it stopped
"""


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    """How much a command says; may stand before or after its name."""
    how_much = parser.add_mutually_exclusive_group()
    how_much.add_argument(
        *("-q", "--quiet"),
        action="store_const",
        dest="level",
        const=logging.WARNING,
        default=argparse.SUPPRESS,
        help="say nothing but results, warnings and errors",
    )
    how_much.add_argument(
        *("-v", "--verbose"),
        action="store_const",
        dest="level",
        const=logging.DEBUG,
        default=argparse.SUPPRESS,
        help="say more about what is being done",
    )


def show_notes(level: int) -> None:
    """Show what the library logs under ``boltzhash`` as our own messages."""
    logger = logging.getLogger("boltzhash")
    logger.setLevel(level)
    logger.handlers = [_Notes()]


class _Notes(logging.Handler):
    """On the standard error of the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        print(f"boltzhash: {printable(record.getMessage())}", file=sys.stderr)


NOTHING_KEPT = "nothing was kept"
RESUMES = "the same command resumes where it stopped"


@contextmanager
def interruption_says(what: Callable[[], str]) -> Iterator[None]:
    """Let Ctrl-C say what is kept of the work in this block."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        if interruption.args:  # said by a block inside this one
            raise
        raise KeyboardInterrupt(what()) from None


def say(message: str) -> None:
    """A note for the person at the terminal, who may have asked for --quiet."""
    logging.getLogger("boltzhash").info("%s", message)


def report(options: argparse.Namespace, facts: dict[str, Any], text: str) -> int:
    """The result of a command: facts with --json, else a text."""
    print(json.dumps(facts, ensure_ascii=False) if options.json else printable(text))
    return OK
