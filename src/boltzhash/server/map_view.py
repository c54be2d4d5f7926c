"""The map as the page draws it: one point per document, one colour per value of a field."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.collection import Collection
from boltzhash.collection.store import Rows
from boltzhash.server.map_file import (
    MAP,
    MAX_FITTED,
    Points,
    StoredMap,
    load_map,
    place_near,
)
from boltzhash.server.refusals import RefusedError

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


class MapView:
    """Reads the stored map when it has changed, and remembers where later documents were placed."""

    def __init__(self) -> None:
        self._version: str | None = None
        self._stored: StoredMap | None = None
        self._placed: dict[tuple[int, bytes], tuple[float, float]] = {}

    def view(self, collection: Collection, field: str | None) -> dict[str, Any]:
        stored = self._read(collection)
        now = collection.standing()
        if stored is None or stored.model != now.model:
            message = _HOW if stored is None else _OLD
            return {"generation": now.generation, "made": False, "message": message}
        if field is not None and field not in collection.field_values(1):
            raise RefusedError(404, f"no document has the metadata field {field!r}")
        rows = collection.rows()
        places, points = self._points(stored, rows)
        colours = _Colours([], [])
        if field is not None:
            colours = _colours(places, collection.values_of(field))
        scaled = np.round(points * 65535).astype(np.int64)
        return {
            "generation": now.generation,
            "made": True,
            "places": places.tolist(),
            "x": scaled[:, 0].tolist(),
            "y": scaled[:, 1].tolist(),
            "field": field,
            "values": colours.values,
            "ordered": colours.ordered,
            "colours": colours.of_point,
            "left_out": len(rows.places) - len(places),
        }

    def _read(self, collection: Collection) -> StoredMap | None:
        version = collection.files_version(MAP)
        if version != self._version:
            self._stored, self._version, self._placed = load_map(collection), version, {}
        return self._stored

    def _points(self, stored: StoredMap, rows: Rows) -> tuple[NDArray[np.int64], Points]:
        """Fitted documents that have not changed, and the newest others."""
        at = np.searchsorted(stored.places, rows.places)
        at[at == len(stored.places)] = 0
        same = (stored.places[at] == rows.places) & (stored.codes[at] == rows.codes).all(axis=1)
        room = min(_MOST_PLACED, MAX_FITTED - int(same.sum()))
        later = np.flatnonzero(~same & rows.known)[::-1][: max(room, 0)][::-1]
        keys = [
            (place, code.tobytes())
            for place, code in zip(rows.places[later].tolist(), rows.codes[later], strict=True)
        ]
        new = [i for i, key in enumerate(keys) if key not in self._placed]
        if new:
            which = later[new]
            points = place_near(stored, rows.codes[which], rows.places[which]).tolist()
            self._placed.update(zip((keys[i] for i in new), map(tuple, points), strict=True))
        placed = np.array([self._placed[key] for key in keys], dtype=np.float32).reshape(-1, 2)
        self._placed = {key: self._placed[key] for key in keys}
        fitted = np.flatnonzero(same)
        places = np.concatenate([rows.places[fitted], rows.places[later]])
        return places, np.concatenate([stored.points[at[fitted]], placed])


def _colours(places: NDArray[np.int64], value_of: dict[int, Any]) -> _Colours:
    """The commonest values, each a colour; many different numbers in ranges of equal counts."""
    values = [value_of.get(place) for place in places.tolist()]
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
