"""What commands print: results for people or machines on standard output, notes on standard error."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from boltzhash.text.tokens import printable

OK, BAD_INPUT, MISSING_EXTRA, TRAINING_FAILED, FILE_ERROR, INTERRUPTED = 0, 2, 3, 4, 5, 130

EXIT_CODES = """\
exit codes:
  0  done
  2  wrong arguments or bad input (the message names the file, line or argument)
  3  an optional dependency is missing (the message says what to install)
  4  training failed: it diverged, or all documents got the same code
  5  a file could not be read or written; what was there before is untouched
  130  interrupted; the same fit, index, add or rehash command resumes where it stopped
"""


def say(message: str) -> None:
    """A note for the person at the terminal."""
    print(f"boltzhash: {printable(message)}", file=sys.stderr)


def report(options: argparse.Namespace, facts: dict[str, Any], text: str) -> int:
    """The result of a command: facts with --json, else a text."""
    print(json.dumps(facts, ensure_ascii=False) if options.json else printable(text))
    return OK
