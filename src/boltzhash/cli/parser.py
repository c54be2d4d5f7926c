"""The ``boltzhash`` command: its commands, and errors as exit codes.

Results go to standard output, everything else (progress, notes, errors) to standard error.
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys

from boltzhash.cli import (
    collections,
    completion,
    demo,
    doctor,
    encoding,
    evaluating,
    fitting,
    indexing,
    installed,
    searching,
    serving,
    sharing,
)
from boltzhash.cli.reporting import (
    BAD_INPUT,
    EXIT_CODES,
    FILE_ERROR,
    INTERRUPTED,
    MISSING_EXTRA,
    OK,
    TRAINING_FAILED,
    add_verbosity,
    show_notes,
)
from boltzhash.errors import MissingExtraError, TrainingError
from boltzhash.text.tokens import printable
from boltzhash.version import __version__

GROUPS = (  # as --help lists them: what most people want comes first
    *(demo, indexing, collections, searching, serving, evaluating, doctor),
    *(fitting, sharing, encoding, installed, completion),
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = build_parser()
    options, rest = parser.parse_known_args(arguments)
    if rest:
        if not hasattr(options, "queries") or any(r.startswith("-") for r in rest):
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        options.queries = [*options.queries, *rest]
    show_notes(getattr(options, "level", logging.INFO))
    try:
        code: int = options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()  # a closed pipe shows here, not when Python exits
        return code
    except KeyboardInterrupt as interruption:
        _tell(": ".join(["interrupted", *map(str, interruption.args)]))
        return INTERRUPTED
    except MissingExtraError as error:
        return _fail(error, MISSING_EXTRA)
    except TrainingError as error:
        return _fail(error, TRAINING_FAILED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK  # whoever read our output has seen enough
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        if error.filename is None and is_full:  # files have their names: it is standard output
            error = OSError(error.errno, error.strerror, "standard output")
        return _fail(error, FILE_ERROR)
    except (ValueError, TypeError) as error:
        return _fail(error, BAD_INPUT)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="boltzhash",
        description="Find documents by what they say and what they are about: index a corpus, then "
        "search it.\nCodes of a few bytes are learned from the texts themselves.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"boltzhash {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    add_verbosity(parser)
    for group in GROUPS:
        group.add_parsers(subparsers)
    for command in subparsers.choices.values():
        add_verbosity(command)
    parser.set_defaults(parser=parser)  # what completion completes
    return parser


def _fail(error: Exception, code: int) -> int:
    _tell(f"error: {error}")
    return code


def _tell(message: str) -> None:
    """How a command ended, however quiet it was asked to be."""
    print(f"boltzhash: {printable(message)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
