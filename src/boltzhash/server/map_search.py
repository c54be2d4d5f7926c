"""Searching on the map: hits with their points, all over it or within one region."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

from boltzhash.codes import Codes, pack, unpack
from boltzhash.collection import Answer, Snapshot
from boltzhash.corpus.documents import Id
from boltzhash.server import answers
from boltzhash.server.hits import found, sought_like, stored_document
from boltzhash.server.map_view import MapView, ShownMap
from boltzhash.server.marks import Sought
from boltzhash.server.refusals import RefusedError
from boltzhash.server.requests import MapSearchRequest

_FIRST_READ = 200  # hits, for those of a region; then more and more
_MORE = 6
_MOST_READ = 20_000


def search_on_map(collection: Snapshot, view: MapView, asked: MapSearchRequest) -> answers.FoundIn:
    """By a text or like a document, or without either the most typical documents of a region."""
    shown = view.shown(collection)
    if isinstance(shown, str):
        raise RefusedError(404, shown)
    if asked.text is not None and asked.id is not None:
        raise RefusedError(422, "a text and an id were given: ask for one of them")
    search, sought = _search(collection, shown, asked)
    members = None if asked.region is None else shown.ids_within(asked.region)
    best = _best(search, asked.k, members)
    result = found(collection, best, sought)
    for hit, one in zip(result["hits"], best, strict=True):
        hit["number"] = shown.number_of.get(one.id)
    return result


def _search(
    collection: Snapshot, shown: ShownMap, asked: MapSearchRequest
) -> tuple[Callable[[int], Answer], Sought | None]:
    """A search for the best k documents, and the words to mark in them."""
    text, id_, region, by, where = asked.text, asked.id, asked.region, asked.by, asked.where
    if text is not None:
        return (
            lambda k: collection.search(text, k, by=by, where=where),
            Sought.by_query(collection.words, text),
        )
    if id_ is not None:
        document = stored_document(collection, id_).document
        return (
            lambda k: collection.more_like(id_, k, by=by, where=where),
            sought_like(collection, document),
        )
    if region is not None:
        code = _typical_code(collection, shown, region)
        return lambda k: collection.search(code, k, where=where), None
    raise RefusedError(422, "there is nothing to look for: give a text, an id or a region")


def _typical_code(collection: Snapshot, shown: ShownMap, region: int) -> Codes:
    """Each bit as most documents of a region have it."""
    rows = shown.rows[shown.has(region)]
    bits = unpack(collection.rows().codes[rows])
    code: Codes = pack((2 * bits.sum(axis=0) > len(bits))[None])[0]
    return code


def _best(search: Callable[[int], Answer], k: int, among: Set[Id] | None) -> Answer:
    """The best k hits among some documents: more and more hits are read until k are found."""
    if among is None:
        return search(k)
    k = min(k, len(among))
    asked_for = _FIRST_READ
    while True:
        answer = search(asked_for)
        hits = [hit for hit in answer if hit.id in among][:k]
        is_all = len(answer) < asked_for
        if len(hits) == k or is_all or asked_for >= _MOST_READ:
            break
        asked_for = min(asked_for * _MORE, _MOST_READ)
    warning = answer.warning
    if len(hits) < k and not is_all:
        warning = f"only the best {asked_for:,} documents of the collection were looked through"
    return replace(answer, hits=hits, warning=warning, total=None)
