"""A worker process: its settings, its threads, the collection, and answers that it keeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from boltzhash.collection import Collection, Snapshot
from boltzhash.server import answers
from boltzhash.server.duplicates import DuplicateGroups
from boltzhash.server.explain import BitWords
from boltzhash.server.map_view import MapView
from boltzhash.server.metrics import Metrics
from boltzhash.server.opened import Opened
from boltzhash.server.overview import Overviews
from boltzhash.server.pools import Pool, SharedPool
from boltzhash.server.settings import READ_SECONDS, SLOW_READ_SECONDS, WRITE_WAIT, Settings

Result = TypeVar("Result")

_VALUES = 30  # listed for each field
_FIELDS_SECONDS = 10.0  # counts may be that old; they name their generation


class FieldCounts:
    """Keeps the values of metadata fields for a while: counting them reads the whole index."""

    def __init__(self) -> None:
        self._last: answers.Fields | None = None
        self._counted_at = 0.0

    def view(self, collection: Snapshot) -> answers.Fields:
        now = collection.state
        last, age = self._last, time.monotonic() - self._counted_at
        if last is None or (last["generation"] != now.generation and age > _FIELDS_SECONDS):
            counted: dict[str, list[answers.Value]] = {
                field: [{"value": value, "count": n} for value, n in values]
                for field, values in collection.field_values(_VALUES).items()
            }
            last = self._last = {"generation": now.generation, "fields": counted}
            self._counted_at = time.monotonic()
        return last


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
        self.fields = FieldCounts()
        self.map = MapView()
        self.overview = Overviews()

    async def read(self, work: Callable[[Snapshot], Result]) -> Result:
        return await self._reads.run(partial(self.opened.read, work))

    async def read_slowly(self, work: Callable[[Snapshot], Result]) -> Result:
        return await self._slow_reads.run(partial(self.opened.read, work))

    async def write(self, work: Callable[[Collection], Result]) -> Result:
        return await self._writes.run(partial(self.opened.write, work))

    def close(self) -> None:
        for pool in (
            self._reads,
            self._slow_reads,
            self._writes,
            self.comparisons,
            self.overviews,
        ):
            pool.close()
        self.opened.close()
