"""Every figure of docs/is_it_for_me.md stands on the page that it is quoted from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FIGURE = re.compile(r"(?<![\w.,-])\d*\.\d+\b|(?<![\w.,-])\d{2,3}(?= bytes)")
SOURCE = re.compile(r"\((?:\[[^\]]*\]\(([\w/]+\.md)\)|`([\w/]+\.md)`)\)$")


def quoting_parts() -> list[str]:
    """Paragraphs and points of lists that quote a figure."""
    text = (DOCS / "is_it_for_me.md").read_text(encoding="utf-8")
    parts = [" ".join(part.split()) for part in re.split(r"\n\n|\n(?=- )", text)]
    return [part for part in parts if FIGURE.search(part)]


@pytest.mark.parametrize("part", quoting_parts())
def test_figures_stand_where_they_are_quoted_from(part: str) -> None:
    source = SOURCE.search(part)
    assert source, "figures need a page that they come from, at the end"
    page = DOCS / source[1] if source[1] else ROOT / source[2]
    there = page.read_text(encoding="utf-8")
    missing = [
        f for f in FIGURE.findall(part) if not re.search(rf"(?<![\d.]){re.escape(f)}\b", there)
    ]
    assert not missing


def test_enough_is_quoted() -> None:
    assert sum(len(FIGURE.findall(part)) for part in quoting_parts()) > 20
