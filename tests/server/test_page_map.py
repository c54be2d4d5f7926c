"""The map on the page: what it calls its regions, what one points at, and what is found on it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from boltzhash import LSH
from boltzhash.collection import Collection
from boltzhash.server.map_file import StoredMap, save_map, with_names
from browsing import Watched, until, violations
from snapshots import Newest

pytestmark = pytest.mark.browser

N_GROUPS, N_THEMES, N_EACH = 8, 5, 100  # groups of themes, themes of documents
SEEN = "document.querySelectorAll('.map .region').length > 0"


class Atlas(NamedTuple):
    """A service over documents of forty themes in eight groups, and where their points lie."""

    service: Any
    folder: Path
    points: np.ndarray[Any, Any]
    told: dict[str, Any]  # as /v1/map tells it


@pytest.fixture(scope="session")
def atlas(tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., Any]) -> Iterator[Atlas]:
    rng = np.random.default_rng(0)
    texts, points = [], []
    for group in range(N_GROUPS):
        middle = np.array([0.14 + 0.24 * (group % 4), 0.25 + 0.5 * (group // 4)])
        for theme in range(N_THEMES):
            angle = 2 * np.pi * theme / N_THEMES
            around = middle + 0.05 * np.array([np.cos(angle), np.sin(angle)])
            for _ in range(N_EACH):
                own = [f"gr{group}"] * 2 + [f"th{group}{theme}{n}" for n in range(4)]
                texts.append(" ".join([*rng.choice(own, 5), own[0], own[2], "common"]))
                points.append(around + rng.normal(0, 0.008, 2))
    folder = tmp_path_factory.mktemp("atlas") / "collection"
    hasher = LSH(n_bits=64).fit(texts)
    with Collection.create(folder, hasher) as collection:
        collection.add([{"id": f"document {i}", "text": text} for i, text in enumerate(texts)])
        rows = Newest(collection).rows()
        placed = np.clip(np.array(points), 0, 1).astype(np.float32)
        stored = StoredMap(hasher.fingerprint(), rows.places, rows.codes, placed)
        save_map(collection, with_names(Newest(collection), stored))
    with serve(folder) as service:
        yield Atlas(service, folder, placed, service.client.get("/v1/map").json())


@pytest.fixture
def seen(browser: Any, atlas: Atlas) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    context.set_default_timeout(60_000)
    made = Watched(context.new_page(), atlas.service.address)
    yield made
    context.close()
    assert made.complaints == []


def open_map(seen: Watched, query: str = "?view=map") -> Any:
    page = seen.open(query)
    until(page, SEEN)
    return page


def on_screen(page: Any, points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where points lie when all is in view: the map fills its frame, stretched to at most 1.7."""
    box = page.locator(".map canvas.dots").bounding_box()
    wide, tall = 0.92 * box["width"], 0.92 * box["height"]
    scale = min(tall, wide * 1.7)
    stretch = min(1.7, wide / scale)
    left = box["x"] + (box["width"] - scale * stretch) / 2
    top = box["y"] + (box["height"] - scale) / 2
    return np.stack([points[:, 0] * scale * stretch + left, points[:, 1] * scale + top], axis=1)


def boxes(page: Any) -> dict[int, dict[str, float]]:
    """The labels in view, by region, all as of one moment."""
    found = page.evaluate(
        "[...document.querySelectorAll('.map .region')]"
        ".map(label => [Number(label.dataset.region), label.getBoundingClientRect().toJSON()])"
    )
    return dict(found)


def until_listed(page: Any, titles: list[str]) -> None:
    """Wait until these hits stand beside the map."""
    listed = "[...document.querySelectorAll('.map-hits .title')].map(title => title.innerText)"
    until(page, f"JSON.stringify({listed}) === JSON.stringify({json.dumps(titles)})")


