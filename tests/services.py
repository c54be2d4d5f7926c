"""Real services: a process of ``boltzhash serve`` on a free port, over a small collection."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn

from boltzhash import LSH, Hasher, Network, SemanticHasher, Training
from boltzhash.collection import Collection
from boltzhash.server.app import create_app
from boltzhash.server.protocol import PunctualProtocol
from boltzhash.server.run import listen
from boltzhash.server.settings import Settings
from command_line import wait_for
from small_corpus import TOPICS

KEY = "a-key-for-tests"


class Served:
    """A running service."""

    def __init__(self, process: subprocess.Popen[str], address: str, log: Path) -> None:
        self.process = process
        self.address = address
        self.log = log
        json = {"content-type": "application/json"}  # of bodies that are sent as they are as well
        self.client = httpx.Client(base_url=address, timeout=30, headers=json)
        key = {"authorization": f"Bearer {KEY}"}
        self.writer = httpx.Client(base_url=address, timeout=30, headers=json | key)

    @property
    def port(self) -> int:
        return httpx.URL(self.address).port or 0

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.client.post(path, json=body)

    def write(self, path: str, **body: Any) -> httpx.Response:
        return self.writer.post(path, json=body)

    def answers(self) -> bool:
        try:
            self.client.get("/healthz").raise_for_status()
        except httpx.TransportError:
            return False
        return True

    def stop(self) -> int:
        """End it as a service manager would; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=40)


@contextmanager
def serving(collection: Path, *options: str, key: str | None = KEY) -> Iterator[Served]:
    """``boltzhash serve`` over a collection, ready to answer."""
    # A service that is killed leaves its temporary folder.
    environment = {**os.environ, "TMPDIR": str(collection.parent)}
    environment.pop("BOLTZHASH_API_KEY", None)
    if key is not None:
        environment["BOLTZHASH_API_KEY"] = key
    log = collection.parent / f"{collection.name}-{time.monotonic_ns()}.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "boltzhash", "serve", str(collection), "--port", "0", *options],
            env=environment,
            stderr=stderr,
            stdout=subprocess.DEVNULL,
            text=True,
        )
    served = None
    try:
        address = wait_for(lambda: _address(log), process, log)
        assert address is not None
        served = Served(process, address, log)
        wait_for(served.answers, process, log)
        yield served
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if served is not None:
            served.client.close()
            served.writer.close()


def _address(log: Path) -> str | None:
    found = re.search(r"http://\S+:\d+", log.read_text())
    return found and found.group()


class InThread(NamedTuple):
    """A service in a thread of this process."""

    port: int
    server: uvicorn.Server


@contextmanager
def serving_in_a_thread(settings: Settings) -> Iterator[InThread]:
    """The service over a collection, on a real socket, in this process."""
    listening = listen("127.0.0.1", 0)
    app = create_app(settings)
    config = uvicorn.Config(app, http=PunctualProtocol, ws="none", log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield InThread(listening.getsockname()[1], server)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture(scope="session")
def serve() -> Callable[..., Any]:
    """``with serve(folder, *options) as service``."""
    return serving


@pytest.fixture(scope="session")
def documents(texts: list[str]) -> list[dict[str, Any]]:
    """Ninety documents of three topics, and one that is a copy of the first."""
    topics = list(TOPICS)
    return [
        *(
            {
                "id": f"{topics[i // 30]}-{i}",
                "text": text,
                "metadata": {"topic": topics[i // 30], "number": i},
            }
            for i, text in enumerate(texts)
        ),
        {"id": 7, "text": texts[0], "metadata": {"title": "A copy", "copied": True}},
    ]


@pytest.fixture(scope="session")
def lsh(texts: list[str]) -> Hasher:
    """Codes so short that many documents tie."""
    return LSH(n_bits=16).fit(texts)


@pytest.fixture(scope="session")
def corrsh(texts: list[str]) -> Hasher:
    """A model with a decoder and couplings."""
    return SemanticHasher(
        n_bits=32,
        rank=10,
        n_components=10,
        training=Training(epochs=10),
        network=Network(hidden_units=32),
    ).fit(texts)


def _make(folder: Path, hasher: Hasher, documents: list[dict[str, Any]]) -> Path:
    with Collection.create(folder, hasher) as collection:
        collection.add(documents)
    return folder


@pytest.fixture
def folder(tmp_path: Path, lsh: Hasher, documents: list[dict[str, Any]]) -> Path:
    """A collection of the test's own."""
    return _make(tmp_path / "collection", lsh, documents)


@pytest.fixture
def service(folder: Path) -> Iterator[Served]:
    """A service over a collection of the test's own."""
    with serving(folder) as made:
        yield made


@pytest.fixture(scope="session")
def served_folder(
    tmp_path_factory: pytest.TempPathFactory, corrsh: Hasher, documents: list[dict[str, Any]]
) -> Path:
    return _make(tmp_path_factory.mktemp("served") / "collection", corrsh, documents)


@pytest.fixture(scope="session")
def served(served_folder: Path) -> Iterator[Served]:
    """A service for tests that leave its collection as it is."""
    with serving(served_folder) as service:
        yield service
