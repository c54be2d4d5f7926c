"""PostgreSQL for the tests, gone afterwards.

Two runs of the tests on one machine must not meet, and whatever ends a run must leave no server behind.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_ATTEMPTS = 3


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Whoever ends the tests with SIGTERM ends the servers as well, as with Ctrl-C."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Not under pytest's own, which is closed to the user whom root starts PostgreSQL as."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_server(pgserver: Any) -> Iterator[str]:
    """The URL of a PostgreSQL server with pgvector, which listens on a socket in a folder."""
    with temporary_folder("boltzhash-postgres-") as folder:
        server = pgserver.get_server(folder / "data", cleanup_mode="delete", start=False)
        try:
            _start_patiently(server)
            yield server.get_uri()
        finally:
            server.cleanup()


def _start_patiently(server: Any) -> None:
    """It gives itself ten seconds; on a busy machine it is found running when asked again."""
    for attempt in range(_ATTEMPTS):
        try:
            server.start()
            return
        except (subprocess.SubprocessError, AssertionError):
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(5)
