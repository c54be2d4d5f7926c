"""Searching on the map: hits with their points, all over it or within one region."""

from __future__ import annotations

from typing import Any

from boltzhash.codes import pack, unpack
from boltzhash.collection import Collection
from boltzhash.server.answers import search_code, search_similar, search_text
from boltzhash.server.map_view import MapView, ShownMap
from boltzhash.server.messages import MapSearchRequest
from boltzhash.server.refusals import RefusedError


def search_on_map(collection: Collection, view: MapView, asked: MapSearchRequest) -> dict[str, Any]:
    """By a text or like a document, or without either the most typical documents of a region."""
    shown = view.shown(collection)
    if isinstance(shown, str):
        raise RefusedError(404, shown)
    if asked.text is not None and asked.id is not None:
        raise RefusedError(422, "a text and an id were given: ask for one of them")
    k, by, where = asked.k, asked.by, asked.where
    members = None if asked.region is None else shown.ids_within(asked.region)
    if asked.text is not None:
        found = search_text(collection, asked.text, k, by, where, None, members)
    elif asked.id is not None:
        found = search_similar(collection, asked.id, k, by, where, members)
    elif asked.region is None:
        raise RefusedError(422, "there is nothing to look for: give a text, an id or a region")
    else:
        code = typical_code(collection, shown, asked.region)
        found = search_code(collection, code, k, where, members)
    for hit in found["hits"]:
        hit["place"] = shown.place_of.get(hit["id"])
    return found


def typical_code(collection: Collection, shown: ShownMap, region: int) -> str:
    """What most documents of a region say, bit for bit."""
    rows = shown.rows[shown.regions.has(region)]
    bits = unpack(collection.rows().codes[rows])
    return pack((2 * bits.sum(axis=0) > len(bits))[None]).tobytes().hex()
