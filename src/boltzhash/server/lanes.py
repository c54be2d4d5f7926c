"""Threads that work on a collection, each with a connection of its own, and a limit on waiting."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from boltzhash.collection import Collection
from boltzhash.errors import CollectionGoneError, NoSuchCollectionError
from boltzhash.server.refusals import NoCollectionError, as_refusal, busy
from boltzhash.server.settings import MAX_WAITING, WRITE_WAIT

Result = TypeVar("Result")

_SEARCHERS = 2  # threads, of which one works and the other helps out
_PATIENCE = 0.05  # seconds that an answer may take before those behind it get the other thread
_TURN = 0.01  # seconds that a thread works before it is the event loop's turn again
_AT_ONCE = 64  # answers whose texts are coded at once
_SHORT = 1000  # characters of such a text: a longer one is coded when its turn comes


class Lane:
    """Runs work in a few threads; what would wait for longer than ``seconds`` is refused.

    ``on_gone`` is called when the collection turns out to have been deleted or replaced.

    With ``cut_off`` a request is also refused when its work takes longer than that. Without it, work
    that has begun is waited for: the client must learn how a write ended.
    """

    def __init__(
        self,
        location: str,
        threads: int,
        seconds: float,
        on_gone: Callable[[], None],
        *,
        cut_off: bool = True,
    ) -> None:
        self._location = location
        self._on_gone = on_gone
        self._seconds = seconds
        self._cut_off = cut_off
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="lane")
        self._own = threading.local()
        self._opened: list[Collection] = []
        self._waiting = 0

    async def run(self, work: Callable[[Collection], Result]) -> Result:
        """What ``work`` returns for this lane's collection; errors become refusals."""
        return await self._awaited(partial(self._begun, work))

    async def _awaited(self, begin: Callable[[float], asyncio.Future[Result]]) -> Result:
        """What ``begin`` promises; it is told until when the work must have begun."""
        if self._waiting >= MAX_WAITING:
            raise busy(f"{MAX_WAITING} requests are already waiting. Try again")
        deadline = time.monotonic() + self._seconds
        self._waiting += 1
        try:
            return await self._in_time(begin(deadline))
        except TimeoutError as error:  # not of the work: its own became refusals
            raise busy(
                f"the answer took longer than {self._seconds:g} s. Try again, or ask for less"
            ) from error
        finally:
            self._waiting -= 1

    async def _in_time(self, answer: asyncio.Future[Result]) -> Result:
        return await asyncio.wait_for(answer, self._seconds if self._cut_off else None)

    def _begun(
        self, work: Callable[[Collection], Result], deadline: float
    ) -> asyncio.Future[Result]:
        """The answer to come, from a thread in which the log names the request, too."""
        in_context = partial(contextvars.copy_context().run, self._do, work, deadline)
        return asyncio.get_running_loop().run_in_executor(self._executor, in_context)

    def _do(self, work: Callable[[Collection], Result], deadline: float) -> Result:
        if time.monotonic() > deadline:
            raise busy(f"no thread was free for {self._seconds:g} s. Try again")
        try:
            return self._answer_from_what_is_there(work)
        except Exception as error:
            raise as_refusal(error) from error

    def _answer_from_what_is_there(self, work: Callable[[Collection], Result]) -> Result:
        try:
            return self._answer(self._collection(), work)
        except CollectionGoneError as error:
            self._let_go()
            if error.has_written:
                raise
        return self._answer(self._collection(), work)

    def _answer(self, collection: Collection, work: Callable[[Collection], Result]) -> Result:
        return work(collection)

    def _collection(self) -> Collection:
        collection: Collection | None = getattr(self._own, "collection", None)
        if collection is None:
            try:
                collection = Collection.open(self._location, wait=WRITE_WAIT)
            except NoSuchCollectionError as error:
                raise NoCollectionError from error
            self._own.collection = collection
            self._opened.append(collection)
        return collection

    def _let_go(self) -> None:
        """Of a collection that was deleted or replaced, and of all that was worked out about it."""
        gone = self._own.collection
        self._own.collection = None
        self._opened.remove(gone)
        gone.close()
        self._on_gone()

    def close(self) -> None:
        """Finish what has begun, and close the connections."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        for collection in self._opened:
            collection.close()


class ReadLane(Lane):
    """Everything that a piece of work asks of the collection is true of one generation."""

    def _answer(self, collection: Collection, work: Callable[[Collection], Result]) -> Result:
        return collection.in_one_generation(lambda: work(collection))


class WriteLane(Lane):
    """Work that has begun is waited for."""

    def __init__(
        self, location: str, threads: int, seconds: float, on_gone: Callable[[], None]
    ) -> None:
        super().__init__(location, threads, seconds, on_gone, cut_off=False)


class _Asked(NamedTuple):
    """A piece of work, whom to tell, and texts whose codes it will want."""

    work: Callable[[], Any]
    answer: asyncio.Future[Any]
    texts: Sequence[str]


def _expire(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())


class SearchLane(ReadLane):
    """One answer after the other, in one thread that takes turns with the event loop.

    Threads that work at the same time take Python's lock from each other at every call that lets go of
    it, dozens of times in a search: that took as long as half a search. So the loop waits while a
    thread works, though never longer than a turn. A second thread works only while the first is at an
    answer that takes long, so that those behind it need not wait for that. The texts of all that wait
    are coded at once.
    """

    def __init__(self, location: str, seconds: float, on_gone: Callable[[], None]) -> None:
        super().__init__(location, 1, seconds, on_gone)
        # Each a pool of its own, so that the first works as long as it is not stuck: a thread has a
        # connection and codes made ahead.
        helpers = [ThreadPoolExecutor(1, "helper") for _ in range(_SEARCHERS - 1)]
        self._threads = [self._executor, *helpers]
        self._asked: deque[_Asked] = deque()
        self._asked_lock = threading.Lock()
        self._done: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._busy: dict[int, float] = {}  # by thread at work, since when it has been at its answer
        self._watch: asyncio.TimerHandle | None = None
        self._is_going = False  # whether the loop is going to see to it that someone works

    async def run(self, work: Callable[[Collection], Result], texts: Sequence[str] = ()) -> Result:
        """``texts`` are those that ``work`` searches for."""
        return await self._awaited(partial(self._queued, work, texts))

    async def _in_time(self, answer: asyncio.Future[Result]) -> Result:
        """asyncio.wait_for, with less ado."""
        timer = asyncio.get_running_loop().call_later(self._seconds, _expire, answer)
        try:
            return await answer
        finally:
            timer.cancel()

    def _queued(
        self, work: Callable[[Collection], Result], texts: Sequence[str], deadline: float
    ) -> asyncio.Future[Result]:
        loop = asyncio.get_running_loop()
        in_context = partial(contextvars.copy_context().run, self._do, work, deadline)
        asked = _Asked(in_context, loop.create_future(), texts)
        with self._asked_lock:
            self._asked.append(asked)
        if not self._is_going:  # when the loop has read what else has come
            self._is_going = True
            loop.call_soon(self._get_going, loop)
        return asked.answer

    def _get_going(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start a thread if there is something to do and all that work are stuck."""
        self._is_going = False
        now = time.monotonic()
        are_stuck = all(now - since > _PATIENCE for since in self._busy.values())
        if self._asked and are_stuck and len(self._busy) < _SEARCHERS:
            number = next(n for n in range(_SEARCHERS) if n not in self._busy)
            self._busy[number] = now
            is_over = threading.Lock()
            is_over.acquire()
            self._threads[number].submit(self._work, number, loop, is_over)
            is_over.acquire(timeout=_TURN)
        if self._watch is None:
            self._watch = loop.call_later(_PATIENCE, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Now and then while there is work: what is done is told even if the next takes long."""
        self._watch = None
        self._tell()
        if self._busy:
            self._get_going(loop)

    def _work(self, number: int, loop: asyncio.AbstractEventLoop, is_over: threading.Lock) -> None:
        """In a thread, for a turn, or until nothing is left to do."""
        end = time.monotonic() + _TURN
        while (now := time.monotonic()) < end and (asked := self._next()) is not None:
            n_coded = getattr(self._own, "n_coded", 0) - 1
            if n_coded < 0:
                self._own.texts, n_coded = self._texts_with(asked)
            self._own.n_coded = n_coded
            if asked.answer.done():  # nobody waits for it any more
                continue
            self._busy[number] = now
            try:
                self._done.append((asked.answer, asked.work(), None))
            except BaseException as error:  # raised where the answer is awaited
                self._done.append((asked.answer, None, error))
        loop.call_soon_threadsafe(self._end, number, loop)
        is_over.release()

    def _next(self) -> _Asked | None:
        with self._asked_lock:
            return self._asked.popleft() if self._asked else None

    def _texts_with(self, first: _Asked) -> tuple[list[str], int]:
        """Texts to be coded with those of ``first``, and for how many that wait."""
        with self._asked_lock:
            waiting = list(itertools.islice(self._asked, _AT_ONCE - 1))
        every = itertools.chain(first.texts, *(asked.texts for asked in waiting))
        return [text for text in every if len(text) <= _SHORT], len(waiting)

    def _answer(self, collection: Collection, work: Callable[[Collection], Result]) -> Result:
        texts, self._own.texts = self._own.texts, []
        if len(texts) > 1:
            with suppress(Exception):  # whose fault it is gets it when its own text is coded
                collection.code_ahead(texts)
        return super()._answer(collection, work)

    def _end(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        del self._busy[number]
        self._tell()
        if self._asked and not self._is_going:
            self._is_going = True
            loop.call_soon(self._get_going, loop)  # after what was told has been sent

    def _tell(self) -> None:
        while self._done:
            answer, result, error = self._done.popleft()
            if answer.done():  # nobody waits any more
                continue
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)

    def close(self) -> None:
        while (asked := self._next()) is not None:
            asked.answer.cancel()
        for thread in self._threads:
            thread.shutdown(wait=True, cancel_futures=True)
        super().close()
