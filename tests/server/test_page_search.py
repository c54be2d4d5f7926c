"""Searching on the page in a real Chromium: what is shown when, where Back leads, where the focus is.

Answers are held back by the tests themselves, so nothing here depends on how fast anything is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from boltzhash import Hasher
from boltzhash.collection import Collection
from browsing import Watched, titles, until, until_shown, violations, wait_for

pytestmark = pytest.mark.browser

ARABIC = "القمر والنجوم في السماء"
HEBREW = "הירח והכוכבים בשמיים"


class Held:
    """Requests to one address, none of which is answered before the test lets it be."""

    def __init__(self, page: Any, path: str) -> None:
        self.page = page
        self.routes: list[Any] = []
        self.failed: list[Any] = []
        page.route(f"**/v1/{path}", lambda route: self.routes.append(route))
        page.on("requestfailed", lambda request: self.failed.append(request))

    def wait(self, n: int) -> None:
        wait_for(self.page, lambda: len(self.routes) >= n, f"{n} requests were sent")

    def texts(self) -> list[str]:
        return [route.request.post_data_json["text"] for route in self.routes]

    def wait_aborted(self, i: int) -> None:
        request = self.routes[i].request
        wait_for(self.page, lambda: request in self.failed, f"request {i} was aborted")


def found_by(site: Any, text: str, **more: Any) -> list[dict[str, Any]]:
    body = {"text": text, "k": 20, "reasons": True, **more}
    hits: list[dict[str, Any]] = site.client.post("/v1/search", json=body).json()["hits"]
    return hits


# While one types


def test_it_searches_while_one_types(watched: Watched, site: Any) -> None:
    page = watched.open()
    held = Held(page, "search")
    page.keyboard.type("moon star")
    held.wait(2)
    assert held.texts() == ["m", "mo"]  # at once, and no more than two
    held.routes[0].continue_()
    held.wait(3)
    assert held.texts() == ["m", "mo", "moon star"]  # what was typed meanwhile is skipped
    held.routes[1].continue_()
    held.routes[2].continue_()
    until_shown(page, found_by(site, "moon star"))
    assert "q=moon+star" in page.url
    assert page.title() == "moon star · boltzhash"


def test_an_older_answer_never_replaces_a_newer_one(watched: Watched, site: Any) -> None:
    page = watched.open()
    held = Held(page, "search")
    page.locator("#q").fill("moon")
    page.locator("#q").fill("bread")
    held.wait(2)
    assert held.texts() == ["moon", "bread"]
    held.routes[1].continue_()
    until_shown(page, found_by(site, "bread"))
    held.wait_aborted(0)  # it can no longer be shown
    assert titles(page) == [hit["title"] for hit in found_by(site, "bread")]
    assert page.locator(".results[aria-busy]").count() == 0


def test_what_nobody_waits_for_is_aborted(watched: Watched) -> None:
    page = watched.open()
    held = Held(page, "search")
    page.locator("#q").fill("moon")
    held.wait(1)
    page.locator("#q").fill("")
    held.wait_aborted(0)
    page.wait_for_selector(".welcome")
    page.locator("#q").fill("bread")
    held.wait(2)
    page.get_by_role("link", name="Duplicates", exact=True).click()
    held.wait_aborted(1)


# Results


def test_each_hit_says_why_in_words(watched: Watched, site: Any) -> None:
    page = watched.open("?q=captains+of+a+ship")
    hits = found_by(site, "captains of a ship")
    until_shown(page, hits)

    def sentence(reasons: dict[str, list[str]]) -> str:
        shared, near = ", ".join(reasons["shared"]), ", ".join(reasons["near"])
        first = f"Both speak of {shared}" if shared else "No word in common"
        return f"{first}; near in topic: {near}." if near else f"{first}."

    told = [sentence(hit["reasons"]) for hit in hits]
    assert page.locator(".hit .reason").all_inner_texts() == told
    assert any("near in topic" in one for one in told)
    assert re.match(r"Both speak of (captain|ship)", told[0])


def test_the_first_page_says_what_the_collection_is(watched: Watched, site: Any) -> None:
    page = watched.open()
    page.wait_for_selector(".questions a")
    told = site.client.get("/v1/overview").json()
    assert page.locator(".lead").inner_text().startswith(f"{told['documents']} documents")
    topics = [", ".join(topic["words"][:4]) for topic in told["topics"]]
    assert page.locator(".topic-words").all_inner_texts() == topics
    assert page.locator(".questions a").all_inner_texts() == told["questions"][:6]
    question = told["questions"][0]
    page.locator(".questions a").first.click()
    until_shown(page, found_by(site, question))
    assert page.locator("#q").input_value() == question
    page.go_back()
    page.locator(".topics a").first.click()
    until_shown(page, found_by(site, " ".join(told["topics"][0]["words"][:3])))


def test_without_an_overview_one_can_search(browser: Any, site: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.route("**/v1/overview", lambda route: route.fulfill(status=503, body="{}"))
    page.goto(site.address)
    page.wait_for_selector(".ways a")
    until(page, "document.querySelectorAll('.welcome .skeleton').length === 0")
    page.locator("#q").fill("moon")
    page.wait_for_selector(".hit")
    context.close()


# Back


def test_a_new_query_is_a_step_of_back(watched: Watched, site: Any) -> None:
    page = watched.open()
    steps = page.evaluate("history.length")
    page.keyboard.type("moon star")
    page.keyboard.press("Enter")
    until_shown(page, found_by(site, "moon star"))
    page.locator("#q").select_text()
    page.keyboard.type("bread")
    page.keyboard.press("Enter")
    until_shown(page, found_by(site, "bread"))
    assert page.evaluate("history.length") == steps + 2  # not one for each letter
    page.go_back()
    until_shown(page, found_by(site, "moon star"))
    assert page.locator("#q").input_value() == "moon star"
    assert page.evaluate("document.activeElement.id") == "q"  # as before
    page.go_back()
    page.wait_for_selector(".welcome")
    assert page.locator("#q").input_value() == ""
    page.go_forward()
    until_shown(page, found_by(site, "moon star"))


def test_a_query_on_which_one_rested_is_a_step(watched: Watched) -> None:
    watched.page.clock.install()
    page = watched.open()
    steps = page.evaluate("history.length")
    page.keyboard.type("moon")
    page.clock.run_for(900)
    page.keyboard.type(" star")
    assert page.evaluate("history.length") == steps + 1
    page.clock.run_for(1000)
    page.keyboard.type(" sun")
    assert page.evaluate("history.length") == steps + 2
    page.go_back()
    until(page, "document.querySelector('#q').value === 'moon star'")


def test_filters_and_ways_are_steps_of_back(watched: Watched, site: Any) -> None:
    page = watched.open("?q=moon")
    page.get_by_role("button", name="Words", exact=True).click()
    until_shown(page, found_by(site, "moon", by="words"))
    pick_filter(page, "topic sea")
    until_shown(page, found_by(site, "moon", by="words", where={"topic": "sea"}))
    page.go_back()
    until_shown(page, found_by(site, "moon", by="words"))
    page.go_back()
    until_shown(page, found_by(site, "moon"))


# Filters


def pick_filter(page: Any, text: str) -> None:
    page.locator("#filter").click()
    page.locator("#filter").fill(text)
    page.keyboard.press("Enter")
    page.wait_for_selector(".chip")


def offered(page: Any) -> list[str]:
    """The choices with their counts, once these are there."""
    until(page, "document.querySelector('.choices .count') !== null")
    return [" ".join(text.split()) for text in page.locator("[role=option]").all_inner_texts()]


def test_filters_are_found_by_typing_with_counts_for_the_query(watched: Watched, site: Any) -> None:
    page = watched.open("?q=moon+ship")
    asked = {"text": "moon ship", "k": 1, "facets": ["topic"]}
    facet = site.client.post("/v1/search", json=asked).json()["facets"]["topic"]["values"]
    everywhere = site.client.get("/v1/fields").json()["fields"]["topic"]
    assert facet != everywhere[: len(facet)]  # or this would show nothing
    page.locator("#filter").click()
    shown = offered(page)
    for one in facet[:4]:
        assert f"{' '.join(one['value'].split())} {one['count']}" in shown
    page.locator("#filter").fill("se")
    assert offered(page)[0] == f"sea {next(v['count'] for v in facet if v['value'] == 'sea')}"
    page.keyboard.press("ArrowDown")
    assert page.locator("[role=option][aria-selected=true]").inner_text().startswith("sea")
    page.keyboard.press("Enter")
    until_shown(page, found_by(site, "moon ship", where={"topic": "sea"}))
    assert "where=" in page.url
    assert page.locator(".choices").first.is_hidden()
    assert page.evaluate("document.activeElement.id") == "filter"  # the focus stays
    page.get_by_role("button", name="Remove the filter topic sea").click()
    until_shown(page, found_by(site, "moon ship"))
    assert page.evaluate("document.activeElement.id") == "filter"


def test_counts_of_another_query_are_never_shown(watched: Watched) -> None:
    page = watched.open("?q=moon")
    page.wait_for_selector(".hit")
    held = Held(page, "search")
    page.locator("#filter").click()
    held.wait(1)
    assert page.locator("[role=option]").count() > 3
    assert page.locator(".choices .count").count() == 0
    held.routes[0].continue_()
    page.wait_for_selector(".choices .count")


def test_a_part_of_a_value_can_be_asked_for(watched: Watched, site: Any) -> None:
    page = watched.open("?q=moon")
    page.locator("#filter").click()
    page.locator("#filter").fill("topic itche")
    page.get_by_role("option", name="has “itche”").click()
    until_shown(page, found_by(site, "moon", where={"topic": {"contains": "itche"}}))
    assert page.locator(".chip").inner_text() == "topic has “itche” ×"


def test_the_name_of_a_field_leads_to_it_and_not_to_others(watched: Watched) -> None:
    page = watched.open("?q=moon")
    page.locator("#filter").click()
    offered(page)
    groups = page.locator("[role=listbox] [role=group]")
    assert groups.count() > 1
    page.locator("#filter").fill("topic")
    assert groups.count() == 1
    assert groups.get_attribute("aria-label") == "topic"
    page.locator("#filter").fill("topical")  # no field: a part of a value, perhaps
    page.get_by_role("option", name="has “topical”").wait_for()


@pytest.mark.parametrize(
    ("typed", "chip", "where"),
    [
        ("number 10 to 40", "number 10 to 40 ×", {">=": 10, "<=": 40}),
        ("number 10..40", "number 10 to 40 ×", {">=": 10, "<=": 40}),
        ("number >= 70", "number ≥ 70 ×", {">=": 70}),
        ("number: < 5.5", "number < 5.5 ×", {"<": 5.5}),
        ("number 7", "number 7 ×", 7),
    ],
)
def test_ranges_of_numbers_are_typed(
    watched: Watched, site: Any, typed: str, chip: str, where: Any
) -> None:
    page = watched.open("?q=moon+ship+bread&by=codes")
    pick_filter(page, typed)
    assert page.locator(".chip").inner_text() == chip
    until_shown(page, found_by(site, "moon ship bread", by="codes", where={"number": where}))


def test_ranges_of_numbers_are_asked_for(watched: Watched, site: Any) -> None:
    page = watched.open("?q=moon+ship+bread&by=codes")
    page.locator("#filter").click()
    page.get_by_role("option", name="from … to … (0 to 89)").click()
    page.wait_for_selector("[aria-label='number, from']:focus")
    page.keyboard.type("30")
    page.get_by_label("number, to").fill("59")
    page.get_by_role("button", name="Apply").click()
    within = {"number": {">=": 30, "<=": 59}}
    until_shown(page, found_by(site, "moon ship bread", by="codes", where=within))
    assert page.locator(".chip").inner_text() == "number 30 to 59 ×"
    assert page.evaluate("document.activeElement.id") == "filter"


def test_a_filter_that_nothing_can_match_is_pointed_out(watched: Watched) -> None:
    page = watched.open(f"?q=moon&where={quote(json.dumps({'topik': 'sea'}))}")
    told = page.locator(".nothing").inner_text()
    assert told.startswith("No document has a field 'topik' (is 'topic' meant?)")
    assert re.search(r"[^.…][.…]$", told)


# What stays where it is


def test_the_focus_stays_where_it_was(watched: Watched, site: Any) -> None:
    page = watched.open("?q=moon")
    until_shown(page, found_by(site, "moon"))
    page.get_by_role("button", name="Codes", exact=True).click()
    until_shown(page, found_by(site, "moon", by="codes"))
    assert page.evaluate("document.activeElement.innerText") == "Codes"
    page.get_by_role("button", name="Show more").click()
    more = found_by(site, "moon", by="codes", k=40)
    until_shown(page, more)
    assert page.evaluate("document.activeElement.innerText") == more[20]["title"]
    pick_filter(page, "topic sea")
    page.get_by_role("button", name="Words", exact=True).focus()
    page.go_back()  # made anew, and the focus is where it was
    until(page, "document.querySelectorAll('.chip').length === 0")
    assert page.evaluate("document.activeElement.innerText") == "Words"
    page.get_by_role("link", name="Duplicates", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".group")
    assert page.evaluate("document.activeElement.innerText") == "Duplicates"


def test_after_trying_again_the_focus_is_on_a_hit(browser: Any, site: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.route("**/v1/search", lambda route: route.abort())
    page.goto(f"{site.address}/?q=moon")
    page.wait_for_selector("[role=alert]")
    page.unroute("**/v1/search")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(".hit")
    assert page.evaluate("document.activeElement.innerText") == titles(page)[0]
    context.close()


@pytest.mark.parametrize("view", ["constructor", "__proto__", "toString", "nothing", ""])
def test_a_view_that_there_is_not(watched: Watched, view: str) -> None:
    page = watched.open(f"?view={view}")
    page.wait_for_selector("#q")
    assert page.locator("nav [aria-current]").inner_text() == "Search"


# Long documents


@pytest.fixture(scope="module")
def long_texts(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., Any], corrsh: Hasher
) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("long") / "collection"
    bread = (
        "Bread \N{BREAD} needs an oven and flour. " * 300
    )  # a character that is two in JavaScript
    text = f"{bread}\n\n{'The moon goes round the earth. ' * 10}\n\n{bread}"
    with Collection.create(folder, corrsh, passages=60) as collection:
        collection.add([{"id": 1, "text": text, "metadata": {"title": "Long"}}])
        collection.add([{"id": 2, "text": "A moon.", "metadata": {"title": "Short"}}])
    with serve(folder) as service:
        yield service


def test_a_long_document_is_opened_at_its_passage(browser: Any, long_texts: Any) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    watched = Watched(context.new_page(), long_texts.address)
    page = watched.open("?q=moon+round+the+earth")
    page.wait_for_selector(".hit")
    page.locator(".hit .title", has_text="Long").click()
    page.wait_for_selector("dialog .passage")
    assert "The moon goes round the earth." in page.locator("dialog .passage").inner_text()
    box, view = page.locator("dialog .passage").bounding_box(), page.viewport_size
    assert 0 < box["y"] < view["height"]  # it was scrolled to
    assert violations(page) == []
    context.close()
    assert watched.complaints == []


# Right to left


@pytest.fixture(scope="module")
def eastern(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., Any], corrsh: Hasher
) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("eastern") / "collection"
    arabic = f"{ARABIC} moon.\n\nA second paragraph in English."
    with Collection.create(folder, corrsh) as collection:
        collection.add(
            [
                {"id": 1, "text": arabic, "metadata": {"title": ARABIC, "tongue": "العربية"}},
                {"id": 2, "text": f"{HEBREW} moon.", "metadata": {"title": HEBREW}},
                {"id": 3, "text": "The moon and the stars.", "metadata": {"title": "Moon"}},
                {"id": 4, "text": f"{arabic} ", "metadata": {"title": f"{ARABIC} 2"}},
            ]
        )
    with serve(folder) as service:
        yield service


def directions(page: Any, selector: str) -> list[str]:
    found = page.locator(selector).evaluate_all(
        "all => all.map(e => getComputedStyle(e).direction)"
    )
    return list(found)


def test_right_to_left_texts_read_right_to_left(browser: Any, eastern: Any) -> None:
    context = browser.new_context(viewport={"width": 1000, "height": 900})
    watched = Watched(context.new_page(), eastern.address)
    page = watched.open("?q=moon")
    page.wait_for_selector(".hit")
    expected = ["rtl" if "\u0590" < title[0] < "\u0700" else "ltr" for title in titles(page)]
    assert sorted(expected) == ["ltr", "rtl", "rtl", "rtl"]
    assert directions(page, ".hit h3") == expected
    assert directions(page, ".hit .snippet") == expected
    assert directions(page, ".hit") == ["ltr"] * 4  # the list itself stays
    page.locator("#q").fill("قمر")
    assert directions(page, "#q") == ["rtl"]
    page.locator("#q").fill("moon")
    until(page, "document.querySelectorAll('.hit').length === 4")
    page.locator(".title", has_text=f"{ARABIC}").first.click()
    page.wait_for_selector("dialog .text")
    assert directions(page, "dialog h2") == ["rtl"]
    assert directions(page, "dialog .text") == ["rtl"]
    watched.open("?view=duplicates")
    page.wait_for_selector(".group")
    assert directions(page, ".sides .text") == ["rtl", "rtl"]
    context.close()
    assert watched.complaints == []


# For everyone


def opened_filters(page: Any) -> None:
    page.locator("#filter").click()
    page.wait_for_selector(".choices .count")
    page.keyboard.press("ArrowDown")


def opened_range(page: Any) -> None:
    page.locator("#filter").fill("number")
    page.keyboard.press("Enter")
    page.wait_for_selector("[aria-label='number, from']")


def opened_reader(page: Any) -> None:
    page.locator(".title").first.click()
    page.wait_for_selector("dialog .text")


def opened_reasons(page: Any) -> None:
    page.get_by_role("button", name="Why?").first.click()
    page.wait_for_selector(".reasons h4")


OPENED: dict[str, tuple[str, Callable[[Any], None]]] = {
    "questions": ("", lambda page: page.wait_for_selector(".questions a")),
    "filters": ("?q=moon", opened_filters),
    "range": ("?q=moon", opened_range),
    "a filter": ("?q=moon&where=%7B%22topic%22%3A%22sea%22%7D", lambda page: None),
    "a warning": ("?q=moon&where=%7B%22topik%22%3A%22sea%22%7D", lambda page: None),
    "like": ("?like=%22sky-3%22", lambda page: page.wait_for_selector(".like b")),
    "reader": ("?q=moon", opened_reader),
    "reasons": ("?q=moon", opened_reasons),
}


@pytest.mark.parametrize("state", OPENED)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_what_opens(browser: Any, site: Any, state: str, scheme: str) -> None:
    query, act = OPENED[state]
    context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
    watched = Watched(context.new_page(), site.address)
    page = watched.open(query)
    act(page)
    assert violations(page) == []
    context.close()
    assert watched.complaints == []