def is_at(one: dict[int, dict[str, float]], other: dict[int, dict[str, float]]) -> bool:
    """Whether the same labels stand in the same places, but for a pixel or two."""
    return one.keys() == other.keys() and all(
        abs(one[region][side] - other[region][side]) <= 2 for region in one for side in ("x", "y")
    )


def members(told: dict[str, Any], region: int) -> set[int]:
    """The points of a region, by walking up from each."""

    def is_in(number: int | None) -> bool:
        while number is not None and number >= 0:
            if number == region:
                return True
            number = told["regions"][number]["parent"]
        return False

    return {i for i, number in enumerate(told["region_of"]) if is_in(number)}


# Names


def test_regions_are_named_by_what_sets_them_apart(atlas: Atlas) -> None:
    told = atlas.told
    tops = [r for r in told["regions"] if r["parent"] is None]
    assert {r["words"][0] for r in tops} == {f"gr{group}" for group in range(N_GROUPS)}
    leaves = set(range(len(told["regions"]))) - {r["parent"] for r in told["regions"]}
    assert len(leaves) == N_GROUPS * N_THEMES
    for leaf in leaves:
        inside = members(told, leaf)
        counts = np.bincount([i // N_EACH for i in inside])
        theme = int(counts.argmax())
        assert counts[theme] > 0.95 * N_EACH
        words = told["regions"][leaf]["words"]
        assert all(w.startswith(f"th{theme // N_THEMES}{theme % N_THEMES}") for w in words[:2])
        assert told["regions"][leaf]["size"] == len(inside)
    assert not any("common" in region["words"] for region in told["regions"])


def test_labels_never_overlap_and_there_are_more_as_one_zooms_in(seen: Watched) -> None:
    page = open_map(seen)
    before: set[int] = set()
    for zoom in (1, 2, 4):
        page = open_map(seen, f"?view=map&at=0.38,0.25,{zoom}")
        placed = boxes(page)
        for one, other in combinations(placed.values(), 2):
            apart = (
                one["x"] + one["width"] <= other["x"]
                or other["x"] + other["width"] <= one["x"]
                or one["y"] + one["height"] <= other["y"]
                or other["y"] + other["height"] <= one["y"]
            )
            assert apart, (zoom, one, other)
        frame = page.locator(".map").bounding_box()
        assert all(
            box["x"] >= frame["x"] and box["x"] + box["width"] <= frame["x"] + frame["width"]
            for box in placed.values()
        )
        assert set(placed) - before  # some that were not there before
        before |= set(placed)


# Pointing


def test_hover_and_click_take_the_point_that_is_nearest_on_the_screen(
    seen: Watched, atlas: Atlas
) -> None:
    page = open_map(seen)
    at = on_screen(page, atlas.points)
    rng = random.Random(0)
    tried = 0
    while tried < 40:
        x, y = at[rng.randrange(len(at))] + np.array([rng.uniform(-9, 9), rng.uniform(-9, 9)])
        away = np.hypot(*(at - [x, y]).T)
        nearest, second = np.sort(away)[:2]
        is_map = page.evaluate(f"document.elementFromPoint({x}, {y})?.className === 'dots'")
        if not is_map or nearest > 12 or second - nearest < 0.5:
            continue  # under a label, out of reach, or a tie
        tried += 1
        page.mouse.move(x, y)
        expected = f"document {int(np.argmin(away))}"
        until(page, f"document.querySelector('.tip:not([hidden]) b')?.innerText === '{expected}'")
    page.mouse.click(x, y)
    until(page, f"document.querySelector('.beside h2')?.innerText === '{expected}'")


def test_a_click_opens_a_panel_and_back_closes_it(seen: Watched, atlas: Atlas) -> None:
    page = open_map(seen)
    x, y = on_screen(page, atlas.points)[7].tolist()
    page.mouse.click(x, y)
    page.wait_for_selector(".beside .text")
    assert page.locator(".map canvas.dots").count() == 1  # still here
    assert "point=" in page.url
    title = page.locator(".beside h2").inner_text()
    text = atlas.service.post("/v1/documents/get", ids=[title]).json()["documents"][0]["text"]
    assert page.locator(".beside .text").inner_text() == text
    page.get_by_role("button", name="More like this").click()
    alike = atlas.service.post("/v1/similar", id=title, k=20).json()
    until_listed(page, [hit["title"] for hit in alike["hits"]])
    page.go_back()
    page.wait_for_selector(".beside .text")
    assert page.locator(".beside h2").inner_text() == title
    page.go_back()
    until(page, "document.querySelector('.beside h2').innerText === 'What is here'")


def test_where_one_looks_survives_back_and_reload(seen: Watched) -> None:
    page = open_map(seen)
    box = page.locator(".map canvas.dots").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 150)
    page.mouse.wheel(0, -500)
    until(page, "location.search.includes('at=')")
    placed, address = boxes(page), page.url
    page.get_by_role("link", name="Search", exact=True).click()
    page.wait_for_selector("form.search")
    page.go_back()
    until(page, SEEN)
    assert page.url == address
    assert is_at(boxes(page), placed)
    page.reload()
    until(page, SEEN)
    assert is_at(boxes(page), placed)
    page.get_by_role("button", name="All").click()
    until(page, "!location.search.includes('at=')")
    assert not is_at(boxes(page), placed)


def test_a_drag_is_no_click_even_from_a_label(seen: Watched) -> None:
    page = open_map(seen)
    label = page.locator(".map .region").first.bounding_box()
    x, y = label["x"] + label["width"] / 2, label["y"] + label["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 40, steps=4)
    page.mouse.up()
    until(page, "location.search.includes('at=')")
    assert "region=" not in page.url
    assert "point=" not in page.url
    page.locator(".map .region").first.focus()
    page.keyboard.press("Enter")  # who has dragged before can still choose by keyboard
    until(page, "location.search.includes('region=')")


def test_by_keyboard(seen: Watched) -> None:
    page = open_map(seen)
    page.locator(".map canvas.dots").focus()
    for key in ("+", "+", "ArrowLeft", "ArrowUp", "-"):
        page.keyboard.press(key)
    until(page, "location.search.includes('at=')")
    page.keyboard.press("0")
    until(page, "!location.search.includes('at=')")
    page.keyboard.press("Enter")
    page.wait_for_selector(".beside .text")
    page.get_by_role("button", name="Close the document").click()
    until(page, "document.querySelector('.beside h2').innerText === 'What is here'")


# Searching


def pixel(page: Any, x: float, y: float) -> list[int]:
    return list(
        page.evaluate(
            "([x, y]) => { const c = document.querySelector('canvas.dots');"
            "const box = c.getBoundingClientRect();"
            "return [...c.getContext('2d').getImageData(x - box.x, y - box.y, 1, 1).data]; }",
            [float(x), float(y)],
        )
    )


def test_hits_light_up(seen: Watched, atlas: Atlas) -> None:
    page = open_map(seen)
    page.locator("#q").fill("th321 th322")
    asked = {"text": "th321 th322", "k": 100}
    hits = atlas.service.post("/v1/search", **asked).json()["hits"]
    shown = [hit["title"] for hit in hits[:20]]
    until_listed(page, shown)
    assert page.locator(".map-hits mark").count() > 0
    assert "q=th321" in page.url
    at = on_screen(page, atlas.points)
    lit = {int(hit["title"].split()[1]) for hit in hits}
    first = int(shown[0].split()[1])
    others = [i for i in range(len(at)) if np.hypot(*(at[sorted(lit)] - at[i]).T).min() > 40]
    until_drawn = "requestAnimationFrame(() => requestAnimationFrame(() => done(true)))"
    page.evaluate(f"() => new Promise(done => {until_drawn})")
    assert pixel(page, *at[first])[3] == 255
    assert 0 < max(pixel(page, *at[i])[3] for i in others[:20]) < 100
    page.get_by_role("link", name="Search", exact=True).click()  # the same question there
    page.wait_for_selector(".hit")
    assert page.locator("#q").input_value() == asked["text"]


def test_a_click_on_a_label_searches_within(seen: Watched, atlas: Atlas) -> None:
    page = open_map(seen)
    label = page.locator(".map .region").first
    region = int(label.get_attribute("data-region"))
    inside = {f"document {i}" for i in members(atlas.told, region)}
    label.click()
    page.wait_for_selector(".map-hits .title")
    assert f"region={region}" in page.url
    assert page.locator(".within .chip").count() == 1
    assert set(page.locator(".map-hits .title").all_inner_texts()) <= inside
    page.locator("#q").fill("th111 common")
    found = atlas.service.post("/v1/map/search", text="th111 common", region=region, k=100)
    ids = [hit["id"] for hit in found.json()["hits"]]
    everywhere = atlas.service.post("/v1/search", text="th111 common", k=100).json()["hits"]
    assert set(ids) <= inside < inside | {hit["id"] for hit in everywhere}
    until_listed(page, ids[:20])
    page.locator(".within .chip").click()
    until(page, "!location.search.includes('region=')")
    until_listed(page, [hit["id"] for hit in everywhere[:20]])


@pytest.mark.parametrize(
    "asked", [{"text": "common th211"}, {"id": "document 9"}, {"text": "gr3", "by": "codes"}]
)
def test_a_search_within_a_region_is_a_longer_one_without_the_rest(
    atlas: Atlas, asked: dict[str, Any]
) -> None:
    told = atlas.told
    number_of = {number: i for i, number in enumerate(told["numbers"])}

    def best(n: int) -> list[Any]:
        with Collection.open(atlas.folder) as collection:
            if "id" in asked:
                return collection.more_like(asked["id"], n).ids
            return collection.search(asked["text"], n, by=asked.get("by")).ids

    for region in (0, len(told["regions"]) - 1):
        inside = {f"document {i}" for i in members(told, region)}
        for n in (200, 1200, 4000):
            expected = [id_ for id_ in best(n) if id_ in inside][:30]
            if len(expected) == 30:
                break
        assert len(expected) == 30
        found = atlas.service.post("/v1/map/search", **asked, region=region, k=30).json()["hits"]
        assert [hit["id"] for hit in found] == expected
        assert [f"document {number_of[hit['number']]}" for hit in found] == expected


@pytest.mark.parametrize(
    ("asked", "status", "told"),
    [
        ({}, 422, "nothing to look for"),
        ({"text": "a", "id": "document 1"}, 422, "one of them"),
        ({"region": 10_000}, 404, "regions, numbered from 0; got 10000"),
        ({"id": "nobody"}, 404, "no document with the id 'nobody'"),
    ],
)
def test_what_cannot_be_searched_for(
    atlas: Atlas, asked: dict[str, Any], status: int, told: str
) -> None:
    answer = atlas.service.post("/v1/map/search", **asked)
    assert answer.status_code == status
    assert told in answer.json()["error"]["message"]


# Colours, and everyone


def test_colours_of_a_field_and_its_legend(watched: Watched) -> None:
    page = watched.open("?view=map&field=topic")
    page.wait_for_selector(".legend .key")
    assert page.locator(".legend .key").count() >= 3
    until(
        page,
        "(c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height)"
        ".data.buffer)).size > 3)(document.querySelector('.map canvas.dots'))",
    )
    page.locator(".legend .key", has_text="sea").click()
    assert page.locator(".legend .key", has_text="sea").get_attribute("aria-pressed") == "true"
    page.get_by_label("Colour by").select_option("")
    until(page, "document.querySelectorAll('.legend .key').length === 0")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("query", ["?view=map", "?view=map&region=0", "?view=map&q=common&point=1"])
def test_the_map_is_for_everyone(browser: Any, atlas: Atlas, scheme: str, query: str) -> None:
    context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
    page = Watched(context.new_page(), atlas.service.address).open(query)
    until(page, SEEN)
    assert violations(page) == []
    context.close()
