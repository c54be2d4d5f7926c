"""Errors as answers: a status, and JSON that says what to change."""

from __future__ import annotations

import errno
import json
import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from boltzhash.errors import (
    CollectionBusyError,
    CollectionError,
    CollectionGoneError,
    DuplicateIdError,
    ModelError,
)
from boltzhash.server.settings import MAX_HEADERS

_log = logging.getLogger("uvicorn.error")

# Names of errors for programs: one for each status, and more where several share one.
_CODES = {
    400: "bad_request",
    401: "key_needed",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    409: "id_exists",
    413: "body_too_large",
    415: "not_json",
    421: "unknown_host",
    422: "invalid",
    431: "headers_too_large",
    499: "hung_up",
    500: "internal",
    503: "busy",
    507: "disk_full",
}
_MORE_CODES = (
    "collection_damaged compressed_body id_twice missing_host no_collection no_such_document "
    "other_site read_only writing_is_off"
)
CODES = (*_CODES.values(), *_MORE_CODES.split())


class RefusedError(Exception):
    """A request that is not answered as asked."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, **headers: str
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def response(self) -> Response:
        return error_response(self.status, self.message, headers=self.headers, code=self.code)


class NoCollectionError(RefusedError):
    """There is nothing to serve: not yet, or no longer."""

    def __init__(self) -> None:
        super().__init__(
            503,
            "there is no collection where the service was told to look: it has not been made yet, or "
            "it was deleted or moved. Make one with `boltzhash index`, or put it back: the service "
            "will find it",
            code="no_collection",
            retry_after="5",
        )


def busy(message: str) -> RefusedError:
    return RefusedError(503, message, retry_after="1")


def error_response(
    status: int,
    message: str,
    details: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    code: str | None = None,
) -> Response:
    """JSON in ASCII: what was sent may hold anything, even halves of characters.

    ``code`` is one of :data:`CODES`; if it is left out, that of the status.
    """
    code = code or _CODES.get(status, "bad_request")
    error: dict[str, Any] = {"status": status, "code": code, "message": message}
    if details:
        error["details"] = details
    return Response(
        json.dumps({"error": error}).encode(),
        status,
        headers=dict(headers or {}),
        media_type="application/json",
    )


def headers_too_large() -> RefusedError:
    return RefusedError(
        431, f"the headers are larger than {MAX_HEADERS // 1024} KiB: send less", connection="close"
    )


def missing_host() -> RefusedError:
    return RefusedError(
        400, "the request has no Host header, which HTTP/1.1 demands", code="missing_host"
    )


def as_refusal(error: Exception) -> RefusedError:
    """The refusal that tells a client about an error in the collection."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, CollectionBusyError):
        return busy("someone else is writing to the collection; nothing was changed. Try again")
    if isinstance(error, CollectionGoneError):
        _log.error("%s", error)
        return busy(
            "the collection was deleted or replaced while this was written, and it may be lost. Look "
            "whether it is there, or write it again"
        )
    if isinstance(error, DuplicateIdError):
        return RefusedError(409, f"{error}. Send overwrite: true to replace documents")
    if isinstance(error, CollectionError | ModelError):
        _log.error("%s", error)
        return _damaged("the collection cannot be read: see the log of the service")
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return RefusedError(507, "the disk of the service is full; nothing was changed")
    if isinstance(error, PermissionError):
        return RefusedError(
            403,
            "the collection is read-only: the service cannot write to its files",
            code="read_only",
        )
    if isinstance(error, OSError):
        _log.error("%s", error)
        return _damaged("a file of the collection cannot be read: see the log of the service")
    if isinstance(error, ValueError | TypeError | RecursionError):
        return RefusedError(422, str(error))
    raise error


def _damaged(message: str) -> RefusedError:
    return RefusedError(500, message, code="collection_damaged")


async def answer_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return error.response()


async def answer_http_error(request: Request, error: Exception) -> Response:
    """Say in our words why the framework refuses; or lead to the address without its last slash."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and (address := _without_slash(request)) is not None:
        return Response(status_code=307, headers={"location": address})
    messages = {
        400: "the body must be JSON that is not nested deeper than a few hundred levels",
        404: "there is nothing at this address: /docs lists what there is",
        405: f"{request.method} is not allowed at this address: /docs lists what is",
    }
    message = messages.get(error.status_code, str(error.detail))
    headers = dict(error.headers or {})
    if headers.get("Allow") == "GET":
        headers["Allow"] = "GET, HEAD"
    return error_response(error.status_code, message, headers=headers)


def _without_slash(request: Request) -> str | None:
    """Where to look instead, relative to here: a proxy may speak TLS, and have put us under a path."""
    path = request.scope["path"]
    shorter = {**request.scope, "path": path[:-1]}
    if not path[:-1] or path[-1] != "/":
        return None
    if all(route.matches(shorter)[0] is Match.NONE for route in request.app.routes):
        return None
    name = quote(path[:-1].rpartition("/")[2], safe="")
    query = request.scope["query_string"].decode("latin-1")
    return f"../{name}?{query}" if query else f"../{name}"


async def answer_invalid(request: Request, error: Exception) -> Response:
    """Name the problem of each field; the value is not repeated: it may be huge or hostile."""
    if request.method == "POST" and "json" not in request.headers.get("content-type", ""):
        return error_response(
            415, "the body must come with the header content-type: application/json"
        )
    errors: list[dict[str, Any]] = error.errors()  # type: ignore[attr-defined]  # RequestValidationError
    details = [
        {"where": ".".join(map(str, e["loc"]))[:200], "problem": e["msg"][:300]}
        for e in errors[:20]
    ]
    first = details[0]
    message = f"{first['where']}: {first['problem']}"
    return error_response(422, message, details)


async def answer_bug(_: Request, error: Exception) -> Response:
    return error_response(500, "the service has failed: this is a bug; its log says more")
