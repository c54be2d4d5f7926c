"""The addresses of the service: what is asked, in which lane it is handled, what is answered."""

from __future__ import annotations

import difflib
import json
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.security import HTTPBearer
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import PlainTextResponse, Response

from boltzhash.collection import Collection
from boltzhash.collection.duplicates import MIN_SIMILARITY
from boltzhash.corpus.documents import Id
from boltzhash.server import messages
from boltzhash.server.answers import (
    search_code,
    search_similar,
    search_text,
    stored_document,
    stored_documents,
    whole_document,
)
from boltzhash.server.duplicates import Asked
from boltzhash.server.explain import explain_hit
from boltzhash.server.guard import is_key
from boltzhash.server.heavy import HeavyLane, Job
from boltzhash.server.map_search import search_on_map
from boltzhash.server.messages import MAX_ID
from boltzhash.server.metrics import CONTENT_TYPE
from boltzhash.server.refusals import NoCollectionError, RefusedError
from boltzhash.server.service import Service
from boltzhash.server.settings import KEY_VARIABLE, MAX_GROUPS, MAX_K
from boltzhash.version import __version__

_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The body is not JSON"},
    401: {
        "description": "The key for writing, or one for reading if there is one, is missing or wrong"
    },
    403: {"description": "Writing is off, or another site's page asked"},
    408: {"description": "The request did not arrive in time"},
    413: {"description": "The body is too large"},
    415: {"description": "The content type of the body is not JSON"},
    421: {"description": "The service does not answer to this host"},
    431: {"description": "The headers are too large"},
    422: {"description": "A field is not what it should be"},
    500: {"description": "The collection is damaged"},
    503: {"description": "Busy, or there is no collection: try again"},
}
_LONGEST_JSON_ID = 12 * MAX_ID + 2  # characters: an emoji takes two escapes of six

_NOT_THERE: dict[int | str, dict[str, Any]] = {404: {"description": "No such document or field"}}
_WRITE_REFUSALS: dict[int | str, dict[str, Any]] = {
    507: {"description": "The disk is full"},
}


def _errors(*tables: dict[int | str, dict[str, Any]]) -> dict[int | str, dict[str, Any]]:
    merged = {status: entry for table in tables for status, entry in table.items()}
    return {status: {**entry, "model": messages.Error} for status, entry in merged.items()}


async def _refuse_unknown_parameters(request: Request) -> None:
    """A misspelt one would be ignored, and the answer one to another question."""
    known = [field.alias for field in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            meant = f" (is {close[0]!r} meant?)" if close else ""
            there = f"there are: {', '.join(known)}" if known else "this address takes none"
            raise RefusedError(422, f"there is no query parameter {name[:60]!a}{meant}; {there}")


api = APIRouter(
    prefix="/v1",
    responses=_errors(_REFUSALS),
    dependencies=[Depends(_refuse_unknown_parameters)],
)
operations = APIRouter(tags=["operations"])


class _Rest(Convertor[str]):
    """The rest of an address, with all slashes; not nothing, as Starlette's "path" may be."""

    regex = "(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("rest", _Rest())


async def _service(request: Request) -> Service:
    """Async, as all dependencies here: FastAPI gives others to a thread, which takes longer."""
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(_service)]
_bearer = HTTPBearer(auto_error=False, description=f"The key that {KEY_VARIABLE} holds")


async def _need_key(request: Request, service: Served, _: Annotated[Any, Depends(_bearer)]) -> None:
    if service.settings.api_key is None:
        raise RefusedError(
            403,
            f"writing is off: start the service with a key in the environment, {KEY_VARIABLE}",
            code="writing_is_off",
        )
    if not is_key(service.settings, request.headers):
        raise RefusedError(
            401,
            "writing needs the service's key: send it as `Authorization: Bearer KEY`",
            www_authenticate="Bearer",
        )


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def encoded(answer: dict[str, Any]) -> bytes:
    return _encoder.encode(answer).encode()


