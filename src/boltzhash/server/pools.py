"""Pools of threads that answer requests within a deadline."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.types import Receive

from boltzhash.server.refusals import RefusedError, busy
from boltzhash.server.settings import MAX_COMPUTED, MAX_WAITING, SLOW_READ_SECONDS

Result = TypeVar("Result")

_PATIENCE = 0.05  # seconds after which a call that is still running lets the next one begin


class Pool:
    """Calls one after the other: two that hold Python's lock in turns take longer than in sequence.

    A call that takes long lets the next begin in another of the ``threads``. After ``seconds`` a request
    is refused. If ``waits`` is true, a call that has begun is waited for, by the next calls as well: the
    client must learn how a write ended.
    """

    def __init__(self, threads: int, seconds: float, *, waits: bool = False) -> None:
        self._seconds, self._waits = seconds, waits
        self._executor = ThreadPoolExecutor(threads)
        self._slot = asyncio.Semaphore(1)
        self._n_waiting = 0

    async def run(self, call: Callable[[], Result]) -> Result:
        if self._n_waiting >= MAX_WAITING:
            raise busy(f"{MAX_WAITING} requests are already waiting. Try again")
        self._n_waiting += 1
        try:
            async with asyncio.timeout(self._seconds) as deadline:
                async with self._slot:
                    answer = self.submit(call)
                    if self._waits:
                        deadline.reschedule(None)
                    await asyncio.wait({answer}, timeout=None if self._waits else _PATIENCE)
                return await answer
        except TimeoutError as error:  # not of the call: its own became refusals
            raise busy(
                f"the answer took longer than {self._seconds:g} s. Try again, or ask for less"
            ) from error
        finally:
            self._n_waiting -= 1

    def submit(self, call: Callable[[], Result]) -> asyncio.Future[Result]:
        """Call in a thread in which the log names the request, too."""
        in_context = partial(contextvars.copy_context().run, call)
        return asyncio.get_running_loop().run_in_executor(self._executor, in_context)

    def close(self) -> None:
        """Finish calls that have begun."""
        self._executor.shutdown(wait=True, cancel_futures=True)


class AbandonedError(Exception):
    """No client waits any more for an answer that is being computed."""


class Job:
    """An answer that is being computed, and how many requests wait for it."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[Any]
        self.n_waiting = 0
        self._is_abandoned = threading.Event()

    def abandon(self) -> None:
        """Do not begin it; or, if it has begun, let it end at its next check."""
        self.answer.cancel()
        self._is_abandoned.set()

    def check(self, *_: object) -> None:
        """Raise if no request waits; it takes the arguments of an ``on_batch`` and ignores them."""
        if self._is_abandoned.is_set():
            raise AbandonedError


class SharedPool:
    """One thread for answers that take seconds: computed once for all requests with the same key.

    They are given up when no request waits for them.
    """

    def __init__(self) -> None:
        self._pool = Pool(1, SLOW_READ_SECONDS)
        self._jobs: dict[Hashable, Job] = {}
        self.close = self._pool.close

    async def run(self, request: Request, key: Hashable, call: Callable[[Job], Result]) -> Result:
        """``call`` may use :meth:`Job.check` now and then."""
        job = self._jobs.get(key) or self._begin(key, call)
        job.n_waiting += 1
        hung_up = asyncio.ensure_future(_hung_up(request.receive))
        try:
            await asyncio.wait(
                {job.answer, hung_up},
                timeout=SLOW_READ_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            hung_up.cancel()
            job.n_waiting -= 1
            if not job.n_waiting and not job.answer.done():
                self._jobs.pop(key, None)
                job.abandon()
        if job.answer.done() and not job.answer.cancelled():
            result: Result = job.answer.result()
            return result
        if hung_up.done() and not hung_up.cancelled():
            raise RefusedError(499, "the client hung up before there was an answer")
        raise busy(f"the answer took longer than {SLOW_READ_SECONDS:g} s. Try again")

    def _begin(self, key: Hashable, call: Callable[[Job], object]) -> Job:
        if len(self._jobs) >= MAX_COMPUTED:
            raise busy(f"{MAX_COMPUTED} other answers of this kind are being computed. Try again")
        job = self._jobs[key] = Job()

        def end(answer: asyncio.Future[Any]) -> None:
            if self._jobs.get(key) is job:
                del self._jobs[key]
            if not answer.cancelled():
                answer.exception()  # for those who wait; if there are none, for nobody

        def checked() -> object:
            job.check()
            return call(job)

        job.answer = self._pool.submit(checked)
        job.answer.add_done_callback(end)
        return job


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
