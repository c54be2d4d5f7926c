"""Searching on the map: hits with their points, all over it or within one region."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace
from functools import partial

from boltzhash.codes import pack, unpack
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


def search_on_map(snapshot: Snapshot, view: MapView, request: MapSearchRequest) -> answers.FoundIn:
    """Search by a text or like a document; without either, for what is typical of a region."""
    shown = view.shown(snapshot)
    if isinstance(shown, str):
        raise RefusedError(404, shown)
    if request.text is not None and request.id is not None:
        raise RefusedError(422, "a text and an id were given: ask for one of them")
    search, sought = _search(snapshot, shown, request)
    members = None if request.region is None else shown.ids_within(request.region)
    best = _best(search, request.k, members)
    result = found(snapshot, best, sought)
    for hit, one in zip(result["hits"], best, strict=True):
        hit["number"] = shown.number_of.get(one.id)
    return result


def _search(
    snapshot: Snapshot, shown: ShownMap, request: MapSearchRequest
) -> tuple[Callable[[int], Answer], Sought | None]:
    """A search for the best k documents, and the words to mark in them."""
    by, where = request.by, request.where
    if request.text is not None:
        search = partial(snapshot.search, request.text, by=by, where=where)
        return search, Sought.by_query(snapshot.words, request.text)
    if request.id is not None:
        document = stored_document(snapshot, request.id).document
        search = partial(snapshot.more_like, request.id, by=by, where=where)
        return search, sought_like(snapshot, document)
    if request.region is not None:
        bits = unpack(snapshot.rows().codes[shown.rows[shown.has(request.region)]])
        typical = pack((2 * bits.sum(axis=0) > len(bits))[None])[0]  # as most documents have it
        return partial(snapshot.search, typical, where=where), None
    raise RefusedError(422, "there is nothing to look for: give a text, an id or a region")


def _best(search: Callable[[int], Answer], k: int, among: Set[Id] | None) -> Answer:
    """The best k hits among some documents: more and more hits are read until k are found."""
    if among is None:
        return search(k)
    k = min(k, len(among))
    wanted = _FIRST_READ
    while True:
        answer = search(wanted)
        hits = [hit for hit in answer if hit.id in among][:k]
        is_all = len(answer) < wanted
        if len(hits) == k or is_all or wanted >= _MOST_READ:
            break
        wanted = min(wanted * _MORE, _MOST_READ)
    warning = answer.warning
    if len(hits) < k and not is_all:
        warning = f"only the best {wanted:,} documents of the collection were looked through"
    return replace(answer, hits=hits, warning=warning, total=None)
