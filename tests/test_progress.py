"""How far something is: bars where they can be seen, lines elsewhere, nothing if nobody wants it."""

from __future__ import annotations

import io
import logging
import sys
import threading
from types import SimpleNamespace

import pytest

from boltzhash import progress as progress_module
from boltzhash.progress import Lines, counted, heartbeat, progress


class Clock:
    """A time that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def logger() -> logging.Logger:
    return logging.getLogger("boltzhash")


@pytest.mark.parametrize(
    ("unit", "total", "first", "done", "seconds", "expected"),
    [
        ("documents", 10_000, 0, 5000, 10, "5,000 of 10,000 documents, 500 a second, 10 s left"),
        ("documents", None, 0, 5000, 10, "5,000 documents, 500 a second"),
        ("documents", 10_000, 0, 0, 20, "0 of 10,000 documents, 20 s so far"),
        ("epochs", 25, 0, 2, 60, "2 of 25 epochs, 30 s each, 11 min 30 s left"),
        ("epochs", 25, 10, 12, 60, "12 of 25 epochs, 30 s each, 6 min 30 s left"),
        ("epochs", 2, 0, 3, 3, "3 of 2 epochs, 1 a second, 0 s left"),
        ("", None, 0, 0, 80, "1 min 20 s so far"),
    ],
)
def test_a_line_has_rate_and_time_left(
    unit: str, total: int | None, first: int, done: int, seconds: float, expected: str
) -> None:
    clock = Clock()
    lines = Lines("working", unit, total=total, done=first, clock=clock)
    lines.update(done - first)
    clock.now += seconds
    assert lines.line() == f"working: {expected}"


class Told(logging.Handler):
    """Keeps what is logged, and tells when something is."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self.came.set()


def test_lines_come_also_while_nothing_can_be_counted(
    logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "SECONDS_BETWEEN_LINES", 0.001)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    logger.setLevel(logging.INFO)
    told = Told()
    logger.addHandler(told)
    try:
        with progress("fitting", "epochs", total=3):
            assert told.came.wait(60)
        n = len(told.lines)
        assert told.lines[0].startswith("fitting: 0 of 3 epochs, ")
        told.came.clear()
        with heartbeat("waiting"):
            assert told.came.wait(60)
        assert told.lines[n].startswith("waiting: ")
    finally:
        logger.removeHandler(told)


def shown(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> str:
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    assert list(counted("abc", "spelling", "letters")) == ["a", "b", "c"]
    return stderr.getvalue()


def test_a_bar_on_a_terminal_and_none_elsewhere(
    monkeypatch: pytest.MonkeyPatch, logger: logging.Logger
) -> None:
    logger.setLevel(logging.NOTSET)
    assert "spelling: 3 letters" in shown(monkeypatch, is_terminal=True)
    assert shown(monkeypatch, is_terminal=False) == ""
    logger.setLevel(logging.WARNING)
    assert shown(monkeypatch, is_terminal=True) == ""


def test_a_bar_in_a_notebook(monkeypatch: pytest.MonkeyPatch, logger: logging.Logger) -> None:
    logger.setLevel(logging.NOTSET)
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert "spelling: 3 letters" in shown(monkeypatch, is_terminal=False)
