"""Starting uvicorn: one process, or several that a parent keeps alive."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from boltzhash.collection.engines import parse_location
from boltzhash.server.app import create_app
from boltzhash.server.logs import LOGGING
from boltzhash.server.protocol import PunctualProtocol
from boltzhash.server.settings import SHUTDOWN_SECONDS, Settings


def run(
    settings: Settings, host: str, port: int, workers: int, announce: Callable[[str], object]
) -> bool:
    """Serve until a signal ends it; requests accepted by then are finished.

    ``announce`` is told the address. False if the service could not start.
    """
    settings.to_environment()
    listening = listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    served = parse_location(settings.collection).shown()
    announce(f"http://{shown}:{listening.getsockname()[1]}/ serves {served} (stop with Ctrl-C)")
    config = uvicorn.Config(
        create_app(settings) if workers == 1 else "boltzhash.server.app:app_of_worker",
        factory=workers > 1,
        host=host,
        port=port,
        workers=workers,
        loop="boltzhash.server.run:FairLoop" if workers > 1 and sys.platform != "win32" else "auto",
        http=PunctualProtocol,
        ws="none",
        lifespan="on",
        log_config=LOGGING,
        log_level="warning",
        access_log=False,  # a reverse proxy has a better log, and queries are nobody's business
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_worker_healthcheck=30,  # a dead worker is noticed at once, a busy one is not dead
    )
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    with listening:
        if workers > 1:
            Multiprocess(config, sockets=[listening]).run()
            return True
        # uvicorn ends by raising once more the signal that ended it; we have to tidy up first.
        signal.signal(signal.SIGTERM, lambda *_: None)
        server = uvicorn.Server(config)
        server.run(sockets=[listening])
        return server.started


class FairLoop(asyncio.SelectorEventLoop):
    """Accepts one connection at a time, so that workers share those that come at once.

    asyncio accepts as many as may wait: all sixty-four of a client went to the worker that was woken
    first, and the other had nothing to do.
    """

    async def create_server(
        self, *args: Any, sock: socket.socket | None = None, backlog: int = 100, **how: Any
    ) -> asyncio.Server:
        if sock is None:
            return await super().create_server(*args, backlog=backlog, **how)
        server = await super().create_server(*args, sock=sock, backlog=1, **how)
        sock.listen(backlog)  # as many may wait as before
        return server


def listen(host: str, port: int) -> socket.socket:
    """The socket that all workers share; an OSError names the address."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # With the protocol named, asyncio sets TCP_NODELAY on each connection; without it the second
        # answer on a connection waits 40 ms for the client to acknowledge the first.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        raise OSError(
            error.errno, f"cannot listen on {host} port {port}: {error.strerror}"
        ) from error
    listening.set_inheritable(True)
    return listening
