"""Threads that work on a collection, each with a connection of its own, and a limit on waiting."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from boltzhash.collection.sqlite.database import DATABASE
from boltzhash.server.reader import Reader
from boltzhash.server.refusals import NoCollectionError, as_refusal, busy
from boltzhash.server.settings import MAX_WAITING, WRITE_WAIT

Result = TypeVar("Result")


class Lane:
    """Runs work in a few threads; what would wait for longer than ``seconds`` is refused.

    With ``cut_off`` a request is also answered when its work takes longer than that. Without, work
    that has begun is waited for: of a write the client must learn how it ended.
    """

    def __init__(self, folder: Path, threads: int, seconds: float, *, cut_off: bool = True) -> None:
        self._folder = folder
        self._seconds = seconds
        self._cut_off = cut_off
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="lane")
        self._own = threading.local()
        self._opened: list[Reader] = []
        self._waiting = 0

    async def run(self, work: Callable[[Reader], Result]) -> Result:
        """What ``work`` gives of this lane's collection; errors come as refusals."""
        if self._waiting >= MAX_WAITING:
            raise busy(f"{MAX_WAITING} requests are waiting already. Try again")
        deadline = time.monotonic() + self._seconds
        self._waiting += 1
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._executor, self._do, work, deadline)
        try:
            return await asyncio.wait_for(future, self._seconds if self._cut_off else None)
        except TimeoutError as error:  # of wait_for: those of the work came as refusals
            raise busy(
                f"the answer took longer than {self._seconds:g} s. Try again, or ask for less"
            ) from error
        finally:
            self._waiting -= 1

    def _do(self, work: Callable[[Reader], Result], deadline: float) -> Result:
        if time.monotonic() > deadline:
            raise busy(f"no thread was free for {self._seconds:g} s. Try again")
        try:
            return work(self._collection())
        except Exception as error:
            raise as_refusal(error) from error

    def _collection(self) -> Reader:
        reader: Reader | None = getattr(self._own, "reader", None)
        if reader is None:
            if not (self._folder / DATABASE).is_file():
                raise NoCollectionError
            reader = Reader.open(self._folder, wait=WRITE_WAIT)
            self._own.reader = reader
            self._opened.append(reader)
        return reader

    def close(self) -> None:
        """Finish what has begun, and close the connections."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        for reader in self._opened:
            reader.close()
