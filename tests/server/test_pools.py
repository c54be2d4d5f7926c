"""Pools of threads: deadlines, and requests that hold up no others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from boltzhash.server.pools import Pool
from boltzhash.server.refusals import RefusedError

LONG = 120.0  # seconds: for what must happen, however busy the machine is


class Held:
    """A call that begins and then waits until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.go.wait(LONG)
        return "held"

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, LONG)


@asynccontextmanager
async def pool_of(threads: int = 2, seconds: float = LONG) -> AsyncIterator[Pool]:
    pool = Pool(threads, seconds)
    try:
        yield pool
    finally:
        await asyncio.to_thread(pool.close)


def answer() -> int:
    return 91


def test_a_call_that_no_request_waits_for_is_not_begun() -> None:
    begun: list[str] = []

    async def ask() -> None:
        async with pool_of(threads=1) as pool:
            held = Held()
            first = asyncio.ensure_future(pool.run(held))
            await held.has_begun()
            gone = asyncio.ensure_future(pool.run(lambda: begun.append("gone")))
            stays = asyncio.ensure_future(pool.run(lambda: begun.append("stays")))
            await asyncio.sleep(0.2)  # both are queued in the thread
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
            held.go.set()
            await asyncio.gather(first, stays)

    asyncio.run(ask())
    assert begun == ["stays"]


def test_a_call_that_takes_long_holds_nobody_up() -> None:
    async def ask() -> None:
        async with pool_of() as pool:
            slow = Held()
            before = asyncio.ensure_future(pool.run(answer))
            waiting = asyncio.ensure_future(pool.run(slow))
            after = [asyncio.ensure_future(pool.run(answer)) for _ in range(5)]
            assert await before == 91
            assert await asyncio.gather(*after) == [91] * 5
            assert await pool.run(answer) == 91  # one that comes while it is known to be slow
            assert not waiting.done()
            slow.go.set()
            assert await waiting == "held"

    asyncio.run(ask())


def test_calls_that_are_short_run_one_at_a_time() -> None:
    running, most = 0, 0
    lock = threading.Lock()

    def call() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1

    async def ask() -> None:
        async with pool_of(threads=4) as pool:
            await asyncio.gather(*(pool.run(call) for _ in range(100)))

    asyncio.run(ask())
    assert most == 1


def test_a_call_that_takes_too_long_is_refused_and_the_pool_goes_on() -> None:
    async def refused(call: Callable[[], object], pool: Pool) -> None:
        with pytest.raises(RefusedError, match=r"took longer than 0\.5 s") as error:
            await pool.run(call)
        assert error.value.status == 503

    async def ask() -> None:
        async with pool_of(seconds=0.5) as pool:
            slow = [Held(), Held()]  # both threads
            await asyncio.gather(*(refused(call, pool) for call in (*slow, answer)))
            for held in slow:
                held.go.set()
        async with pool_of() as pool:
            assert await pool.run(answer) == 91

    asyncio.run(ask())


def test_closing_ends_calls_that_have_not_begun() -> None:
    async def ask() -> None:
        pool = Pool(1, LONG)
        slow = Held()
        begun = asyncio.ensure_future(pool.run(slow))
        await slow.has_begun()
        waiting = asyncio.ensure_future(pool.run(answer))
        await asyncio.sleep(0.2)  # it is queued in the thread
        closing = asyncio.ensure_future(asyncio.to_thread(pool.close))
        with pytest.raises(asyncio.CancelledError):
            await waiting
        slow.go.set()
        await closing
        assert await begun == "held"

    asyncio.run(ask())
