"""What every request passes before it is looked at, and what every answer carries.

Hosts and origins, the size of bodies and the time they take, headers for security, and counts.

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
from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from boltzhash.server.logs import note_request_id
from boltzhash.server.metrics import Metrics
from boltzhash.server.refusals import error_response, headers_too_large, missing_host
from boltzhash.server.settings import (
    BODY_SECONDS,
    MAX_BODY,
    MAX_HEADERS,
    MAX_WRITE_BODY,
    Settings,
)

_SECURITY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

_RAW_SECURITY = {name.encode(): value.encode() for name, value in _SECURITY.items()}

_OPEN = ("/healthz", "/readyz")  # without a key: whoever watches the service has none

_GZIP = b"\x1f\x8b"  # how what gzip wrote begins; JSON does not

SILENCE_SECONDS = 1.0  # of a client whose body is refused: it has stopped sending, and listens


Head = Mapping[str, str]  # the headers of a request, by their names in lower case


def _head_of(scope: Scope) -> Head:
    """The first of each name, as Starlette's Headers has it; that looks through all every time."""
    decoded = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
    ]
    return dict(reversed(decoded))


class _RefusedError(Exception):
    def __init__(self, response: Response) -> None:
        self.response = response


class _GoneError(Exception):
    """The client hung up before it had sent everything: half a request is not a request."""


class Guard:
    """ASGI middleware around the whole service."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        headers = _head_of(scope)
        request_id = note_request_id(headers.get("x-request-id"))
        extra = {"x-request-id": request_id, **self._cross_origin_headers(headers)}
        outgoing = _Outgoing(send, extra)
        method = scope["method"]
        if method == "HEAD":  # uvicorn leaves out the body
            scope = {**scope, "method": "GET"}
        try:
            refusal = self._refusal(scope, headers)
            if refusal is None and scope["path"] not in _OPEN:
                refusal = self._refusal_of_reader(headers)
            if refusal is not None:
                raise _RefusedError(refusal)
            body = await self._body(headers, receive)
            await self._app(scope, _replay(body, receive), outgoing.send)
        except _RefusedError as refused:
            await refused.response(scope, receive, outgoing.send)
        except _GoneError:
            pass
        except Exception:
            outgoing.status = 500  # something further out answers that way
            raise
        finally:
            # By the pattern of the route: paths that clients make up must not become labels.
            route = getattr(scope.get("route"), "path", "other")
            elapsed = time.perf_counter() - start
            self._metrics.observe(method, route, outgoing.status, elapsed)

    def _refusal(self, scope: Scope, headers: Head) -> Response | None:
        refusal = self._refusal_of_head(scope, headers)
        if refusal is not None:
            return refusal
        origin = headers.get("origin")
        if origin is None:
            return _foreign() if _is_embedded_elsewhere(headers) else None
        if origin.partition("://")[2] == headers.get("host"):
            return None
        if origin not in self._settings.origins:
            return _foreign()
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            allowed = {
                "access-control-allow-methods": "GET, POST",
                "access-control-allow-headers": "authorization, content-type",
                "access-control-max-age": "600",
            }
            return Response(status_code=204, headers=allowed)
        return None

    def _refusal_of_reader(self, headers: Head) -> Response | None:
        if may_read(self._settings, headers):
            return None
        return error_response(
            401,
            "reading needs a key here: send it as `Authorization: Bearer KEY`, or as a password",
            # Alone: Chromium does not ask for a password if the line names Bearer as well.
            headers={"www-authenticate": 'Basic realm="boltzhash"'},
        )

    def _refusal_of_head(self, scope: Scope, headers: Head) -> Response | None:
        size = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if size + len(scope["raw_path"]) + len(scope["query_string"]) > MAX_HEADERS:
            return headers_too_large()
        if "host" not in headers:
            return missing_host()
        if not self._is_our_host(headers["host"]):
            return error_response(
                421,
                "this service answers to localhost, to IP addresses and to names that it was told: "
                "start it with --allowed-hosts NAME, or with --allow-origin https://NAME where pages "
                "of that site ask as well",
            )
        return None

    def _is_our_host(self, host: str) -> bool:
        return _is_host_of(self._settings.origins, self._settings.allowed_hosts, host)

    def _cross_origin_headers(self, headers: Head) -> dict[str, str]:
        origin = headers.get("origin")
        if origin is None or origin not in self._settings.origins:
            return {}
        return {"access-control-allow-origin": origin, "vary": "Origin"}

    async def _body(self, headers: Head, receive: Receive) -> bytes:
        """The whole body, within limits of size and time."""
        if "content-length" in headers and "transfer-encoding" in headers:
            await _drain(receive)  # which of the two holds is what attackers make use of
            raise _RefusedError(_two_lengths())
        limit = MAX_WRITE_BODY if is_key(self._settings, headers) else MAX_BODY
        announced = headers.get("content-length", "")
        if announced.isascii() and announced.isdigit() and len(announced) < 20:
            if int(announced) > limit:
                if headers.get("expect", "").lower() != "100-continue":  # else nothing is sent yet
                    await _drain(receive)
                raise _RefusedError(_too_large(limit))
        elif announced:
            raise _RefusedError(_bad_length())
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body, is_more_coming = await _read_body(receive, limit)
        except TimeoutError:
            raise _RefusedError(
                error_response(
                    408,
                    f"the body did not arrive within {BODY_SECONDS:g} s: send it faster, or less",
                    headers={"connection": "close"},
                )
            ) from None
        if len(body) > limit:
            if is_more_coming:
                await _drain(receive)
            raise _RefusedError(_too_large(limit))
        coding = headers.get("content-encoding", "identity").lower()
        if coding != "identity" or body.startswith(_GZIP):
            raise _RefusedError(_compressed("gzip" if coding == "identity" else coding))
        return body


@lru_cache(maxsize=64)  # hardly any service has more names, and every request has one
def _is_host_of(origins: tuple[str, ...], allowed_hosts: tuple[str, ...], host: str) -> bool:
    if "*" in allowed_hosts:
        return True
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        of_sites = {urlsplit(origin).hostname for origin in origins}
        return name in of_sites.union(map(str.lower, allowed_hosts))
    return True


def is_key(settings: Settings, headers: Head) -> bool:
    """Whether a request carries the key for writing."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and _is_same(given, settings.api_key)


