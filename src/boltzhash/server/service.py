"""A worker process: its settings, its threads, the collection, and answers that it keeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from boltzhash.collection import Collection, Snapshot
from boltzhash.server import answers
from boltzhash.server.duplicates import DuplicateGroups
from boltzhash.server.explain import BitWords
from boltzhash.server.map_view import MapView
from boltzhash.server.metrics import Metrics
from boltzhash.server.opened import Opened
from boltzhash.server.overview import overview
from boltzhash.server.pools import Pool, SharedPool
from boltzhash.server.settings import (
    FIELDS_SECONDS,
    OVERVIEW_SECONDS,
    READ_SECONDS,
    SLOW_READ_SECONDS,
    WRITE_WAIT,
    Settings,
)

Result = TypeVar("Result")
AnswerOf = TypeVar("AnswerOf", bound=answers.Answer)

_VALUES = 30  # listed for each field


class Recent(Generic[AnswerOf]):
    """Keeps an answer for some seconds, since it reads much; it names its generation."""

    def __init__(self, compute: Callable[[Snapshot], AnswerOf], seconds: float) -> None:
        self._compute, self._seconds = compute, seconds
        self._last: AnswerOf | None = None
        self._computed_at = 0.0

    def view(self, snapshot: Snapshot) -> AnswerOf:
        last, age = self._last, time.monotonic() - self._computed_at
        if last is None or (last["generation"] != snapshot.generation and age > self._seconds):
            last = self._last = self._compute(snapshot)
            self._computed_at = time.monotonic()
        return last


def field_values(snapshot: Snapshot) -> answers.Fields:
    counted: dict[str, list[answers.Value]] = {
        field: [{"value": value, "count": n} for value, n in values]
        for field, values in snapshot.field_values(_VALUES).items()
    }
    return {"generation": snapshot.generation, "fields": counted}


class Service:
    """Searches have threads of their own, so that neither slow questions nor writes hold them up.

    So do near-duplicates (``comparisons``), and the overview and the map (``overviews``), which take
    seconds.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.opened = Opened(settings.collection, self.forget)
        self._reads = Pool(2, READ_SECONDS)
        self._slow_reads = Pool(1, SLOW_READ_SECONDS)
        self._writes = Pool(1, WRITE_WAIT, waits=True)
        self.comparisons, self.overviews = SharedPool(), SharedPool()
        self.forget()

    def forget(self) -> None:
        """Drop all answers: another collection may have the same generation.

        Those that are being computed go into the objects that they began with, which nobody asks again.
        """
        self.bit_words = BitWords()
        self.duplicates = DuplicateGroups()
        self.fields = Recent(field_values, FIELDS_SECONDS)
        self.map = MapView()
        self.overview = Recent(overview, OVERVIEW_SECONDS)

    async def read(self, work: Callable[[Snapshot], Result]) -> Result:
        return await self._reads.run(partial(self.opened.read, work))

    async def read_slowly(self, work: Callable[[Snapshot], Result]) -> Result:
        return await self._slow_reads.run(partial(self.opened.read, work))

    async def write(self, work: Callable[[Collection], Result]) -> Result:
        return await self._writes.run(partial(self.opened.write, work))

    def close(self) -> None:
        for pool in (self._reads, self._slow_reads, self._writes):
            pool.close()
        self.comparisons.close()
        self.overviews.close()
        self.opened.close()
