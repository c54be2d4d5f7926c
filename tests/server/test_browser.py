"""The page in a real Chromium: what people do with it, and what they must never see."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from boltzhash import Hasher
from boltzhash.collection import Collection
from boltzhash.server.settings import Settings
from browsing import HOSTILE, Watched, titles, until, until_shown, violations
from services import serving_in_a_thread

pytestmark = pytest.mark.browser

VIEWS = {
    "welcome": "",
    "search": "?q=moon+star",
    "codes": "?q=moon+star&by=codes",
    "map": "?view=map",
    "duplicates": "?view=duplicates&alike=50",
}


# Searching


def test_search_as_you_type(watched: Watched, site: Any) -> None:
    page = watched.open()
    page.keyboard.type("bread oven")
    asked = {"text": "bread oven", "k": 20}
    expected = site.client.post("/v1/search", json=asked).json()
    until_shown(page, expected["hits"])
    assert page.locator(".hit .rank").all_inner_texts() == [str(n) for n in range(1, 21)]
    for label, hit in zip(score_labels(page), expected["hits"], strict=True):
        told = [float(number) for number in re.findall(r"[\d.]+\d", label)]
        parts = (hit["score"], hit["parts"]["words"], abs(hit["parts"]["code"]))
        assert told == [float(f"{part:.2f}") for part in parts]
        assert (" less " in label) == (hit["parts"]["code"] < 0)
    widths = page.locator(".hit .score").evaluate_all(
        "bars => bars.map(bar => [...bar.children].filter(part => part.className !== 'taken')"
        ".reduce((sum, part) => sum + part.getBoundingClientRect().width, 0))"
    )
    rounded = 2 / 64  # pixels: Chromium rounds each of the two parts of a bar to a 64th
    assert all(after <= before + rounded for before, after in itertools.pairwise(widths))
    assert widths[0] > widths[-1] + 1
    assert page.locator(".hit .unit").count() == 0  # no distance beside the rank
    marked = {word.lower() for word in page.locator(".snippet mark").all_inner_texts()}
    assert marked <= {"bread", "oven"}
    assert marked
    label = page.locator(".hit .barcode").first.get_attribute("aria-label")
    assert label == f"{32 - expected['hits'][0]['distance']} of 32 bits agree"
    assert "q=bread+oven" in page.url
    page.reload()
    page.wait_for_selector(".hit")
    assert titles(page) == [hit["title"] for hit in expected["hits"]]


def score_labels(page: Any) -> list[str]:
    labels = page.locator(".hit .score").evaluate_all(
        "bars => bars.map(bar => bar.getAttribute('aria-label'))"
    )
    return list(labels)


def test_words_codes_or_both(watched: Watched, site: Any) -> None:
    page = watched.open("?q=sailing+captain")
    ways = page.get_by_role("group", name="Find by")

    def shows(by: str) -> list[dict[str, Any]]:
        asked = {"text": "sailing captain", "k": 20, "by": by}
        hits = site.client.post("/v1/search", json=asked).json()["hits"]
        until_shown(page, hits)
        assert ways.locator("[aria-pressed=true]").inner_text().lower() == {
            "both": "words and codes"
        }.get(by, by)
        return list(hits)

    both = shows("both")
    marked = set(page.locator(".snippet mark").all_inner_texts())
    assert marked == {"sail", "captain"}
    ways.get_by_role("button", name="Codes", exact=True).click()
    by_codes = shows("codes")
    assert "by=codes" in page.url
    bits = [f"{hit['distance']} bit{'s' * (hit['distance'] != 1)} away" for hit in by_codes]
    assert page.locator(".hit .unit").all_text_contents() == bits
    assert page.locator(".hit .score").count() == 0
    ways.get_by_role("button", name="Words", exact=True).click()
    by_words = shows("words")
    assert "by=words" in page.url
    assert all(re.fullmatch(r"Score [\d.]+, for its words", label) for label in score_labels(page))
    ids = [[hit["id"] for hit in hits] for hits in (both, by_codes, by_words)]
    assert ids[0] != ids[1] != ids[2] != ids[0]
    watched.open("?q=sailing+captain&by=mood")
    shows("both")


def test_words_that_the_model_does_not_know(watched: Watched) -> None:
    page = watched.open("?q=onerror")
    page.wait_for_selector(".hit")
    assert titles(page) == ["hostile"]
    assert "by their words alone" in page.locator(".caution").inner_text()
    page.get_by_role("button", name="Codes", exact=True).click()
    until(page, "document.querySelectorAll('.hit').length === 20")
    assert "mean nothing" in page.locator(".caution").inner_text()
    page.get_by_role("button", name="Words", exact=True).click()
    until(page, "document.querySelectorAll('.hit').length === 1")
    assert page.locator(".caution").count() == 0
    watched.open("?q=xylophone")
    assert page.locator(".nothing").inner_text() == "No document has any of these words."
    watched.open("?q=onerror&where=%7B%22topic%22%3A%22sea%22%7D")
    nothing = "No document that passes these filters has any of these words."
    assert page.locator(".nothing").inner_text() == nothing
    watched.open('?q="moon+bread"')
    assert "what is in quotes must occur" in page.locator(".nothing").inner_text()


def test_operators_alone_are_no_alarm(browser: Any, site: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site.address}/?q=-moon")
    page.wait_for_selector(".nothing")
    told = "'-moon' has no word to search for: add one that documents should have."
    assert page.locator(".nothing").inner_text() == told
    assert page.locator("[role=alert]").count() == 0
    page.locator("#q").fill("star -moon")
    page.wait_for_selector(".hit")
    assert not any("moon" in text for text in page.locator(".snippet").all_inner_texts())
    context.close()


def test_more_like_a_document_whose_id_javascript_would_round(browser: Any, folder: Path) -> None:
    large = 2**53 + 1  # the other one is what it would be rounded to
    with Collection.open(folder) as collection:
        collection.add([{"id": large, "text": "A comet, itself.", "metadata": {"title": "This"}}])
        collection.add([{"id": 2**53, "text": "Sugar.", "metadata": {"title": "Not this"}}])
    context = browser.new_context()
    with serving_in_a_thread(Settings(str(folder))) as served:
        page = Watched(context.new_page(), f"http://localhost:{served.port}").open(
            "?q=itself&by=words"
        )
        page.get_by_role("button", name="This", exact=True).click()
        page.wait_for_selector("#reader-title >> text=This")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="More like this").first.click()
        page.wait_for_url("**/?like=*")
        assert json.loads(httpx.URL(page.url).params["like"]) == {"int64": str(large)}
        page.wait_for_selector(".hit")
        assert str(large) in page.locator(".like").inner_text()
        assert page.get_by_role("button", name="This", exact=True).count() == 0
        context.close()


def test_the_page_asks_for_the_key_as_a_password(browser: Any, folder: Path) -> None:
    context = browser.new_context(http_credentials={"username": "any", "password": "a-reader"})
    with serving_in_a_thread(Settings(str(folder), read_key="a-reader")) as served:
        page = Watched(context.new_page(), f"http://localhost:{served.port}").open("?q=moon")
        page.wait_for_selector(".hit")
        context.close()


def test_why_more_like_this_and_back(watched: Watched, site: Any) -> None:
    page = watched.open("?q=captain+ship")
    before = titles(page)
    page.get_by_role("button", name="Why?").first.click()
    page.wait_for_selector(".reasons h4")
    reasons = page.locator(".reasons").first.inner_text()
    assert re.search(r"\d+ bits? agree", reasons)
    assert score_labels(page)[0] in reasons
    assert re.search(r"Both speak of (captain|ship)", page.locator(".reason").first.inner_text())
    first = before[0]
    page.get_by_role("button", name="More like this").first.click()
    page.wait_for_selector(".like b")
    assert page.locator(".like b").inner_text() == first
    alike = site.client.post("/v1/similar", json={"id": first, "k": 20}).json()
    assert alike["query"]["by"] == "both"
    until_shown(page, alike["hits"])
    assert first not in titles(page)
    page.go_back()
    until(page, "document.querySelector('#q')?.value === 'captain ship'")
    page.wait_for_selector(".hit")
    assert titles(page) == before


def test_the_keyboard_is_enough(watched: Watched, site: Any) -> None:
    page = watched.open("?view=duplicates")
    page.keyboard.press("/")
    page.wait_for_selector("#q:focus")
    page.keyboard.type("sail storm")
    asked = {"text": "sail storm", "k": 20}
    until_shown(page, site.client.post("/v1/search", json=asked).json()["hits"])
    second = titles(page)[1]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.innerText") == second
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog .text")  # until then it is called "A document"
    assert page.locator("dialog h2").inner_text() == second
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    page.keyboard.press("w")
    page.wait_for_selector(".reasons:not([hidden])")
    page.keyboard.press("m")
    page.wait_for_selector(".like b")
    assert page.locator(".like b").inner_text() == second


def test_what_a_document_holds_is_text(watched: Watched) -> None:
    page = watched.open("?q=moon+star&k=100")
    item = page.locator(".hit", has_text="hostile").first
    assert "<script>" in item.locator(".snippet").inner_text()
    item.locator(".title").click()
    page.wait_for_selector("dialog .text")
    assert page.locator("dialog .text").inner_text() == HOSTILE
    assert page.locator("dialog img, dialog script, .hit img, .hit script").count() == 0
    assert page.title() != "1"
    page.keyboard.press("Escape")
    for query in ("?view=map", "?view=duplicates&alike=50"):
        watched.open(query)
        assert page.title() != "1"
        assert page.locator("main img, main script").count() == 0


# The other views


def test_the_duplicates(watched: Watched, site: Any) -> None:
    page = watched.open("?view=duplicates")
    page.wait_for_selector(".group")
    n = site.client.get("/v1/duplicates").json()["n_groups"]
    assert page.locator(".lead").inner_text().startswith(f"{n} group")
    copied = page.locator(".group", has_text="A copy").first
    assert copied.locator("article").count() == 2
    assert copied.locator(".likeness").all_inner_texts() == [
        "to keep",
        "100 % like the one to keep",
    ]
    page.locator("#alike").fill("50")
    until(page, "document.querySelector('.lead').innerText.includes('at least 50 % like the one')")
    edited = page.locator(".group", has_text="edited").first
    assert edited.locator("mark.only").all_inner_texts() == ["again"]


# Errors and nothing


def test_an_error_is_shown_and_can_be_tried_again(browser: Any, site: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site.address}/")
    page.wait_for_selector("#q")
    body = '{"error": {"status": 503, "message": "someone else is writing. Try again"}}'
    page.route(
        "**/v1/search",
        lambda route: route.fulfill(status=503, content_type="application/json", body=body),
    )
    page.locator("#q").fill("moon")
    page.wait_for_selector("[role=alert]")
    assert page.locator("[role=alert] p").inner_text() == "Someone else is writing."
    page.unroute("**/v1/search")
    page.route("**/v1/search", lambda route: route.abort())
    page.locator("#q").fill("moon star")
    until(page, "document.querySelector('[role=alert]').innerText.includes('is not answering')")
    page.unroute("**/v1/search")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(".hit")
    context.close()


def test_no_collection_an_empty_one_and_then_one(
    browser: Any, serve: Callable[..., Any], tmp_path: Path, lsh: Hasher
) -> None:
    folder = tmp_path / "to come"
    context = browser.new_context()
    with serve(folder) as service:
        page = context.new_page()
        page.goto(service.address)
        page.wait_for_selector(".notice")
        assert "boltzhash index" in page.locator("pre").inner_text()
        with Collection.create(folder, lsh) as collection:
            page.get_by_role("button", name="Look again").click()
            page.wait_for_selector(".notice h2:has-text('empty')")
            collection.add([{"id": "first", "text": "moon"}])
        page.get_by_role("button", name="Look again").click()
        page.wait_for_selector("#q")
        page.locator("#q").fill("moon")
        page.wait_for_selector(".hit")
        page.goto(f"{service.address}/?view=map")
        page.wait_for_selector(".notice")
        assert "boltzhash map" in page.locator(".notice").inner_text()
    context.close()


# For everyone


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility(browser: Any, site: Any, view: str, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
    watched = Watched(context.new_page(), site.address)
    page = watched.open(VIEWS[view])
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, a, input, select, canvas, svg[role=img]')]"
        ".filter(e => !e.closest('[aria-hidden=true]'))"
        ".filter(e => !(e.innerText || e.ariaLabel || e.labels?.length || e.getAttribute('aria-label')"
        " || e.alt)).map(e => e.outerHTML)"
    )
    assert nameless == []
    assert page.locator("h1").count() == 1
    assert page.evaluate("document.documentElement.lang") == "en"
    assert violations(page) == []
    context.close()
    assert watched.complaints == []


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [360, 820, 1600])
def test_nothing_runs_out_of_the_window(browser: Any, site: Any, view: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 740})
    page = Watched(context.new_page(), site.address).open(VIEWS[view])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_the_description_of_the_api(watched: Watched) -> None:
    page = watched.open("docs")
    assert page.get_by_role("heading", name="POST /v1/search", exact=True).count() == 1
