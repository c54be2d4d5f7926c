"""Searches that wait together: answered as one by one, none held up or spoilt by another."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from boltzhash import Hasher
from boltzhash.collection import Collection, collection
from boltzhash.encoding.coding import coded_queries
from boltzhash.server import lanes
from boltzhash.server.answers import search_text
from boltzhash.server.lanes import SearchLane
from boltzhash.server.messages import SearchRequest
from boltzhash.server.refusals import RefusedError
from boltzhash.server.run import FairLoop
from boltzhash.server.settings import Settings
from services import serving_in_a_thread

LONG = 120.0  # seconds: for what must happen, however busy the machine is

TEXTS = ["star and planet", "the bread", "captain of a ship", "unheardof", "moon", "sugar -bread"]


class Held:
    """Work that begins and then waits until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, _: Collection) -> str:
        self.begun.set()
        assert self.go.wait(LONG)
        return "held"

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, LONG)


@asynccontextmanager
async def lane_of(folder: Path, seconds: float = LONG) -> AsyncIterator[SearchLane]:
    lane = SearchLane(str(folder), seconds, lambda: None)
    try:
        yield lane
    finally:
        await asyncio.to_thread(lane.close)


def searching(text: str) -> Callable[[Collection], dict[str, Any]]:
    asked = SearchRequest(text=text, k=20)
    return lambda found: search_text(found, asked)


