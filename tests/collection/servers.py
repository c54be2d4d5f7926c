"""PostgreSQL and Milvus for the tests: on ports that nobody else has, and gone afterwards.

Two runs of the tests on one machine must not meet, and whatever ends a run must leave no server behind.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

STARTS_IN = 180.0  # seconds, on a machine that is busy
_ATTEMPTS = 3  # a port that was free may be taken by the time a server asks for it


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Whoever ends the tests with SIGTERM ends the servers as well, as with Ctrl-C."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Not under pytest's own, which is closed to the user whom root starts PostgreSQL as."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_server(pgserver: Any) -> Iterator[str]:
    """The URL of a PostgreSQL server with pgvector, which listens on a socket in a folder."""
    with temporary_folder("boltzhash-postgres-") as folder:
        server = pgserver.get_server(folder / "data", cleanup_mode="delete", start=False)
        try:
            _start_patiently(server)
            yield server.get_uri()
        finally:
            server.cleanup()


def _start_patiently(server: Any) -> None:
    """It gives itself ten seconds; on a busy machine it is found running when asked again."""
    for attempt in range(_ATTEMPTS):
        try:
            server.start()
            return
        except (subprocess.SubprocessError, AssertionError):
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(5)


@contextmanager
def milvus_server(milvus: Any) -> Iterator[str]:
    """The URL of a Milvus server."""
    with temporary_folder("boltzhash-milvus-") as folder:
        server = _started(milvus, folder)
        try:
            yield f"milvus://127.0.0.1:{server.listen_port}"
        finally:
            server.stop()


def _started(milvus: Any, folder: Path) -> Any:
    told = ""
    for attempt in range(_ATTEMPTS):
        data = folder / str(attempt)
        data.mkdir()
        server = _start(milvus, data)
        try:
            if _is_up(server):
                return server
        except BaseException:
            server.stop()
            raise
        server.stop()
        told = (data / "logs" / "milvus-stderr.log").read_text(errors="replace")[-2000:]
    raise RuntimeError(f"Milvus did not start in {_ATTEMPTS} attempts: {told}")


def _start(milvus: Any, data: Path) -> Any:
    config = milvus.MilvusServerConfig(data_dir=str(data))
    config.set("proxy.timeTickInterval", 20)  # a strongly consistent answer waits for a tick
    names = [name for name in config.configurable_items if name.endswith("_port")]
    health, clients, peers, *ports = _free_ports(3 + len(names))
    config.update(**dict(zip(names, ports, strict=True)))
    server = milvus.MilvusServer(config, wait_for_started=False)
    server.webservice_port = health
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it leaves the sockets open with which it tries ports
        patch.setenv("ETCD_CONFIG_PATH", str(_etcd_config(data, clients, peers)))
        server.start()
    return server


def _etcd_config(data: Path, clients: int, peers: int) -> Path:
    """The etcd inside would listen on 2379 and 2380, which only one can have."""
    path = data / "etcd.yaml"
    path.write_text(
        f"listen-client-urls: http://127.0.0.1:{clients}\n"
        f"advertise-client-urls: http://127.0.0.1:{clients}\n"
        f"listen-peer-urls: http://127.0.0.1:{peers}\n"
        f"initial-advertise-peer-urls: http://127.0.0.1:{peers}\n"
        f"initial-cluster: default=http://127.0.0.1:{peers}\n"
    )
    return path


def _is_up(server: Any) -> bool:
    """Waits until it answers; False where its process has ended or takes too long."""
    end = time.monotonic() + STARTS_IN
    while server.server_proc.poll() is None and time.monotonic() < end:
        try:
            url = f"http://127.0.0.1:{server.webservice_port}/healthz"
            with urllib.request.urlopen(url, timeout=5) as answer:
                if b"OK" in answer.read():
                    return True
        except OSError:
            pass
        time.sleep(0.2)
    return False


def _free_ports(n: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("", 0))
        return [one.getsockname()[1] for one in sockets]
