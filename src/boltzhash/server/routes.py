"""The addresses of the service."""

from __future__ import annotations

import difflib
import json
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal, cast

import numpy as np
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import PlainTextResponse, Response

from boltzhash.collection import Collection, Snapshot
from boltzhash.collection.duplicates import MIN_SIMILARITY
from boltzhash.corpus.documents import Id
from boltzhash.server import answers
from boltzhash.server.duplicates import DuplicateQuery
from boltzhash.server.explain import explain_hit
from boltzhash.server.guard import is_key
from boltzhash.server.hits import (
    search_code,
    search_similar,
    search_text,
    stored_document,
    stored_documents,
    whole_document,
)
from boltzhash.server.map_search import search_on_map
from boltzhash.server.metrics import CONTENT_TYPE
from boltzhash.server.pools import Job, SharedPool
from boltzhash.server.refusals import NoCollectionError, RefusedError
from boltzhash.server.requests import (
    MAX_ID,
    AddRequest,
    DeleteRequest,
    ExplainRequest,
    GetRequest,
    MapSearchRequest,
    NearestRequest,
    NewDocument,
    SearchesRequest,
    SearchRequest,
    SimilarRequest,
)
from boltzhash.server.service import Result, Service
from boltzhash.server.settings import KEY_VARIABLE, MAX_GROUPS, MAX_K
from boltzhash.version import __version__

_LONGEST_JSON_ID = 12 * MAX_ID + 2  # characters: an emoji takes two escapes of six


def _errors(descriptions: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    return {
        status: {"description": text, "model": answers.Error}
        for status, text in descriptions.items()
    }


_REFUSALS = _errors(
    {
        400: "The body is not JSON",
        401: "The key for writing, or one for reading if there is one, is missing or wrong",
        403: "Writing is off, or another site's page asked",
        408: "The request did not arrive in time",
        413: "The body is too large",
        415: "The content type of the body is not JSON",
        421: "The service does not answer to this host",
        431: "The headers are too large",
        422: "A field is not what it should be",
        500: "The collection is damaged",
        503: "Busy, or there is no collection: try again",
    }
)
_NOT_FOUND = _errors({404: "No such document or field"})
_WRITE_REFUSALS = _errors({507: "The disk is full"})


class _Route(APIRoute):
    """Refuses unknown query parameters: the answer would be one to another question."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = [field.alias for field in self.dependant.query_params]

        async def checked(request: Request) -> Response:
            for name in request.query_params:
                if name not in known:
                    close = difflib.get_close_matches(name, known, 1)
                    meant = f" (is {close[0]!r} meant?)" if close else ""
                    those = f"there are: {', '.join(known)}" if known else "this address takes none"
                    raise RefusedError(
                        422, f"there is no query parameter {name[:60]!a}{meant}; {those}"
                    )
            return await handle(request)

        return checked


api = APIRouter(prefix="/v1", responses=_REFUSALS, route_class=_Route)
operations = APIRouter(tags=["operations"])


class _Rest(Convertor[str]):
    """The rest of an address, with all slashes; not nothing, as Starlette's "path" may be."""

    regex = "(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("rest", _Rest())

_bearer = HTTPBearer(auto_error=False, description=f"The key that {KEY_VARIABLE} holds")


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _need_key(request: Request, _: Annotated[Any, Depends(_bearer)]) -> None:
    settings = _service(request).settings
    if settings.api_key is None:
        raise RefusedError(
            403,
            f"writing is off: start the service with a key in the environment, {KEY_VARIABLE}",
            code="writing_is_off",
        )
    if not is_key(settings, request.headers):
        raise RefusedError(
            401,
            "writing needs the service's key: send it as `Authorization: Bearer KEY`",
            www_authenticate="Bearer",
        )


async def _timed(request: Request, work: Callable[[Snapshot], Result]) -> tuple[Result, float]:
    """An answer and the milliseconds that it took."""
    start = time.perf_counter()
    answer = await _service(request).read(work)
    return answer, round(1000 * (time.perf_counter() - start), 2)


async def _shared(
    request: Request,
    pool: SharedPool,
    question: Hashable,
    work: Callable[[Snapshot, Job], Any],
) -> Response:
    """An answer for all who ask for it in one generation, encoded once."""
    service = _service(request)
    generation = await service.read(lambda snapshot: snapshot.generation)

    def encoded(job: Job) -> bytes:
        answer = service.opened.read(lambda r: work(r, job))
        return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()

    body = await pool.run(request, (generation, question), encoded)
    return Response(body, media_type="application/json")


# Searching


@api.post("/search", tags=["search"])
async def search(body: SearchRequest, request: Request) -> answers.Hits:
    """The documents that answer a text best, by their words and their codes."""
    answer, milliseconds = await _timed(request, partial(search_text, request=body))
    return {**answer, "milliseconds": milliseconds}


@api.post("/search/several", tags=["search"])
async def search_several(body: SearchesRequest, request: Request) -> answers.SearchesAnswer:
    """Several searches in one request, all of one generation."""

    def work(snapshot: Snapshot) -> list[answers.FoundIn]:
        found = []
        for number, query in enumerate(body.queries):
            try:
                found.append(search_text(snapshot, query))
            except ValueError as error:
                raise ValueError(f"queries.{number}: {error}") from error
        return found

    found, milliseconds = await _timed(request, work)
    generation = found[0]["generation"]
    return {"generation": generation, "answers": [*found], "milliseconds": milliseconds}


@api.post("/similar", tags=["search"], responses=_NOT_FOUND)
async def similar(body: SimilarRequest, request: Request) -> answers.Hits:
    """More documents like one in the collection."""
    answer, milliseconds = await _timed(request, partial(search_similar, request=body))
    return {**answer, "milliseconds": milliseconds}


@api.post("/nearest", tags=["search"])
async def nearest(body: NearestRequest, request: Request) -> answers.Hits:
    """The documents whose codes are nearest to a code."""
    answer, milliseconds = await _timed(request, partial(search_code, request=body))
    return {**answer, "milliseconds": milliseconds}


@api.post("/explain", tags=["search"], responses=_NOT_FOUND)
async def explain(body: ExplainRequest, request: Request) -> answers.Explanation:
    """Why a document is a hit: which bits agree, and the words that they stand for."""
    service = _service(request)
    return await service.read(
        lambda r: explain_hit(r, service.bit_words, body.query, body.id, body.code)
    )


# Documents


@api.get("/documents", tags=["documents"])
async def list_documents(
    request: Request,
    after: Annotated[
        int, Query(ge=0, le=2**63 - 1, description="What `next` of the page before says")
    ] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_K)] = 20,
) -> answers.DocumentsPage:
    """All documents, page by page, in the order of insertion.

    A client that reads all pages sees every document that stays, whatever is written meanwhile.
    """

    def work(snapshot: Snapshot) -> answers.DocumentsPage:
        now, page = snapshot.state, snapshot.page(after, limit + 1)
        return {
            "generation": now.generation,
            "total": now.n_documents,
            "documents": [whole_document(coded) for _, coded in page[:limit]],
            "next": page[limit - 1][0] if len(page) > limit else None,
        }

    return await _service(request).read(work)


