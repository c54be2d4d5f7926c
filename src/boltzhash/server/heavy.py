"""Answers that take seconds: worked out once for all who ask, and given up when nobody waits."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.types import Receive

from boltzhash.collection import Collection
from boltzhash.server.lanes import ReadLane
from boltzhash.server.refusals import RefusedError, busy
from boltzhash.server.settings import MAX_HEAVY, SLOW_READ_SECONDS


class AbandonedError(Exception):
    """Nobody waits any more for what is being worked out."""


class Job:
    """A piece of work and how many wait for it."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[Any]
        self.n_waiting = 0
        self._is_abandoned = threading.Event()

    def abandon(self) -> None:
        """Do not begin it; or, if it has begun, let it end when it next asks."""
        self.answer.cancel()
        self._is_abandoned.set()

    def check(self, *_: object) -> None:
        """Raise if nobody waits. It takes what an ``on_batch`` is told, and does not need it."""
        if self._is_abandoned.is_set():
            raise AbandonedError


class HeavyLane(ReadLane):
    """One thread, for a few pieces of work at a time; more are refused."""

    def __init__(self, location: str, on_gone: Callable[[], None]) -> None:
        super().__init__(location, 1, SLOW_READ_SECONDS, on_gone)
        self._jobs: dict[Hashable, Job] = {}

    async def shared(
        self, request: Request, key: Hashable, work: Callable[[Collection, Job], Any]
    ) -> Any:
        """What ``work`` returns; who asks for the same ``key`` meanwhile gets the same answer.

        ``work`` may call :meth:`Job.check` now and then.
        """
        job = self._jobs.get(key) or self._begin(key, work)
        job.n_waiting += 1
        hung_up = asyncio.ensure_future(_hung_up(request.receive))
        try:
            await asyncio.wait(
                {job.answer, hung_up}, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            hung_up.cancel()
            job.n_waiting -= 1
            if not job.n_waiting and not job.answer.done():
                self._jobs.pop(key, None)
                job.abandon()
        if job.answer.done() and not job.answer.cancelled():
            return job.answer.result()
        if hung_up.done() and not hung_up.cancelled():
            raise RefusedError(499, "the client hung up before there was an answer")
        raise busy(f"the answer took longer than {self._seconds:g} s. Try again")

    def _begin(self, key: Hashable, work: Callable[[Collection, Job], Any]) -> Job:
        if len(self._jobs) >= MAX_HEAVY:
            raise busy(f"{MAX_HEAVY} other answers of this kind are being worked out. Try again")
        job = self._jobs[key] = Job()
        job.answer = self._begun(partial(_work_on, job, work), math.inf)
        job.answer.add_done_callback(partial(self._end, key, job))
        return job

    def _end(self, key: Hashable, job: Job, answer: asyncio.Future[Any]) -> None:
        if self._jobs.get(key) is job:
            del self._jobs[key]
        if not answer.cancelled():
            answer.exception()  # it is told to those who wait; if there are none, to nobody


def _work_on(job: Job, work: Callable[[Collection, Job], Any], collection: Collection) -> Any:
    job.check()
    return work(collection, job)


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
