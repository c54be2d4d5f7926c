"""HTTP/1.1 for clients of all kinds: one that takes too long to ask or to listen is disconnected.

Why ours: uvicorn does not limit the time that headers or a client reading its answer may take, so
without a proxy in front a few slow clients could hold every connection. It is built on parts of uvicorn
that are not documented; with a version that lacks one of them the service does not start.
"""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus
from typing import Any

import uvicorn
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from boltzhash.errors import MissingExtraError
from boltzhash.server.refusals import RefusedError, busy, headers_too_large, missing_host
from boltzhash.server.settings import HEADER_SECONDS, MAX_CONNECTIONS, SEND_SECONDS


def _wrong_uvicorn(problem: object) -> MissingExtraError:
    return MissingExtraError(
        f"serve cannot use uvicorn {uvicorn.__version__}: {problem}. Versions that it was tested with: "
        "pip install 'uvicorn<0.55'"
    )


try:
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise _wrong_uvicorn(error) from None

# Overridden or read below.
_USED = (
    "connection_made data_received on_response_complete pause_writing connection_lost "
    "send_400_response connections app cycle loop transport"
)


def check_uvicorn() -> None:
    """Fail when the service starts, rather than when the first slow client comes.

    Attributes are looked for among the names that ``__init__`` uses, since it is what sets them.
    """
    present = {*dir(H11Protocol), *vars(H11Protocol)["__init__"].__code__.co_names}
    missing = [name for name in _USED.split() if name not in present]
    if missing:
        raise _wrong_uvicorn(f"its H11Protocol has no {', '.join(missing)}")


check_uvicorn()


class PunctualProtocol(H11Protocol):
    """uvicorn's protocol with limits on time and connections, and refusals in JSON.

    uvicorn waits for the headers of a request as long as a byte arrives now and then, and forever for a
    client to read its answer: clients that do nothing else could hold it.
    """

    _deadline: asyncio.TimerHandle | None = None
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            self.app = _full
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            _cancel(self._deadline)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_for_reader()
        if self.cycle is None or self.cycle.response_complete:  # else a pipelined one has begun
            self._expect_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._deadline)
        _cancel(self._patience)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """uvicorn calls it where it has caught h11's error, which says more than ``msg``."""
        self._send_away(_refusal_of(sys.exception()))

    def _expect_request(self) -> None:
        _cancel(self._deadline)
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._send_away(
            RefusedError(
                408, f"the headers did not arrive within {HEADER_SECONDS:g} s: send them faster"
            )
        )

    def _send_away(self, refusal: RefusedError) -> None:
        """A last word, unless the client has not even read the one before; then hang up."""
        if self.transport.is_closing():
            return
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if not is_answering and self.transport.get_write_buffer_size() == 0:
            self.transport.write(_raw(refusal.response()))
        self.transport.close()  # which waits for what is written to be read
        self._wait_for_reader()

    def _wait_for_reader(self) -> None:
        """Start the clock; a connection that was closed also waits until everything is read."""
        _cancel(self._patience)
        if self.transport.get_write_buffer_size() > 0:
            self._patience = self.loop.call_later(SEND_SECONDS, self._hang_up)

    def _hang_up(self) -> None:
        if self.transport.get_write_buffer_size() > 0:
            self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def _refusal_of(problem: BaseException | None) -> RefusedError:
    """The error in bytes that should be a request, as far as h11 tells."""
    if getattr(problem, "error_status_hint", None) == 431:
        return headers_too_large()
    if "Host:" in str(problem):
        return missing_host()
    told = str(problem).partition(": ")[0]  # behind it stands what was sent, which may be anything
    return RefusedError(400, f"this is not HTTP/1.1: {told[:100]}")


def _raw(refusal: Response) -> bytes:
    """A refusal as it goes over the wire, before there is a request that it could answer."""
    refusal.headers["connection"] = "close"
    status = refusal.status_code
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
    lines += [name + b": " + value for name, value in refusal.raw_headers]
    return b"\r\n".join([*lines, b"", bytes(refusal.body)])


async def _full(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer on connections beyond the limit."""
    refusal = busy(f"{MAX_CONNECTIONS} other clients are connected. Try again")
    refusal.headers["connection"] = "close"
    await refusal.response()(scope, receive, send)
