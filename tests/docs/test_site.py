"""What docs/build_site.py sees to: navigation, links and formulas. `make site` builds the whole."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "build_site.py"
SITE_URL = "https://site.example/"


@pytest.fixture(scope="module")
def site() -> Iterator[ModuleType]:
    sys.path.insert(0, str(SCRIPT.parent))  # as Python does for a script
    spec = importlib.util.spec_from_file_location("build_site", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(SCRIPT.parent))


def write(folder: Path, pages: dict[str, str]) -> Path:
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_new_pages_are_in_the_navigation(site: ModuleType, tmp_path: Path) -> None:
    names = ["README.md", "models/README.md", "models/new.md", "other.md"]
    parts = site.navigation(write(tmp_path, {name: f"# About {name}\n" for name in names}))
    found = {part: pages for each in parts for part, pages in each.items()}
    assert found["Models"][1:] == [{"About models/new.md": "models/new.md"}]
    assert found["More"] == [{"About other.md": "other.md"}]
    assert sum(len(pages) for pages in found.values()) == len(names)


def test_links_that_lead_nowhere_are_found(site: ModuleType, tmp_path: Path) -> None:
    good = '<a href="b/">b</a><a href="b/#top">b</a><a href="https://elsewhere.example/x">x</a>'
    there = f'<h1 id="top">b</h1><a href="..">up</a><a href="{SITE_URL}b/#top">b</a><a href="#top">'
    bad = '<a href="../c/">c</a><a href="../b/#no">b</a><img src="../no.png">'
    pages = {"index.html": good, "b/index.html": there, "bad/index.html": bad}
    assert site.broken_links(write(tmp_path, pages), SITE_URL) == [
        "bad/index.html: ../c/ leads nowhere",
        "bad/index.html: ../b/#no leads nowhere",
        "bad/index.html: ../no.png leads nowhere",
    ]


def test_what_is_loaded_from_elsewhere_is_found(site: ModuleType, tmp_path: Path) -> None:
    page = '<script src="https://cdn.example/a.js"></script><link rel="stylesheet" href="a.css">'
    write(tmp_path, {"index.html": page})
    found = site.loaded_from_elsewhere([tmp_path / "index.html"], tmp_path)
    assert found == ["index.html loads https://cdn.example/a.js"]


def test_formulas_of_a_page_become_mathml(site: ModuleType, tmp_path: Path) -> None:
    page = r'<p><span class="arithmatex">\(a &lt; \Sigma\)</span></p>'
    page += r'<div class="arithmatex">\[\mathcal N\]</div>see :class:<code>X</code>'
    write(tmp_path, {"index.html": page})
    assert len(site.finish(tmp_path / "index.html")) == 2
    text = (tmp_path / "index.html").read_text()
    assert text.count("<math") == 2
    assert '<mi mathvariant="normal">&#x003A3;</mi>' in text
    assert "<mi>𝒩</mi>" in text
    assert text.endswith("see <code>X</code>")
    assert "\\" not in text


def test_an_example_is_shown_with_what_it_printed(site: ModuleType) -> None:
    page = site.example_page(site.EXAMPLES / "own_corpus.py", "https://host.example")
    assert page.startswith("# Your own corpus\n")
    code = (site.EXAMPLES / "own_corpus.py").read_text().split('"""')[2].strip()
    assert f"```python\n{code}\n```" in page
    for name in ("own_corpus", "own_corpus-cranfield"):
        assert f"```text\n{(site.OUTPUTS / f'{name}.txt').read_text()}```" in page
    assert "```sh\npython own_corpus.py cran/corpus.jsonl.gz 'what similarity" in page
    drawn = site.example_page(site.EXAMPLES / "map_of_topics.py", "https://host.example")
    assert "![What it draws](map_of_topics.png)" in drawn
    readme = "[a](own_corpus.py)"
    relinked = site.relinked(readme, "examples/README.md", "examples/README.md", "https://h")
    assert relinked == "[a](../examples/own_corpus.md)"
