"""The topics on the page: bits in groups, in words, with the documents that are surest of them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from browsing import Watched, until, violations

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 800}
COLOURS = (
    "(c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height)"
    ".data.buffer)).size)(document.querySelector('.heat'))"
)


def names(told: dict[str, Any], bit: int) -> str:
    """What a bit is called: the first words of the side that goes with its group."""
    side = told["bits"][bit]["off" if told["bits"][bit]["reversed"] else "on"]
    return ", ".join(side[:3]) or f"bit {bit}"


def test_bits_stand_in_groups_with_both_their_sides(watched: Watched, site: Any) -> None:
    page = watched.open("?view=bits")
    page.wait_for_selector(".topic-rows li")
    told = site.client.get("/v1/bits").json()
    numbers = page.locator(".topic-rows .bit-number").all_inner_texts()
    order = [bit for group in told["groups"] for bit in group["bits"]]
    assert numbers == [f"bit {bit}" for bit in order]
    assert page.locator(".topic-group").count() == len(told["groups"])
    for bit, row in zip(order, page.locator(".topic-rows > li > button").all(), strict=True):
        sides = row.locator(".side").all_inner_texts()
        assert sides[0].startswith(names(told, bit)) or sides[0] == "no words"
        assert "against" in row.inner_text() or "against" in row.text_content()
    assert page.evaluate(COLOURS) > 10
    page.get_by_role("button", name="Learned couplings").click()
    assert page.evaluate(COLOURS) > 10


def test_the_strongest_pairs_are_told_in_words(watched: Watched, site: Any) -> None:
    page = watched.open("?view=bits&matrix=correlations")
    page.wait_for_selector(".pairs li")
    told = site.client.get("/v1/bits").json()
    turned = [-1 if bit["reversed"] else 1 for bit in told["bits"]]
    pairs = sorted(
        (
            (told["correlations"][i][j] * turned[i] * turned[j], i, j)
            for i in range(32)
            for j in range(i + 1, 32)
        ),
        key=lambda pair: -abs(pair[0]),
    )
    shown = page.locator(".pairs li").all_inner_texts()
    values = [float(re.search(r"[+−]([\d.]+)$", text).group(1)) for text in shown]  # type: ignore[union-attr]
    together = [abs(value) for value, *_ in pairs if value > 0][:5]
    against = [abs(value) for value, *_ in pairs if value < 0][:5]
    assert values == [float(f"{value:.2f}") for value in together + against]
    assert all((" against " in text) == ("−" in text) for text in shown)
    best = next(pair for pair in pairs if pair[0] > 0)
    assert shown[0].startswith(f"{names(told, best[1])} with ")


def test_a_bit_opens_where_it_stands(watched: Watched, site: Any) -> None:
    page = watched.open("?view=bits")
    row = page.locator(".topic-rows > li").nth(3)
    number = int(row.locator(".bit-number").inner_text().split()[1])
    row.locator("button").first.click()
    page.wait_for_selector(".topic-details .hit")
    assert f"bit={number}" in page.url
    told = site.client.get(f"/v1/bits/{number}").json()
    sides = [told["documents"], told["against"]]
    if told["bit"]["reversed"]:
        sides.reverse()
    shown = [side.locator(".title").all_inner_texts() for side in row.locator("section").all()]
    assert shown == [[hit["title"] for hit in side[:4]] for side in sides]
    signs = [value * (-1 if told["bit"]["reversed"] else 1) for _, value in told["correlated"]]
    if any(signs):
        assert re.search("Goes (with|against)", row.inner_text())
    page.reload()
    page.wait_for_selector(".topic-details .hit")
    assert row.locator("button").first.get_attribute("aria-expanded") == "true"
    row.locator("button").first.click()
    assert page.locator(".topic-details:not([hidden])").count() == 0
    assert "bit=" not in page.url


def test_a_bit_leads_to_documents_like_its_own(watched: Watched) -> None:
    page = watched.open("?view=bits&bit=3")
    page.wait_for_selector(".topic-details .hit")
    page.get_by_role("button", name="More like this").first.click()
    page.wait_for_selector(".like b")


@pytest.mark.parametrize("query", ["?view=bits", "?view=bits&bit=1"])
def test_a_phone_is_not_scrolled_forever(browser: Any, site: Any, query: str) -> None:
    context = browser.new_context(viewport=PHONE)
    page = Watched(context.new_page(), site.address).open(query)
    page.wait_for_selector(".topic-rows li", state="attached")
    until(page, "document.querySelectorAll('.skeletons').length === 0")
    assert page.evaluate("document.documentElement.scrollHeight") < 6_000
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 800}])
def test_topics_are_for_everyone(
    browser: Any, site: Any, scheme: str, viewport: dict[str, int]
) -> None:
    context = browser.new_context(color_scheme=scheme, reduced_motion="reduce", viewport=viewport)
    page = Watched(context.new_page(), site.address).open("?view=bits&bit=1")
    page.wait_for_selector(".topic-details .hit")
    assert violations(page) == []
    context.close()
