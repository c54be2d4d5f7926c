"""The map as the page draws it: points, named regions, and one colour per value of a field."""

from __future__ import annotations

import threading
from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.collection import Snapshot
from boltzhash.collection.columns import Column
from boltzhash.collection.store import Rows
from boltzhash.corpus.documents import Id
from boltzhash.server import answers
from boltzhash.server.map_file import (
    MAP,
    MAX_FITTED,
    Points,
    StoredMap,
    load_map,
    point_near,
)
from boltzhash.server.refusals import RefusedError
from boltzhash.server.regions import Regions

N_COLOURS = 8
_MOST_PLACED = 10_000
OTHERS = "other"
MISSING = "none"

_HOW = (
    "There is no map yet. Make one with `boltzhash map COLLECTION` "
    "(pip install 'boltzhash[map]'); it takes a minute or two for 10,000 documents."
)
_OLD = (
    "The map belongs to another model: the collection has been rehashed. Make a new one with "
    "`boltzhash map COLLECTION`."
)


class _Colours(NamedTuple):
    values: list[str]
    of_point: list[int]
    ordered: bool = False


class ShownMap(NamedTuple):
    """The points of the documents that are there in one generation, and their regions."""

    generation: int
    numbers: NDArray[np.int64]
    rows: NDArray[np.int64]  # of the collection's codes
    points: Points
    regions: Regions
    left_out: int  # documents that have no point
    number_of: dict[Id, int]

    def has(self, region: int) -> NDArray[np.bool_]:
        """A mask of the points in a region."""
        n = len(self.regions.parents)
        if region >= n:
            raise RefusedError(404, f"the map has {n} regions, numbered from 0; got {region}")
        return self.regions.has(region)

    def ids_within(self, region: int) -> set[Id]:
        within = set(self.numbers[self.has(region)].tolist())
        return {id_ for id_, number in self.number_of.items() if number in within}