@pytest.fixture
def coded(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The texts of each time that several are coded at once."""
    batches: list[list[str]] = []

    def noted(hasher: Hasher, texts: list[str]) -> Any:
        batches.append(texts)
        return coded_queries(hasher, texts)

    monkeypatch.setattr(collection, "coded_queries", noted)
    return batches


async def behind(held: Held, lane: SearchLane, jobs: list[Any]) -> list[Any]:
    """The outcomes of jobs that came while the lane was at something else."""
    first = asyncio.ensure_future(lane.run(held))
    await held.has_begun()
    waiting = [asyncio.ensure_future(lane.run(*job)) for job in jobs]
    await asyncio.sleep(0)
    held.go.set()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert await first == "held"
    return outcomes


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No second thread, so that what waits together is known."""
    monkeypatch.setattr(lanes, "_PATIENCE", LONG)


@pytest.mark.usefixtures("patient")
def test_searches_that_wait_are_coded_at_once_and_answered_as_one_by_one(
    folder: Path, coded: list[list[str]]
) -> None:
    async def answers() -> list[Any]:
        async with lane_of(folder) as lane:
            return await behind(Held(), lane, [(searching(text), [text]) for text in TEXTS])

    found = asyncio.run(answers())
    assert coded == [TEXTS]
    with Collection.open(folder) as alone:
        assert found == [searching(text)(alone) for text in TEXTS]


@pytest.mark.usefixtures("patient")
def test_a_long_text_waits_for_its_turn(folder: Path, coded: list[list[str]]) -> None:
    texts = ["moon", "star " * 1000, "bread"]

    async def answers() -> list[Any]:
        async with lane_of(folder) as lane:
            return await behind(Held(), lane, [(searching(text), [text]) for text in texts])

    found = asyncio.run(answers())
    assert coded == [["moon", "bread"]]
    with Collection.open(folder) as alone:
        assert found == [searching(text)(alone) for text in texts]


@pytest.mark.usefixtures("patient")
def test_an_error_is_of_the_one_that_made_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("in coding them all")

    def refuse(_: Collection) -> None:
        raise ValueError("mine")

    monkeypatch.setattr(collection, "coded_queries", fail)

    async def answers() -> list[Any]:
        async with lane_of(folder) as lane:
            jobs = [(searching(TEXTS[0]), [TEXTS[0]]), (refuse,), (searching("moon"), ["moon"])]
            return await behind(Held(), lane, jobs)

    first, refused, last = asyncio.run(answers())
    assert first["hits"]
    assert last["hits"]
    assert isinstance(refused, RefusedError)
    assert (refused.status, refused.message) == (422, "mine")


@pytest.mark.usefixtures("patient")
def test_what_nobody_waits_for_is_not_begun(folder: Path) -> None:
    begun: list[str] = []

    async def ask() -> None:
        async with lane_of(folder) as lane:
            held = Held()
            first = asyncio.ensure_future(lane.run(held))
            await held.has_begun()
            gone = asyncio.ensure_future(lane.run(lambda _: begun.append("gone")))
            stays = asyncio.ensure_future(lane.run(lambda _: begun.append("stays")))
            await asyncio.sleep(0)
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
            held.go.set()
            await asyncio.gather(first, stays)

    asyncio.run(ask())
    assert begun == ["stays"]


def test_a_search_that_takes_long_holds_nobody_up(folder: Path) -> None:
    """Those that were answered before it are told, those behind it get the other thread."""

    async def ask() -> None:
        async with lane_of(folder) as lane:
            slow = Held()
            before = asyncio.ensure_future(lane.run(len))
            waiting = asyncio.ensure_future(lane.run(slow))
            after = [asyncio.ensure_future(lane.run(len)) for _ in range(5)]
            assert await before == 91
            assert await asyncio.gather(*after) == [91] * 5
            assert await lane.run(len) == 91  # one that comes while it is known to be slow
            assert not waiting.done()
            slow.go.set()
            assert await waiting == "held"

    asyncio.run(ask())


def test_what_takes_too_long_is_refused_and_the_lane_goes_on(folder: Path) -> None:
    async def ask() -> None:
        async with lane_of(folder, seconds=0.2) as lane:
            slow = [Held(), Held()]  # both threads
            outcomes = [asyncio.ensure_future(lane.run(held)) for held in slow]
            behind = asyncio.ensure_future(lane.run(len))
            for outcome in (*outcomes, behind):
                with pytest.raises(RefusedError, match=r"took longer than 0\.2 s") as refused:
                    await outcome
                assert refused.value.status == 503
            for held in slow:
                held.go.set()

    async def go_on() -> None:
        async with lane_of(folder) as lane:
            assert await lane.run(len) == 91

    asyncio.run(ask())
    asyncio.run(go_on())


def test_closing_ends_what_has_not_begun(folder: Path) -> None:
    async def ask() -> None:
        lane = SearchLane(str(folder), LONG, lambda: None)
        slow = [Held(), Held()]
        begun = [asyncio.ensure_future(lane.run(held)) for held in slow]
        for held in slow:
            await held.has_begun()
        waiting = asyncio.ensure_future(lane.run(len))
        await asyncio.sleep(0)
        assert lane._asked

        def let_go_when_the_queue_is_empty() -> None:
            while lane._asked:  # both threads are held: only closing empties it
                threading.Event().wait(0.01)
            for held in slow:
                held.go.set()

        threading.Thread(target=let_go_when_the_queue_is_empty).start()
        lane.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await asyncio.gather(*begun) == ["held", "held"]

    asyncio.run(ask())


# Codes made ahead


def test_codes_that_were_made_ahead_are_those_of_the_model_that_holds(
    folder: Path, corrsh: Hasher
) -> None:
    with Collection.open(folder) as one, Collection.open(folder) as other:
        expected = [one.search(text).ids for text in TEXTS]
        one.code_ahead(TEXTS)
        assert [one.search(text).ids for text in TEXTS] == expected
        other.rehash(corrsh)
        answer = one.search(TEXTS[0])
        assert answer.code is not None
        assert answer.code.tobytes() == corrsh.transform([TEXTS[0]]).tobytes()


# Connections


def test_a_loop_accepts_one_connection_at_a_time() -> None:
    """So that another worker can take the next, and as many may wait as before."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as listening:
        listening.setblocking(False)
        clients = [socket.create_connection(listening.getsockname(), LONG) for _ in range(10)]
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
        clients += [socket.create_connection(listening.getsockname(), LONG) for _ in range(40)]
        for end in (*clients, *accepted):
            end.close()
        server.close()
        loop.run_until_complete(server.wait_closed())
        loop.close()


# The short way


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ('{"text": "moon", "k": 3}', 200),
        ('{"text": "moon", "facets": [], "by": "codes", "where": {"nothing": 1}}', 200),
        ('{"text": "  "}', 422),
        ('{"text": "moon", "k": 0}', 422),
        ('{"txt": "moon"}', 422),
        ('{"text": "-moon"}', 422),
        ('{"text": ', 422),
        ("[" * 5000, 400),
        ("", 422),
    ],
)
def test_the_short_way_answers_as_the_long_one(folder: Path, body: str, status: int) -> None:
    with (
        serving_in_a_thread(Settings(str(folder))) as served,
        httpx.Client(base_url=f"http://127.0.0.1:{served.port}", timeout=LONG) as client,
    ):
        answers = [
            client.post("/v1/search", content=body, headers={"content-type": kind})
            for kind in ("application/json", "application/json; charset=utf-8")
        ]
        counted = client.get("/metrics").text
    short, long = [{**answer.json(), "milliseconds": None} for answer in answers]
    assert [answer.status_code for answer in answers] == [status, status]
    assert short == long
    assert set(answers[0].headers) == set(answers[1].headers)
    assert f'route="/v1/search",status="{status}"}} 2.0' in counted
