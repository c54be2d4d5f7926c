"""Answers that take seconds: made once for all who ask, given up when nobody waits, in nobody's way."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import httpx
import pytest

from boltzhash.collection import Snapshot
from boltzhash.server.settings import MAX_COMPUTED, Settings
from services import serving_in_a_thread

LONG = 120.0  # seconds: for what must happen, however busy the machine is

find_duplicates = Snapshot.duplicates


class Held:
    """Near-duplicates that are looked for until they are let go, or nobody waits for them."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self.has_begun = threading.Semaphore(0)
        self.has_been_given_up = threading.Event()
        self.go = threading.Event()

    def find(
        self,
        snapshot: Snapshot,
        min_similarity: float,
        *,
        keep: str,
        on_batch: Callable[[int, int], object],
    ) -> Any:
        self.begun.append(min_similarity)
        self.has_begun.release()
        while not self.go.wait(0.01):
            try:
                on_batch(0, 1)
            except Exception:
                self.has_been_given_up.set()
                raise
        return find_duplicates(snapshot, min_similarity, keep=keep)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    made = Held()
    monkeypatch.setattr(
        Snapshot, "duplicates", lambda self, *args, **how: made.find(self, *args, **how)
    )
    yield made
    made.go.set()


@pytest.fixture
def port(held: Held, folder: Path) -> Iterator[int]:
    with serving_in_a_thread(Settings(str(folder))) as served:
        yield served.port
        held.go.set()


def ask(port: int, **asked: Any) -> httpx.Response:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=LONG) as client:
        return client.get("/v1/duplicates", params=asked)


def asked_on(port: int, path: str) -> socket.socket:
    """A connection on which something was asked for, and nothing was read yet."""
    made = socket.create_connection(("127.0.0.1", port), timeout=LONG)
    made.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    return made


def test_forty_who_ask_for_the_same_get_one_answer_and_hold_nobody_up(
    port: int, held: Held
) -> None:
    with ThreadPoolExecutor(40) as clients:
        answers = [clients.submit(ask, port) for _ in range(40)]
        assert held.has_begun.acquire(timeout=LONG)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=LONG) as page:
            for path in ("/", "/v1/stats", "/v1/fields", "/v1/map"):
                assert page.get(path).status_code == 200
            assert page.post("/v1/search", json={"text": "moon"}).json()["hits"]
        assert not any(answer.done() for answer in answers)
        held.go.set()
        bodies = {answer.result().content for answer in answers}
    assert len(bodies) == 1
    assert b'"kept":"sky-0"' in bodies.pop()
    assert held.begun == [0.8]


def test_work_that_nobody_waits_for_is_given_up(port: int, held: Held) -> None:
    with asked_on(port, "/v1/duplicates"), asked_on(port, "/v1/duplicates"):
        assert held.has_begun.acquire(timeout=LONG)
        asked_on(port, "/v1/duplicates?min_similarity=0.6").close()  # before its turn has come
        end = time.monotonic() + LONG
        while 'status="499"' not in httpx.get(f"http://127.0.0.1:{port}/metrics").text:
            assert time.monotonic() < end
    assert held.has_been_given_up.wait(LONG)
    held.go.set()
    assert ask(port, min_similarity=0.7).json()["min_similarity"] == 0.7
    assert held.begun == [0.8, 0.7]


def test_work_goes_on_while_one_of_several_waits(port: int, held: Held) -> None:
    with ThreadPoolExecutor(1) as client, asked_on(port, "/v1/duplicates"):
        assert held.has_begun.acquire(timeout=LONG)
        stays = client.submit(ask, port)
        other = asked_on(port, "/v1/duplicates")
        other.close()
        held.go.set()
        assert stays.result().status_code == 200
    assert held.begun == [0.8]
    assert not held.has_been_given_up.is_set()


def test_more_different_questions_than_the_queue_takes_are_refused(port: int, held: Held) -> None:
    with ThreadPoolExecutor(2 * MAX_COMPUTED) as clients:
        asked = [0.5 + number / 100 for number in range(2 * MAX_COMPUTED)]
        answers = [clients.submit(ask, port, min_similarity=each) for each in asked]
        for answer in itertools.islice(as_completed(answers), MAX_COMPUTED):  # the others wait
            refused = answer.result()
            assert refused.status_code == 503
            assert "8 other answers of this kind" in refused.json()["error"]["message"]
            assert refused.headers["retry-after"]
        held.go.set()
        codes = [answer.result().status_code for answer in answers]
    assert (codes.count(200), codes.count(503)) == (MAX_COMPUTED, MAX_COMPUTED)


def test_who_has_written_is_not_given_an_answer_from_before(folder: Path, held: Held) -> None:
    settings = Settings(str(folder), api_key="k")
    copies = [{"id": f"copy-{i}", "text": "two of the same kind, as it were"} for i in range(2)]
    with (
        serving_in_a_thread(settings) as served,
        ThreadPoolExecutor(2) as clients,
        httpx.Client(base_url=f"http://127.0.0.1:{served.port}", timeout=LONG) as writer,
    ):
        before = clients.submit(ask, served.port)
        assert held.has_begun.acquire(timeout=LONG)
        key = {"authorization": "Bearer k"}
        body = {"documents": copies}
        written = writer.post("/v1/documents", json=body, headers=key).json()
        after = clients.submit(ask, served.port)
        held.go.set()
        assert before.result().json()["generation"] == written["generation"] - 1
        assert after.result().json()["generation"] == written["generation"]
        assert [group["kept"] for group in after.result().json()["groups"]] == ["sky-0", "copy-0"]
