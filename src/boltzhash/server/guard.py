"""Checks of every request before it is answered, and headers of every answer.

Hosts and origins, keys for reading, the size of bodies and the time they take, and counts.

Why not Starlette's CORSMiddleware: it does not refuse requests from other sites, it only keeps browsers
from reading the answers, so most of this would stay. Around the guard it would answer before the host is
checked, in plain text; inside it, a page that may ask could not read why it was refused.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import ipaddress
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from boltzhash.server.logs import note_request_id
from boltzhash.server.metrics import Metrics
from boltzhash.server.refusals import RefusedError, headers_too_large, missing_host
from boltzhash.server.settings import (
    BODY_SECONDS,
    MAX_BODY,
    MAX_HEADERS,
    MAX_WRITE_BODY,
    Settings,
)

_SECURITY = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; "
    b"img-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}
_OPEN = ("/healthz", "/readyz")  # without a key: a program that watches the service has none
_GZIP = b"\x1f\x8b"  # gzip's first bytes; JSON does not begin so
SILENCE_SECONDS = 1.0  # of a client whose body is refused: it has stopped sending, and listens

Headers = Mapping[str, str]  # by their names in lower case


class _GoneError(Exception):
    """The client hung up before it had sent everything: half a request is not a request."""


class Guard:
    """ASGI middleware around the whole service."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        of_sites = {urlsplit(origin).hostname for origin in settings.origins}
        self._hosts = {"localhost", *of_sites, *map(str.lower, settings.allowed_hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        headers: dict[str, str] = {}  # the first of each name
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
        ours = {**_SECURITY, b"x-request-id": note_request_id(headers.get("x-request-id")).encode()}
        if headers.get("origin") in self._settings.origins:
            ours |= {b"access-control-allow-origin": headers["origin"].encode(), b"vary": b"Origin"}
        status = 499  # until there is an answer
        body: bytes | None = None

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers_sent = {b"cache-control": b"no-store", **dict(message["headers"]), **ours}
                message = {**message, "headers": [*headers_sent.items()]}
            await send(message)

        async def replayed() -> Message:
            nonlocal body
            if body is None:
                return await receive()
            whole, body = body, None
            return {"type": "http.request", "body": whole, "more_body": False}

        method = scope["method"]
        if method == "HEAD":  # uvicorn leaves out the body
            scope = {**scope, "method": "GET"}
        try:
            preflight = self._check_head(scope, headers)
            if preflight is not None:
                await preflight(scope, receive, answer)
                return
            body = await self._body(headers, receive)
            await self._app(scope, replayed, answer)
        except RefusedError as refused:
            await refused.response()(scope, receive, answer)
        except _GoneError:
            pass
        except Exception:
            status = 500  # something further out answers that way
            raise
        finally:
            # Labels are patterns of routes: paths that clients make up must not become labels.
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.observe(method, route, status, time.perf_counter() - start)

    def _check_head(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse a request for what its head says; return the answer to a preflight."""
        size = len(scope["raw_path"]) + len(scope["query_string"])
        for name, value in scope["headers"]:
            size += len(name) + len(value) + 4
        if size > MAX_HEADERS:
            raise headers_too_large()
        if "host" not in headers:
            raise missing_host()
        if not self._is_our_host(headers["host"]):
            raise RefusedError(
                421,
                "this service answers to localhost, to IP addresses and to names that it was told: "
                "start it with --allowed-hosts NAME, or with --allow-origin https://NAME where pages "
                "of that site ask as well",
            )
        origin = headers.get("origin")
        is_ours = origin is None or origin.partition("://")[2] == headers["host"]
        if (origin is None and _is_embedded_elsewhere(headers)) or not (
            is_ours or origin in self._settings.origins
        ):
            raise RefusedError(
                403,
                "requests from pages of other sites are refused: start the service with --allow-origin "
                "to let one in",
                code="other_site",
            )
        if (
            not is_ours
            and scope["method"] == "OPTIONS"
            and "access-control-request-method" in headers
        ):
            allowed = {
                "access-control-allow-methods": "GET, POST",
                "access-control-allow-headers": "authorization, content-type",
                "access-control-max-age": "600",
            }
            return Response(status_code=204, headers=allowed)
        if scope["path"] not in _OPEN and not may_read(self._settings, headers):
            raise RefusedError(
                401,
                "reading needs a key here: send it as `Authorization: Bearer KEY`, or as a password",
                # Alone: Chromium does not ask for a password if the line names Bearer as well.
                www_authenticate='Basic realm="boltzhash"',
            )
        return None

    def _is_our_host(self, host: str) -> bool:
        if "*" in self._settings.allowed_hosts:
            return True
        try:
            name = urlsplit(f"//{host}").hostname or ""
            if name not in self._hosts:
                ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        """Return the whole body, within limits of size and time."""
        if "content-length" in headers and "transfer-encoding" in headers:
            await _drain(receive)  # which of the two holds is what attackers make use of
            raise RefusedError(
                400,
                "the request has both content-length and transfer-encoding: send one of them",
                connection="close",
            )
        limit = MAX_WRITE_BODY if is_key(self._settings, headers) else MAX_BODY
        announced = headers.get("content-length", "")
        if announced.isascii() and announced.isdigit() and len(announced) < 20:
            if int(announced) > limit:
                if headers.get("expect", "").lower() != "100-continue":  # else nothing is sent yet
                    await _drain(receive)
                raise _too_large(limit)
        elif announced:
            raise RefusedError(400, "content-length must be a number of bytes", connection="close")
        body, is_more_coming = bytearray(), True
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while is_more_coming and len(body) <= limit:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _GoneError
                    body += message.get("body", b"")
                    is_more_coming = message.get("more_body", False)
        except TimeoutError:
            raise RefusedError(
                408,
                f"the body did not arrive within {BODY_SECONDS:g} s: send it faster, or less",
                connection="close",
            ) from None
        if len(body) > limit:
            if is_more_coming:
                await _drain(receive)
            raise _too_large(limit)
        coding = headers.get("content-encoding", "identity").lower()
        if coding != "identity" or body.startswith(_GZIP):
            coding = "gzip" if coding == "identity" else coding[:40]
            raise RefusedError(
                415,
                f"the body is compressed ({coding}), and the service reads plain JSON: send it as it is",
                code="compressed_body",
            )
        return bytes(body)


def is_key(settings: Settings, headers: Headers) -> bool:
    """Return true if a request carries the key for writing."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and _is_same(credentials, settings.api_key)


def may_read(settings: Settings, headers: Headers) -> bool:
    """Return true if no key for reading is set, or if a request carries one of the two keys.

    As a password, too, with any user: a browser asks for that, and then the page works.
    """
    if settings.read_key is None:
        return True
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        with contextlib.suppress(ValueError):
            decoded = base64.b64decode(credentials.strip(), validate=True).decode("latin-1")
            credentials, scheme = decoded.partition(":")[2], "bearer"
    keys = (settings.read_key, settings.api_key)
    return scheme.lower() == "bearer" and any(_is_same(credentials, key) for key in keys)


def _is_same(candidate: str, key: str | None) -> bool:
    """Digests are compared, in constant time."""
    if key is None:
        return False
    theirs = hashlib.sha256(candidate.strip().encode("latin-1", "replace")).digest()
    return hmac.compare_digest(hashlib.sha256(key.encode()).digest(), theirs)


def _is_embedded_elsewhere(headers: Headers) -> bool:
    """Return true if a page of another site loads this as a picture, a script or a frame.

    Browsers send no Origin with those, but say so in another header. Following a link to us is fine.
    """
    if headers.get("sec-fetch-site") not in ("cross-site", "same-site"):
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != (
        "navigate",
        "document",
    )


def _too_large(limit: int) -> RefusedError:
    return RefusedError(
        413,
        f"the body must have at most {limit} bytes: send less, or in several requests",
        connection="close",
    )


async def _drain(receive: Receive) -> None:
    """Drop what still arrives, for as long as any body may take.

    A client that is cut off while sending sees a broken connection instead of the answer.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(BODY_SECONDS):
            is_more_coming = True
            while is_more_coming:
                async with asyncio.timeout(SILENCE_SECONDS):
                    message = await receive()
                is_more_coming = message.get("more_body", False)