@api.get("/documents/{id:rest}", tags=["documents"], responses=_NOT_FOUND)
async def get_document(
    request: Request, id: Annotated[str, Path(max_length=_LONGEST_JSON_ID)]
) -> answers.OneDocument:
    """One document. `7` is the integer if there is such an id, else the string; `"7"` is the string."""

    def work(snapshot: Snapshot) -> answers.OneDocument:
        found = stored_document(snapshot, _meant_id(snapshot, id))
        return {
            "generation": snapshot.state.generation,
            "document": whole_document(found),
        }

    return await _service(request).read(work)


def _meant_id(snapshot: Snapshot, text: str) -> Id:
    """As on the command line: JSON if that is an id in the collection, else the text as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if value in snapshot else text


@api.post("/documents/get", tags=["documents"])
async def get_documents(body: GetRequest, request: Request) -> answers.Documents:
    """Whole documents by id; those that do not exist are left out."""
    return await _service(request).read(lambda r: _documents(r, body.ids))


def _documents(snapshot: Snapshot, ids: list[Id]) -> answers.Documents:
    return {
        "generation": snapshot.state.generation,
        "documents": stored_documents(snapshot, ids),
    }


@api.post(
    "/documents",
    tags=["documents"],
    dependencies=[Depends(_need_key)],
    responses={**_WRITE_REFUSALS, **_errors({409: "An id already exists"})},
)
async def add_documents(body: AddRequest, request: Request) -> answers.Written:
    """Add documents, or replace them: all or none. They are on disk when this answers."""
    documents = [document.model_dump(exclude={"features"}) for document in body.documents]
    features = _features_of(body.documents)
    ids = Counter(document.id for document in body.documents)
    if not body.overwrite and len(ids) < len(documents):
        ((twice, n),) = ids.most_common(1)
        raise RefusedError(
            409,
            f"the id {twice!r} is in this request {n} times: nothing was written. Send each document "
            "once, or overwrite: true to keep the last",
            code="id_twice",
        )

    def work(collection: Collection) -> answers.Written:
        write = collection.upsert if body.overwrite else collection.add
        write(documents, features=features)
        return {"generation": _written_generation(collection), "written": len(ids)}

    return await _service(request).write(work)


def _features_of(documents: list[NewDocument]) -> list[list[float]] | None:
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


def _written_generation(collection: Collection) -> int:
    generation = collection.store.written_generation
    assert generation is not None  # it has just written
    return generation


@api.post(
    "/documents/delete",
    tags=["documents"],
    dependencies=[Depends(_need_key)],
    responses=_WRITE_REFUSALS,
)
async def delete_documents(body: DeleteRequest, request: Request) -> answers.Deleted:
    """Delete documents by id; the answer says how many existed."""

    def work(collection: Collection) -> answers.Deleted:
        deleted = collection.delete(body.ids)
        return {"generation": _written_generation(collection), "deleted": deleted}

    return await _service(request).write(work)


# The collection


@api.get("/stats", tags=["collection"])
async def stats(request: Request) -> answers.Stats:
    """Documents, model, and the bytes that they take."""
    service = _service(request)

    def work(snapshot: Snapshot) -> answers.Stats:
        more = {
            "writing": service.settings.api_key is not None,
            "version": __version__,
        }
        return cast(answers.Stats, {**snapshot.stats(), **more})

    return await service.read_slowly(work)


@api.get("/overview", response_model=answers.Overview, tags=["collection"])
async def overview(request: Request) -> Response:
    """The topics of the collection in words, and questions that it can answer."""
    service = _service(request)
    return await _shared(
        request, service.overviews, "overview", lambda r, _: service.overview.view(r)
    )


@api.get("/fields", tags=["collection"])
async def fields(request: Request) -> answers.Fields:
    """The metadata fields that can be filtered by, with their commonest values."""
    service = _service(request)
    return await service.read_slowly(lambda r: service.fields.view(r))


@api.get("/duplicates", response_model=answers.Duplicates, tags=["collection"])
async def duplicates(
    request: Request,
    min_similarity: Annotated[
        float,
        Query(ge=0.5, le=1, description="The share of word trigrams that texts have in common"),
    ] = MIN_SIMILARITY,
    keep: Annotated[
        Literal["first", "longest", "newest"], Query(description="Which one of several is kept")
    ] = "first",
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_GROUPS)] = 20,
) -> Response:
    """Groups of near-duplicates: a document to keep, and those whose texts are near its own."""
    service, query = _service(request), DuplicateQuery(min_similarity, keep)
    return await _shared(
        request,
        service.comparisons,
        (query, offset, limit),
        lambda r, job: service.duplicates.page(r, query, offset, limit, job.check),
    )


@api.get("/map", response_model=answers.Map, tags=["collection"], responses=_NOT_FOUND)
async def collection_map(
    request: Request,
    field: Annotated[
        str | None, Query(max_length=200, description="Metadata field that gives the colours")
    ] = None,
) -> Response:
    """The points of all documents, for the page's map."""
    service = _service(request)
    return await _shared(
        request, service.overviews, ("map", field), lambda r, _: service.map.view(r, field)
    )


