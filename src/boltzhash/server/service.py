"""What a worker process keeps: its settings, its lanes, and what it has worked out."""

from __future__ import annotations

import time
from typing import Any

from boltzhash.collection import Collection
from boltzhash.server.duplicates import DuplicateGroups
from boltzhash.server.explain import BitWords
from boltzhash.server.heavy import HeavyLane
from boltzhash.server.lanes import ReadLane, SearchLane, WriteLane
from boltzhash.server.map_view import MapView
from boltzhash.server.metrics import Metrics
from boltzhash.server.overview import Overviews
from boltzhash.server.settings import (
    READ_SECONDS,
    SLOW_READ_SECONDS,
    WRITE_WAIT,
    Settings,
)

_VALUES = 30  # listed for each field
_FIELDS_SECONDS = 10.0  # counts may be that old; they name their generation


class FieldCounts:
    """Keeps the values of metadata fields for a while: counting them reads the whole index."""

    def __init__(self) -> None:
        self._last: dict[str, Any] | None = None
        self._counted_at = 0.0

    def view(self, collection: Collection) -> dict[str, Any]:
        now = collection.standing()
        last, age = self._last, time.monotonic() - self._counted_at
        if last is None or (last["generation"] != now.generation and age > _FIELDS_SECONDS):
            counted = {
                field: [{"value": value, "count": n} for value, n in values]
                for field, values in collection.field_values(_VALUES).items()
            }
            last = self._last = {"generation": now.generation, "fields": counted}
            self._counted_at = time.monotonic()
        return last


class Service:
    """Searches have threads of their own, so that neither slow questions nor writes hold them up.

    So do near-duplicates (``comparisons``), and the map (``overviews``), which take seconds.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        location = settings.collection
        self.reads = SearchLane(location, READ_SECONDS, self.forget)
        self.slow_reads = ReadLane(location, 1, SLOW_READ_SECONDS, self.forget)
        self.comparisons = HeavyLane(location, self.forget)
        self.overviews = HeavyLane(location, self.forget)
        self.writes = WriteLane(location, 1, WRITE_WAIT, self.forget)
        self.metrics = Metrics()
        self.forget()

    def forget(self) -> None:
        """All that was worked out: another collection may have the same generation.

        What is being worked out goes into the objects that it began with, which nobody asks again.
        """
        self.bit_words = BitWords()
        self.duplicates = DuplicateGroups()
        self.fields = FieldCounts()
        self.map = MapView()
        self.overview = Overviews()

    def close(self) -> None:
        for lane in (
            self.reads,
            self.slow_reads,
            self.comparisons,
            self.overviews,
            self.writes,
        ):
            lane.close()
