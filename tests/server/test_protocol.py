"""The connections of the service; a uvicorn without the parts that they are built on is named."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

from boltzhash.cli.parser import MISSING_EXTRA, main
from boltzhash.errors import MissingExtraError
from boltzhash.server.protocol import check_uvicorn
from boltzhash.server.run import FairLoop
from boltzhash.server.settings import Settings
from services import serving_in_a_thread


def test_no_answer_waits_for_the_one_before_to_be_acknowledged(folder: Path) -> None:
    """Nagle's algorithm would hold it back, and the client's kernel takes 40 ms."""
    with (
        serving_in_a_thread(Settings(str(folder))) as served,
        httpx.Client(base_url=f"http://localhost:{served.port}") as client,
    ):
        for _ in range(2):
            assert client.get("/healthz").status_code == 200
        (kept,) = served.server.server_state.connections
        used = kept.transport.get_extra_info("socket")
        assert used.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_a_part_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_uvicorn()
    monkeypatch.delattr(H11Protocol, "send_400_response")
    monkeypatch.setattr(H11Protocol, "__init__", lambda self: self.connections + self.app)
    gone = "its H11Protocol has no send_400_response, cycle, loop, transport. "
    with pytest.raises(
        MissingExtraError, match=rf"cannot use uvicorn 0\.\S+: {gone}.*uvicorn<0\.55"
    ):
        check_uvicorn()


def test_the_service_does_not_start_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("boltzhash.server.run", "boltzhash.server.protocol"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn.protocols.http.h11_impl", None)
    assert main(["serve", str(tmp_path)]) == MISSING_EXTRA
    assert "serve cannot use uvicorn 0." in capsys.readouterr().err


def test_a_loop_accepts_one_connection_at_a_time() -> None:
    """So that another worker can take the next, and as many may wait as before."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as listening:
        listening.setblocking(False)
        clients = [socket.create_connection(listening.getsockname(), 60) for _ in range(10)]
        accepted: list[Any] = []

        class Noted(asyncio.Protocol):
            def connection_made(self, transport: Any) -> None:
                accepted.append(transport)

        loop = FairLoop()
        server = loop.run_until_complete(loop.create_server(Noted, sock=listening, backlog=50))
        counts = []
        while len(accepted) < len(clients):
            loop.call_soon(loop.stop)
            loop.run_forever()  # once round
            counts.append(len(accepted))
        assert max(b - a for a, b in zip([0, *counts], counts, strict=False)) == 1
        clients += [socket.create_connection(listening.getsockname(), 60) for _ in range(40)]
        for end in (*clients, *accepted):
            end.close()
        server.close()
        loop.run_until_complete(server.wait_closed())
        loop.close()