def may_read(settings: Settings, headers: Head) -> bool:
    """Whether a request may be answered: with a key for reading, if it carries one of the two.

    As a password, too, with any user: a browser asks for that, and then the page works.
    """
    if settings.read_key is None:
        return True
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        with contextlib.suppress(ValueError):
            decoded = base64.b64decode(given.strip(), validate=True).decode("latin-1")
            given, scheme = decoded.partition(":")[2], "bearer"
    keys = (settings.read_key, settings.api_key)
    return scheme.lower() == "bearer" and any(_is_same(given, key) for key in keys)


def _is_same(given: str, key: str | None) -> bool:
    """Digests are compared, in constant time."""
    if key is None:
        return False
    theirs = hashlib.sha256(given.strip().encode("latin-1", "replace")).digest()
    return hmac.compare_digest(hashlib.sha256(key.encode()).digest(), theirs)


def _is_embedded_elsewhere(headers: Head) -> bool:
    """Whether a page of another site loads this as a picture, a script or a frame.

    Browsers send no Origin with those, but say so in another header. Following a link to us is fine.
    """
    if headers.get("sec-fetch-site") not in ("cross-site", "same-site"):
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != (
        "navigate",
        "document",
    )


def _foreign() -> Response:
    return error_response(
        403,
        "requests from pages of other sites are refused: start the service with --allow-origin to "
        "let one in",
        code="other_site",
    )


def _too_large(limit: int) -> Response:
    return error_response(
        413,
        f"the body must have at most {limit} bytes: send less, or in several requests",
        headers={"connection": "close"},
    )


def _compressed(coding: str) -> Response:
    return error_response(
        415,
        f"the body is compressed ({coding[:40]}), and the service reads plain JSON: send it as it is",
        code="compressed_body",
    )


def _two_lengths() -> Response:
    return error_response(
        400,
        "the request has both content-length and transfer-encoding: send one of them",
        headers={"connection": "close"},
    )


def _bad_length() -> Response:
    return error_response(
        400, "content-length must be a number of bytes", headers={"connection": "close"}
    )


async def _read_body(receive: Receive, limit: int) -> tuple[bytes, bool]:
    """The body, or enough of it to show that it exceeds the limit; and whether more is to come."""
    body, is_more_coming = bytearray(), True
    while is_more_coming and len(body) <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        body += message.get("body", b"")
        is_more_coming = message.get("more_body", False)
    return bytes(body), is_more_coming


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


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replayed() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


class _Outgoing:
    """Adds headers to an answer, and notes its status."""

    def __init__(self, send: Send, extra: dict[str, str]) -> None:
        self._send = send
        self._extra = {name.encode(): value.encode("latin-1") for name, value in extra.items()}
        self.status = 499  # until there is an answer

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": self._with_ours(message["headers"])}
        await self._send(message)

    def _with_ours(self, given: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Those of the answer that are not ours to say, and ours."""
        ours = {**_RAW_SECURITY, **self._extra}
        headers = [pair for pair in given if pair[0] not in ours]
        if all(name != b"cache-control" for name, _ in headers):
            headers.append((b"cache-control", b"no-store"))
        return [*headers, *ours.items()]