def as_json(answer: dict[str, Any]) -> Response:
    return Response(encoded(answer), media_type="application/json")


# Searching


@api.post("/search", response_model=messages.Hits, tags=["search"])
async def search(asked: messages.SearchRequest, service: Served) -> Response:
    """The documents that answer a text best, by their words and their codes."""
    return await _timed(service, lambda r: search_text(r, asked), _texts_of([asked]))


@api.post("/search/several", response_model=messages.SearchesAnswer, tags=["search"])
async def search_several(asked: messages.SearchesRequest, service: Served) -> Response:
    """Several searches in one request, all of one generation."""

    def work(collection: Collection) -> dict[str, Any]:
        answers = [_answer_number(collection, *numbered) for numbered in enumerate(asked.queries)]
        return {"generation": collection.standing().generation, "answers": answers}

    return await _timed(service, work, _texts_of(asked.queries))


def _texts_of(queries: Sequence[messages.SearchRequest]) -> list[str]:
    """Those that are coded."""
    return [query.text for query in queries if query.text is not None and query.features is None]


def _answer_number(
    collection: Collection, number: int, query: messages.SearchRequest
) -> dict[str, Any]:
    try:
        answer = search_text(collection, query)
    except ValueError as error:
        raise ValueError(f"queries.{number}: {error}") from error
    del answer["generation"]  # is said once for all
    return answer


@api.post("/similar", response_model=messages.Hits, tags=["search"], responses=_errors(_NOT_THERE))
async def similar(asked: messages.SimilarRequest, service: Served) -> Response:
    """More documents like one in the collection."""
    return await _timed(
        service,
        lambda r: search_similar(
            r, asked.id, asked.k, asked.by, asked.where, asked.offset, with_reasons=asked.reasons
        ),
    )


@api.post("/nearest", response_model=messages.Hits, tags=["search"])
async def nearest(asked: messages.NearestRequest, service: Served) -> Response:
    """The documents whose codes are nearest to a code."""
    return await _timed(
        service,
        lambda r: search_code(r, asked.code, asked.k, asked.where, asked.offset, asked.facets),
    )


@api.post(
    "/explain",
    response_model=messages.Explanation,
    tags=["search"],
    responses=_errors(_NOT_THERE),
)
async def explain(asked: messages.ExplainRequest, service: Served) -> Response:
    """Why a document is a hit: which bits agree, and the words that they stand for."""
    return await _read(
        service, lambda r: explain_hit(r, service.bit_words, asked.query, asked.id, asked.code)
    )


# Documents


@api.get("/documents", response_model=messages.DocumentsPage, tags=["documents"])
async def list_documents(
    service: Served,
    after: Annotated[
        int, Query(ge=0, le=2**63 - 1, description="What `next` of the page before says")
    ] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_K)] = 20,
) -> Response:
    """All documents, page by page, in the order of insertion.

    A walk sees every document that stays, whatever is written meanwhile.
    """

    def work(collection: Collection) -> dict[str, Any]:
        now, page = collection.standing(), collection.page(after, limit + 1)
        return {
            "generation": now.generation,
            "total": now.n_documents,
            "documents": [whole_document(coded) for _, coded in page[:limit]],
            "next": page[limit - 1][0] if len(page) > limit else None,
        }

    return await _read(service, work)


@api.get(
    "/documents/{id:rest}",
    response_model=messages.OneDocument,
    tags=["documents"],
    responses=_errors(_NOT_THERE),
)
async def get_document(
    service: Served, id: Annotated[str, Path(max_length=_LONGEST_JSON_ID)]
) -> Response:
    """One document. `7` is the integer if there is such an id, else the string; `"7"` is the string."""

    def work(collection: Collection) -> dict[str, Any]:
        found = stored_document(collection, _meant_id(collection, id))
        return {
            "generation": collection.standing().generation,
            "document": whole_document(found),
        }

    return await _read(service, work)


