"""How far something is: a bar on a terminal or in a notebook, elsewhere a line every ten seconds.

The lines are messages of Python's ``logging`` under ``boltzhash``. If that logger leaves out what is
only information (``logging.getLogger("boltzhash").setLevel(logging.WARNING)``), there is no bar either.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 10.0

logger = logging.getLogger("boltzhash")


def progress(
    doing: str, unit: str, *, total: int | None = None, done: int = 0, is_shown: bool = True
) -> Any:
    """What shows how far something is, to be used in a ``with`` block: ``update(n)`` counts on.

    Parameters
    ----------
    doing, unit
        What is being done, and what is counted: ``"fitting"``, ``"epochs"``.
    total, done
        How many there are, if that is known, and how many of them are done already.
    is_shown
        If False it counts, and nobody sees it.
    """
    is_shown = is_shown and not is_quiet()
    if not is_shown or is_terminal() or _is_notebook():
        return tqdm(desc=doing, unit=f" {unit}", total=total, initial=done, disable=not is_shown)
    return Lines(doing, unit, total=total, done=done)


def heartbeat(doing: str) -> AbstractContextManager[object]:
    """Says now and then that something is still going on, if nothing else does, and no bar can."""
    if is_quiet() or is_terminal() or _is_notebook():
        return nullcontext()
    return Lines(doing, "")


def counted(
    items: Iterable[Item], doing: str, unit: str, total: int | None = None
) -> Iterator[Item]:
    """The items, counted as they are taken.

    >>> list(counted("abc", "spelling", "letters"))
    ['a', 'b', 'c']
    """
    with progress(doing, unit, total=total) as bar:
        for item in items:
            yield item
            bar.update(1)


def is_quiet() -> bool:
    """Whether somebody asked for no more than warnings."""
    return logger.level > logging.INFO


def is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _is_notebook() -> bool:
    """Whether this is Jupyter, whose standard error is no terminal and yet shows bars."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class Lines:
    """Logs a line every ten seconds, from a thread of its own: also while nothing can be counted."""

    _last_line_at = 0.0  # of all of them: one is enough

    def __init__(
        self,
        doing: str,
        unit: str,
        *,
        total: int | None = None,
        done: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = total
        self.n = done
        self._doing, self._unit, self._clock = doing, unit, clock
        self._first, self._start = done, clock()
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._report, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._has_ended.set()
        self._thread.join()

    def update(self, n: int = 1) -> None:
        self.n += n

    def set_postfix(self, **facts: object) -> None:
        """Only a bar has room for more."""

    def line(self) -> str:
        """How far it is by now, how fast, and how long it will take."""
        seconds = self._clock() - self._start
        parts = []
        if self._unit:
            of = f" of {self.total:,}" if self.total is not None else ""
            parts.append(f"{self.n:,}{of} {self._unit}")
        rate = (self.n - self._first) / max(seconds, 1e-9)
        if rate > 0:
            parts.append(f"{rate:,.0f} a second" if rate >= 1 else f"{_duration(1 / rate)} each")
            if self.total is not None:
                parts.append(f"{_duration(max(0, self.total - self.n) / rate)} left")
        else:
            parts.append(f"{_duration(seconds)} so far")
        return f"{self._doing}: {', '.join(parts)}"

    def _report(self) -> None:
        while not self._has_ended.wait(SECONDS_BETWEEN_LINES):
            if self._clock() - Lines._last_line_at >= 0.9 * SECONDS_BETWEEN_LINES:
                Lines._last_line_at = self._clock()
                logger.info("%s", self.line())


def _duration(seconds: float) -> str:
    """
    >>> _duration(7.4), _duration(200), _duration(7300)
    ('7 s', '3 min 20 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
