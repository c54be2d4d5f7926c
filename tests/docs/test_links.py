"""Links between the pages of the documentation lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DOCS_PAGES = sorted(DOCS.rglob("*.md"))
OTHER_PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / folder / "README.md" for folder in ("benchmarks", "examples", "experiments")),
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub names them: lower case, no punctuation, hyphens for blanks."""
    headings = re.findall(r"^#+ +(.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    """The links of a page to other pages, files and headings of this repository."""
    found = LINK.findall(CODE.sub("", page.read_text()))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def target_of(link: str, page: Path) -> Path:
    path = link.partition("#")[0]
    return (page.parent / path).resolve() if path else page


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [*DOCS_PAGES, *OTHER_PAGES], ids=name)
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    broken = []
    for link in links(page):
        target, heading = target_of(link, page), link.partition("#")[2]
        if not target.exists() or (heading and heading not in anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", DOCS_PAGES, ids=name)
def test_links_stay_in_docs(page: Path) -> None:
    """A site is built of docs/ alone: what lies elsewhere is named, not linked."""
    assert not [link for link in links(page) if not target_of(link, page).is_relative_to(DOCS)]


def test_the_index_lists_every_page() -> None:
    index = DOCS / "README.md"
    listed = {target_of(link, index) for link in links(index)}
    assert not set(DOCS_PAGES) - listed - {index}
