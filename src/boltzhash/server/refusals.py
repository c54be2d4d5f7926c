"""Errors as answers: a status, and JSON that says what to change."""

from __future__ import annotations

import errno
import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from boltzhash.errors import (
    CollectionBusyError,
    CollectionError,
    CollectionGoneError,
    DuplicateIdError,
    ModelError,
)

_log = logging.getLogger("uvicorn.error")


class RefusedError(Exception):
    """A request that is not answered as asked."""

    def __init__(
        self, status: int, message: str, *, details: Iterable[dict[str, str]] = (), **headers: str
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.details = list(details)
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class NoCollectionError(RefusedError):
    """There is nothing to serve: not yet, or no longer."""

    def __init__(self) -> None:
        super().__init__(
            503,
            "there is no collection where the service was told to look: it has not been made yet, or "
            "it was deleted or moved. Make one with `boltzhash index`, or put it back: the service "
            "will find it",
            retry_after="5",
        )


def busy(message: str) -> RefusedError:
    return RefusedError(503, message, retry_after="1")


def error_response(
    status: int,
    message: str,
    details: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """JSON in ASCII: what was sent may hold anything, even halves of characters."""
    error: dict[str, Any] = {"status": status, "message": message}
    if details:
        error["details"] = details
    return Response(
        json.dumps({"error": error}).encode(),
        status,
        headers=dict(headers or {}),
        media_type="application/json",
    )


def as_refusal(error: Exception) -> RefusedError:
    """What a client is told about an error in the collection."""
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
        return RefusedError(500, "the collection cannot be read: see the log of the service")
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return RefusedError(507, "the disk of the service is full; nothing was changed")
    if isinstance(error, PermissionError):
        return RefusedError(
            403, "the collection is read-only: the service cannot write to its files"
        )
    if isinstance(error, OSError):
        _log.error("%s", error)
        return RefusedError(
            500, "a file of the collection cannot be read: see the log of the service"
        )
    if isinstance(error, ValueError | TypeError | RecursionError):
        return RefusedError(422, str(error))
    raise error


async def answer_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return error_response(error.status, error.message, error.details, error.headers)


async def answer_http_error(request: Request, error: Exception) -> Response:
    """What the framework refuses, in our words."""
    assert isinstance(error, HTTPException)
    messages = {
        400: "the body must be JSON that is not nested deeper than a few hundred levels",
        404: "there is nothing at this address: /docs lists what there is",
        405: f"{request.method} is not allowed at this address: /docs lists what is",
    }
    message = messages.get(error.status_code, str(error.detail))
    return error_response(error.status_code, message, headers=error.headers)


async def answer_invalid(request: Request, error: Exception) -> Response:
    """What is wrong with each field; what was sent is not repeated: it may be huge or hostile."""
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
