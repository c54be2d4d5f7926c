"""A short way for plain searches, of which there are most.

FastAPI takes as long to find a route, read a body and fill in arguments as a search by codes takes. Here
that is done by hand for one address. Whatever is not a valid search goes the long way, so that there is
one place that says what is wrong with a request.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

from pydantic import ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from boltzhash.server.messages import SearchRequest
from boltzhash.server.refusals import RefusedError, refusal_response
from boltzhash.server.routes import search
from boltzhash.server.service import Service

_PATH = "/v1/search"
_ROUTE = SimpleNamespace(path=_PATH)  # what requests are counted by
_JSON = (b"content-type", b"application/json")


class Express:
    """ASGI middleware between the guard, which has read the body, and FastAPI."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _may_be_plain_search(scope):
            await self._app(scope, receive, send)
            return
        message = await receive()
        asked = _valid_search(message)
        if asked is None:
            await self._app(scope, _again(message, receive), send)
            return
        scope["route"] = _ROUTE
        try:
            response = await search(asked, self._service)
        except RefusedError as error:
            response = refusal_response(error)
        await response(scope, receive, send)


def _may_be_plain_search(scope: Scope) -> bool:
    return (
        scope["type"] == "http"
        and scope["path"] == _PATH
        and scope["method"] == "POST"
        and not scope["query_string"]
        and _JSON in scope["headers"]
    )


def _valid_search(message: Message) -> SearchRequest | None:
    if message["type"] != "http.request" or message.get("more_body", False):
        return None
    try:
        return SearchRequest.model_validate(json.loads(message["body"]))
    except (ValidationError, ValueError, RecursionError):
        return None


def _again(message: Message, receive: Receive) -> Receive:
    """As if the message had not been read."""
    messages = [message]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed
