"""Threads that work on a collection, each with a connection of its own, and a limit on waiting."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from boltzhash.collection import Collection
from boltzhash.errors import CollectionGoneError, NoSuchCollectionError
from boltzhash.server.refusals import NoCollectionError, as_refusal, busy
from boltzhash.server.settings import MAX_WAITING, WRITE_WAIT

Result = TypeVar("Result")


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
        if self._waiting >= MAX_WAITING:
            raise busy(f"{MAX_WAITING} requests are already waiting. Try again")
        deadline = time.monotonic() + self._seconds
        self._waiting += 1
        future = self._begun(work, deadline)
        try:
            return await asyncio.wait_for(future, self._seconds if self._cut_off else None)
        except TimeoutError as error:  # from wait_for: those of the work became refusals
            raise busy(
                f"the answer took longer than {self._seconds:g} s. Try again, or ask for less"
            ) from error
        finally:
            self._waiting -= 1

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