@api.post("/map/search", tags=["collection"], responses=_NOT_FOUND)
async def search_map(body: MapSearchRequest, request: Request) -> answers.FoundIn:
    """Hits with their points on the map, within one of its regions or everywhere."""
    service = _service(request)
    return await service.read(lambda r: search_on_map(r, service.map, body))


@api.get("/map/{number}", tags=["collection"], responses=_NOT_FOUND)
async def map_point(
    request: Request, number: Annotated[int, Path(ge=0, le=2**63 - 1)]
) -> answers.Documents:
    """The document of a point, by its number in the order of insertion."""

    def work(snapshot: Snapshot) -> answers.Documents:
        (id_,) = snapshot.ids_at(np.array([number]))
        if id_ is None:
            raise RefusedError(404, f"there is no document with the number {number}")
        return _documents(snapshot, [id_])

    return await _service(request).read(work)


# Operations


@operations.get("/healthz")
async def healthz() -> answers.Health:
    """Answers while the process runs."""
    return {"status": "ok"}


@operations.get("/readyz", responses=_REFUSALS)
async def readyz(request: Request) -> answers.Health:
    """Answers while the collection can be searched."""
    await _service(request).read(len)
    return {"status": "ready"}


@operations.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Counts for Prometheus, of all workers together."""
    service = _service(request)
    documents = generation = None
    with suppress(NoCollectionError):
        now = await service.read(lambda r: r.state)
        documents, generation = now.n_documents, now.generation
    return Response(service.metrics.text(documents, generation), media_type=CONTENT_TYPE)