class MapView:
    """Reads the stored map when it has changed, and remembers where later documents were placed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version: str | None = None
        self._stored: StoredMap | None = None
        self._placed: dict[tuple[int, bytes], tuple[float, float]] = {}
        self._shown: ShownMap | None = None

    def view(self, snapshot: Snapshot, field: str | None) -> answers.Map:
        shown = self.shown(snapshot)
        if isinstance(shown, str):
            return {
                "generation": snapshot.state.generation,
                "made": False,
                "message": shown,
            }
        if field is not None and field not in snapshot.field_values(1):
            raise RefusedError(404, f"no document has the metadata field {field!r}")
        colours = _Colours([], [])
        if field is not None:
            colours = _colours(shown.numbers, _values(snapshot.column(field)))
        scaled = np.round(shown.points * 65535).astype(np.int64)
        return {
            "generation": shown.generation,
            "made": True,
            "numbers": shown.numbers.tolist(),
            "x": scaled[:, 0].tolist(),
            "y": scaled[:, 1].tolist(),
            "regions": _regions_as_json(shown.regions),
            "region_of": shown.regions.of_point.tolist(),
            "field": field,
            "values": colours.values,
            "ordered": colours.ordered,
            "colours": colours.of_point,
            "left_out": shown.left_out,
        }

    def shown(self, snapshot: Snapshot) -> ShownMap | str:
        """The map in this generation, or why there is none."""
        now = snapshot.state
        with self._lock:
            stored = self._read(snapshot)
            if stored is None or stored.model != now.model:
                return _HOW if stored is None else _OLD
            kept = self._shown
            if kept is None or kept.generation != now.generation:
                kept = self._shown = self._show(snapshot, stored, now.generation)
            return kept

    def _read(self, snapshot: Snapshot) -> StoredMap | None:
        version = snapshot.store.files_version(MAP)
        if version != self._version:
            self._stored, self._version = load_map(snapshot), version
            self._placed, self._shown = {}, None
        return self._stored

    def _show(self, snapshot: Snapshot, stored: StoredMap, generation: int) -> ShownMap:
        rows = snapshot.rows()
        chosen, points, of_point = self._points(stored, rows)
        numbers = rows.places[chosen]
        ids = snapshot.ids_at(numbers)
        assert stored.regions is not None  # it is stored with names
        return ShownMap(
            generation,
            numbers,
            chosen,
            points,
            stored.regions._replace(of_point=of_point),
            len(rows.places) - len(numbers),
            {
                id_: number
                for id_, number in zip(ids, numbers.tolist(), strict=True)
                if id_ is not None
            },
        )

    def _points(
        self, stored: StoredMap, rows: Rows
    ) -> tuple[NDArray[np.int64], Points, NDArray[np.int32]]:
        """Fitted documents that have not changed, and the newest others: rows, points, regions."""
        from scipy.spatial import cKDTree

        at = np.searchsorted(stored.numbers, rows.places)
        at[at == len(stored.numbers)] = 0
        same = (stored.numbers[at] == rows.places) & (stored.codes[at] == rows.codes).all(axis=1)
        room = min(_MOST_PLACED, MAX_FITTED - int(same.sum()))
        later = np.flatnonzero(~same & rows.known)[::-1][: max(room, 0)][::-1]
        keys = [
            (number, code.tobytes())
            for number, code in zip(rows.places[later].tolist(), rows.codes[later], strict=True)
        ]
        new = [i for i, key in enumerate(keys) if key not in self._placed]
        if new:
            which = later[new]
            points = point_near(stored, rows.codes[which], rows.places[which]).tolist()
            self._placed.update(zip((keys[i] for i in new), map(tuple, points), strict=True))
        placed = np.array([self._placed[key] for key in keys], dtype=np.float32).reshape(-1, 2)
        self._placed = {key: self._placed[key] for key in keys}
        fitted = np.flatnonzero(same)
        assert stored.regions is not None  # it is stored with names
        of_point = stored.regions.of_point[at[fitted]]
        if len(placed):  # each in the region of the nearest point
            nearest = cKDTree(stored.points).query(placed)[1]
            of_point = np.concatenate([of_point, stored.regions.of_point[nearest]])
        shown = np.concatenate([stored.points[at[fitted]], placed])
        return np.concatenate([fitted, later]), shown, of_point


def _regions_as_json(regions: Regions) -> list[answers.Region]:
    anchors = np.round(regions.anchors * 65535).astype(np.int64).tolist()
    parents = [parent if parent >= 0 else None for parent in regions.parents.tolist()]
    spreads = [round(spread, 4) for spread in regions.spreads.tolist()]
    sizes = regions.sizes().tolist()
    columns = zip(parents, anchors, spreads, sizes, regions.words, strict=True)
    return [
        {"parent": parent, "x": x, "y": y, "spread": spread, "size": size, "words": words}
        for parent, (x, y), spread, size, words in columns
    ]


def _values(column: Column) -> dict[int, Any]:
    """One value of each document; those of a list are left out."""
    places, first, counts = np.unique(column.places, return_index=True, return_counts=True)
    single = counts == 1
    numbers = column.numbers[first[single]].tolist()
    return dict(zip(places[single].tolist(), (column.values[n] for n in numbers), strict=True))


def _colours(doc_numbers: NDArray[np.int64], value_of: dict[int, Any]) -> _Colours:
    """The commonest values, each a colour; many different numbers in ranges of equal counts."""
    values = [value_of.get(number) for number in doc_numbers.tolist()]
    present = [value for value in values if value is not None]
    numbers = [v for v in present if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) == len(present) and len(set(numbers)) > N_COLOURS:
        return _ranges(values, np.array(numbers, dtype=np.float64))
    common = [shown for shown, _ in Counter(map(_shown, present)).most_common(N_COLOURS)]
    number_of = {shown: number for number, shown in enumerate(common)}
    names = [*common, OTHERS, MISSING]
    colours = [
        len(common) + 1 if value is None else number_of.get(_shown(value), len(common))
        for value in values
    ]
    return _Colours(names, colours)


def _ranges(values: list[Any], numbers: NDArray[np.float64]) -> _Colours:
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, N_COLOURS + 1)))
    names = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    inner = edges[1:-1]
    colours = [
        len(names) + 1 if value is None else int(np.searchsorted(inner, value, side="right"))
        for value in values
    ]
    return _Colours([*names, OTHERS, MISSING], colours, ordered=True)


def _shown(value: Any) -> str:
    """
    >>> _shown(True), _shown(1.0), _shown("a")
    ('true', '1', 'a')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # 1 and 1.0 are one value
    return str(value)
