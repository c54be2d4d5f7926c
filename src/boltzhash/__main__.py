"""``boltzhash``, and ``python -m boltzhash``: Ctrl-C ends either with one line, also while it starts."""

import os
import signal
import sys
from typing import NoReturn


def run() -> int:
    """Run the command line; returns the exit code."""
    usual = signal.getsignal(signal.SIGINT)
    is_heard = usual is signal.default_int_handler  # in the background of a shell it is ignored
    if is_heard:  # an exception in the middle of an import could get lost there
        signal.signal(signal.SIGINT, _leave)
    from boltzhash.cli.parser import main

    if is_heard:
        signal.signal(signal.SIGINT, usual)
    try:
        return main()
    except KeyboardInterrupt:  # a second one, while the first was being dealt with
        _leave()
    finally:
        if is_heard:  # for what Python still has to do
            signal.signal(signal.SIGINT, _leave)


def _leave(*_: object) -> NoReturn:
    os.write(2, b"boltzhash: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(run())
