"""A real Chromium, a service with something of everything, and pages whose complaints are collected."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash import Hasher
from boltzhash.collection import Collection
from boltzhash.server.map_file import StoredMap, save_map, with_names
from snapshots import Newest

AXE = Path(__file__).parents[1] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=1</script> moon & "star"'


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Playwright's event loop runs in this thread, where no other can be run until it ends."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium: `make test-browser` installs it, or says how")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def site(
    tmp_path_factory: pytest.TempPathFactory,
    serve: Callable[..., Any],
    corrsh: Hasher,
    documents: Any,
) -> Iterator[Any]:
    """A service with a map, whose points are put where the test can find them."""
    folder = tmp_path_factory.mktemp("site") / "collection"
    with Collection.create(folder, corrsh) as collection:
        collection.add(documents)
        collection.add([{"id": "hostile", "text": HOSTILE, "metadata": {"topic": HOSTILE}}])
        collection.add([{"id": "edited", "text": documents[1]["text"] + " again"}])
        rows = Newest(collection).rows()
        grid = np.array([[i % 10, i // 10] for i in range(len(rows.places))], dtype=np.float32)
        stored = StoredMap(corrsh.fingerprint(), rows.places, rows.codes, grid / 10)
        save_map(collection, with_names(Newest(collection), stored))
    with serve(folder) as service:
        yield service


class Watched:
    """A page whose complaints are collected."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.address = address
        self.complaints: list[str] = []
        page.on("console", lambda message: self._console(message))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._request(request))

    def _console(self, message: Any) -> None:
        by_the_test = "willReadFrequently" in message.text  # it looks at the pixels of a canvas
        if message.type in ("error", "warning") and not by_the_test:
            self.complaints.append(message.text)

    def _request(self, request: Any) -> None:
        if not request.url.startswith(self.address):
            self.complaints.append(f"asked elsewhere: {request.url}")

    def open(self, query: str = "") -> Any:
        self.page.goto(f"{self.address}/{query}")
        self.page.wait_for_load_state("networkidle")
        return self.page


@pytest.fixture
def watched(browser: Any, site: Any) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    context.set_default_timeout(60_000)
    made = Watched(context.new_page(), site.address)
    yield made
    context.close()
    assert made.complaints == []


def until(page: Any, expression: str) -> None:
    """Wait until it holds. Playwright's own way needs eval, which the page's policy forbids."""
    wait_for(page, lambda: page.evaluate(expression), expression)


def wait_for(page: Any, holds: Callable[[], Any], what: str) -> None:
    """Wait until it holds, for as long as a busy machine may need; the page lives on meanwhile."""
    for _ in range(1200):
        if holds():
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"it never came to hold: {what}")


def titles(page: Any) -> list[str]:
    return list(page.locator(".hit .title").all_inner_texts())


def until_shown(page: Any, hits: list[dict[str, Any]]) -> None:
    found = json.dumps([hit["title"] for hit in hits])
    shown = "JSON.stringify([...document.querySelectorAll('.hit .title')].map(t => t.innerText))"
    at_rest = "!document.querySelector('.results[aria-busy]')"  # no other answer is to come
    until(page, f"{shown} === JSON.stringify({found}) && {at_rest}")


def violations(page: Any) -> list[tuple[str, list[str]]]:
    """What axe finds; nothing where it could not be installed."""
    if not AXE.is_file():
        return []
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document)")
    return [
        (violation["id"], [node["html"][:200] for node in violation["nodes"][:3]])
        for violation in found["violations"]
    ]