def _meant_id(collection: Collection, text: str) -> Id:
    """As on the command line: JSON if that is an id in the collection, else the text as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if value in collection else text


@api.post("/documents/get", response_model=messages.Documents, tags=["documents"])
async def get_documents(asked: messages.GetRequest, service: Served) -> Response:
    """Whole documents by id; those that do not exist are left out."""

    def work(collection: Collection) -> dict[str, Any]:
        now = collection.standing()
        return {
            "generation": now.generation,
            "documents": stored_documents(collection, asked.ids),
        }

    return await _read(service, work)


@api.post(
    "/documents",
    response_model=messages.Written,
    tags=["documents"],
    dependencies=[Depends(_need_key)],
    responses=_errors(_WRITE_REFUSALS, {409: {"description": "An id already exists"}}),
)
async def add_documents(asked: messages.AddRequest, service: Served) -> Response:
    """Add documents, or replace them: all or none. They are on disk when this answers."""
    documents = [document.model_dump(exclude={"features"}) for document in asked.documents]
    features = _features_of(asked.documents)
    ids = Counter(document.id for document in asked.documents)
    if not asked.overwrite and len(ids) < len(documents):
        ((twice, n),) = ids.most_common(1)
        raise RefusedError(
            409,
            f"the id {twice!r} is in this request {n} times: nothing was written. Send each document "
            "once, or overwrite: true to keep the last",
            code="id_twice",
        )

    def work(collection: Collection) -> dict[str, Any]:
        write = collection.upsert if asked.overwrite else collection.add
        write(documents, features=features)
        return {"generation": collection.written_generation, "written": len(ids)}

    return as_json(await service.writes.run(work))


@api.post(
    "/documents/delete",
    response_model=messages.Deleted,
    tags=["documents"],
    dependencies=[Depends(_need_key)],
    responses=_errors(_WRITE_REFUSALS),
)
async def delete_documents(asked: messages.DeleteRequest, service: Served) -> Response:
    """Delete documents by id; the answer says how many existed."""

    def work(collection: Collection) -> dict[str, Any]:
        deleted = collection.delete(asked.ids)
        return {"generation": collection.written_generation, "deleted": deleted}

    return as_json(await service.writes.run(work))


# The collection


@api.get("/stats", response_model=messages.Stats, tags=["collection"])
async def stats(service: Served) -> Response:
    """What the collection holds and costs."""

    def work(collection: Collection) -> dict[str, Any]:
        told = collection.stats()
        kept = {name: told[name] for name in messages.Stats.model_fields if name in told}
        return {
            **kept,
            "writing": service.settings.api_key is not None,
            "version": __version__,
        }

    return as_json(await service.slow_reads.run(work))


@api.get("/overview", response_model=messages.Overview, tags=["collection"])
async def overview(request: Request, service: Served) -> Response:
    """What the collection is about: its topics in words, and questions that it can answer."""
    return await _shared(
        *(request, service, service.overviews, "overview"), lambda r, _: service.overview.view(r)
    )


@api.get("/fields", response_model=messages.Fields, tags=["collection"])
async def fields(service: Served) -> Response:
    """The metadata fields that can be filtered by, with their commonest values."""
    return as_json(await service.slow_reads.run(lambda r: service.fields.view(r)))


@api.get("/duplicates", response_model=messages.Duplicates, tags=["collection"])
async def duplicates(
    request: Request,
    service: Served,
    min_similarity: Annotated[
        float,
        Query(ge=0.5, le=1, description="The share of word trigrams that texts have in common"),
    ] = MIN_SIMILARITY,
    keep: Annotated[
        Literal["first", "longest", "newest"], Query(description="Which one of several is kept")
    ] = "first",
    siblings: Annotated[
        bool,
        Query(description="Texts that share a template instead, from 0.5 up to min_similarity"),
    ] = False,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_GROUPS)] = 20,
) -> Response:
    """Groups of near-duplicates: a document to keep, and those whose texts are near its own."""
    asked = Asked(min_similarity, keep, siblings)
    return await _shared(
        *(request, service, service.comparisons, (asked, offset, limit)),
        lambda r, job: service.duplicates.page(r, asked, offset, limit, job.check),
    )


@api.get("/map", response_model=messages.Map, tags=["collection"], responses=_errors(_NOT_THERE))
async def collection_map(
    request: Request,
    service: Served,
    field: Annotated[
        str | None, Query(max_length=200, description="Metadata field that gives the colours")
    ] = None,
) -> Response:
    """The points of all documents, for the page's map."""
    return await _shared(
        *(request, service, service.overviews, ("map", field)),
        lambda r, _: service.map.view(r, field),
    )


@api.post(
    "/map/search",
    response_model=messages.MapHits,
    tags=["collection"],
    responses=_errors(_NOT_THERE),
)
async def search_map(asked: messages.MapSearchRequest, service: Served) -> Response:
    """Hits with their points on the map, within one of its regions or everywhere."""
    return await _read(service, lambda r: search_on_map(r, service.map, asked))


@api.get(
    "/map/{place}",
    response_model=messages.Documents,
    tags=["collection"],
    responses=_errors(_NOT_THERE),
)
async def map_point(service: Served, place: Annotated[int, Path(ge=0, le=2**63 - 1)]) -> Response:
    """The document of a point, by its place in the order of insertion."""

    def work(collection: Collection) -> dict[str, Any]:
        now = collection.standing()
        (id_,) = collection.ids_at(np.array([place]))
        if id_ is None:
            raise RefusedError(404, f"there is no document at place {place}")
        return {"generation": now.generation, "documents": stored_documents(collection, [id_])}

    return await _read(service, work)


# Operations


@operations.get("/healthz", response_model=messages.Health)
async def healthz() -> Response:
    """Whether the process answers."""
    return as_json({"status": "ok"})


@operations.get("/readyz", response_model=messages.Health, responses=_errors(_REFUSALS))
async def readyz(service: Served) -> Response:
    """Whether the collection can be searched."""
    await service.reads.run(len)
    return as_json({"status": "ready"})


@operations.get("/metrics", response_class=PlainTextResponse)
async def metrics(service: Served) -> Response:
    """Counts for Prometheus, of all workers together."""

    def work(collection: Collection) -> tuple[int, int]:
        now = collection.standing()
        return now.n_documents, now.generation

    documents: int | None = None
    generation: int | None = None
    with suppress(NoCollectionError):
        documents, generation = await service.reads.run(work)
    return Response(service.metrics.text(documents, generation), media_type=CONTENT_TYPE)


def _features_of(documents: list[messages.NewDocument]) -> list[list[float]] | None:
    """The vectors of documents as rows of one length, None if none has one."""
    vectors = [document.features or [] for document in documents]
    if not any(vectors):
        return None
    for document, vector in zip(documents, vectors, strict=True):
        if len(vector) != len(vectors[0]):
            raise RefusedError(
                422,
                f"the documents of a request must have features of one length: {documents[0].id!r} has "
                f"{len(vectors[0])} numbers, {document.id!r} has {len(vector)}",
            )
    return vectors


async def _timed(
    service: Service, work: Callable[[Collection], dict[str, Any]], texts: Sequence[str] = ()
) -> Response:
    """An answer that says how long it took; ``texts`` are those that ``work`` searches for."""
    start = time.perf_counter()
    answer = await service.reads.run(work, texts)
    return as_json({**answer, "milliseconds": round(1000 * (time.perf_counter() - start), 2)})


async def _shared(
    request: Request,
    service: Service,
    lane: HeavyLane,
    what: Hashable,
    work: Callable[[Collection, Job], dict[str, Any]],
) -> Response:
    """An answer for all who ask for it in one generation, made into bytes once."""
    generation = await service.reads.run(lambda r: r.standing().generation)
    body = await lane.shared(request, (generation, what), lambda r, job: encoded(work(r, job)))
    return Response(body, media_type="application/json")


async def _read(service: Service, work: Callable[[Collection], dict[str, Any]]) -> Response:
    return as_json(await service.reads.run(work))
