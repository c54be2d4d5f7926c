"""The site: the pages of docs/, examples with what they print, an API reference, the benchmarks.

    python docs/build_site.py [--output build/site]

Zensical builds it from a copy of the pages under build/, strictly: what it warns of is an error.
Formulas become MathML, which browsers draw themselves, in a font that comes with the site, and every
link between pages is followed in the end. New pages need no entry anywhere: models are all of
docs/models, and a page that no part of the navigation names comes under "More".
"""

from __future__ import annotations

import argparse
import html
import json
import re
import shutil
import subprocess
import sys
import tomllib
import unicodedata
from contextlib import suppress
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import latex2mathml.converter
from fontTools import subset
from run_examples import CIRCUMSTANCES, EXAMPLES, OUTPUTS, SET_APART, runs

from boltzhash.hashers import HASHERS, SETTINGS, SemanticHasher

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGE_FILES = {".md", ".png", ".svg", ".css"}
REPOSITORY_PAGES = {  # what lies outside docs/, and its name on the site
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks/README.md",
    "examples/README.md": "examples/README.md",
}
NAVIGATION: dict[str, list[str]] = {
    "Start": ["README.md", "start.md", "is_it_for_me.md", "install.md"],
    "Guides": [
        *("corpora.md", "data_frames.md", "collections.md", "filters.md", "duplicates.md"),
        *("long_documents.md", "drift.md", "service.md", "search.md"),
        *(
            "embeddings.md",
            "labels.md",
            "large_corpora.md",
            "scale.md",
            "langchain.md",
            "llama_index.md",
            "haystack.md",
            "assistants.md",
            "elsewhere.md",
        ),
    ],
    "Examples": ["examples/README.md", "examples/*.md"],
    "Measuring": ["metrics.md", "retrieval.md", "datasets.md"],
    "Models": ["models/README.md", "models/*.md", "encoding.md"],
    "Results": ["quality.md", "alternatives.md", "results.md", "field.md", "benchmarks/README.md"],
    "API": ["api/*.md"],
    "Project": ["changelog.md", "contributing.md", "licences.md"],
}
API: dict[str, tuple[str, list[str]]] = {  # page: its title, and what is on it
    "collection": (
        "Collections",
        [
            "boltzhash.collection.collection.Collection",
            "boltzhash.collection.snapshot.Snapshot",
            "boltzhash.search.hits.Answer",
            *("boltzhash.search.hits.Hit", "boltzhash.collection.duplicates.DuplicateGroup"),
        ],
    ),
    "semantic_hasher": (
        "SemanticHasher",
        [
            "boltzhash.hashers.semantic_hasher.SemanticHasher",
            *(f"{group.__module__}.{group.__name__}" for group in SETTINGS),
        ],
    ),
    "hashers": (
        "Other hashers, and load",
        [
            "boltzhash.hashers.load",
            *(f"{k.__module__}.{k.__name__}" for k in HASHERS.values() if k is not SemanticHasher),
        ],
    ),
    "search": (
        "Searching codes",
        [
            "boltzhash.search.exact.ExactIndex",
            "boltzhash.search.approximate.ApproximateIndex",
            "boltzhash.search.finder.Finder",
        ],
    ),
    "corpus": (
        "Reading corpora",
        ["boltzhash.corpus.reading.read_corpus", "boltzhash.corpus.records.Document"],
    ),
    "metrics": (
        "Measures",
        [
            *(f"boltzhash.metrics.{name}" for name in ("report.evaluate", "report.Report")),
            *(
                f"boltzhash.metrics.own_texts.{name}"
                for name in ("evaluate_codes", "compare_hashers")
            ),
            "boltzhash.metrics.asking.evaluate_answers",
            "boltzhash.metrics.retrieval",
        ],
    ),
    "langchain": (
        "LangChain",
        [
            "boltzhash.integrations.langchain.BoltzhashVectorStore",
            "boltzhash.integrations.langchain.BoltzhashRetriever",
        ],
    ),
    "llama_index": (
        "LlamaIndex",
        [
            "boltzhash.integrations.llama_index.BoltzhashVectorStore",
            "boltzhash.integrations.llama_index.BoltzhashRetriever",
        ],
    ),
    "haystack": (
        "Haystack",
        [
            "boltzhash.integrations.haystack.BoltzhashDocumentStore",
            "boltzhash.integrations.haystack.BoltzhashRetriever",
        ],
    ),
    "errors": ("Errors", ["boltzhash.errors"]),
}
# Hashers inherit dozens of methods, which one page shows.
WITHOUT_INHERITED = "    options:\n      inherited_members: false\n"
ROLE = re.compile(r":(?:class|meth|func|mod|attr|data): ?(?=<code|`)")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\s*\\[(\[](.*?)\\[)\]]\s*</\1>', re.S)


# What the converter gets wrong, and letters that browsers draw only by their own names.
REPAIRS = {"<mi>&#x0007E;</mi>": "<mo>&#x0223C;</mo>", "<mi>;</mi>": "<mo>;</mo>"}
CAPITAL_GREEK = re.compile(r"<mi>(&#x00(?:39[1-9A-F]|3A[0-9]);)</mi>")
FUNCTION = re.compile(
    r"(<mi>(?:log|exp|min|max|arg|tanh|sin|cos)</mi>)(?=<m(?:i|n|frac|sub|sup|sqrt)\b)"
)
ALPHABET = re.compile(r'<mi mathvariant="(script|double-struck)">(\w)</mi>')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site")
    output = parser.parse_args().output.resolve()
    work = ROOT / "build" / "site-pages"
    shutil.rmtree(work, ignore_errors=True)
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    gather(work / "docs", urls["Repository"])
    config = work / "zensical.toml"
    config.write_text(configuration(work / "docs", urls), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(config)]
    if subprocess.run(command, cwd=work).returncode:
        sys.exit("the site could not be built: see above")
    shutil.rmtree(output, ignore_errors=True)
    shutil.move(work / "site", output)
    pages = sorted(output.rglob("*.html"))
    formulas = [formula for page in pages for formula in finish(page)]
    searched = output / "search.json"
    searched.write_text(ROLE.sub("", searched.read_text(encoding="utf-8")), encoding="utf-8")
    write_font(output / "formulas.woff", set(html.unescape("".join(formulas))))
    wrong = broken_links(output, urls["Documentation"]) + loaded_from_elsewhere(pages, output)
    print(f"{len(pages)} pages, {len(formulas)} formulas in {output}")
    sys.exit("\n".join(wrong) or 0)


def gather(folder: Path, repository: str) -> None:
    """Copies of all pages and pictures, each where the navigation looks for it."""
    for path in DOCS.rglob("*"):
        if path.suffix in PAGE_FILES:
            copy(path, folder / path.relative_to(DOCS))
    for source, name in REPOSITORY_PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(relinked(text, source, name, repository), encoding="utf-8")
    for picture in (ROOT / "benchmarks").glob("*.png"):
        copy(picture, folder / "benchmarks" / picture.name)
    for script in sorted(EXAMPLES.glob("*.py")):
        (folder / "examples" / f"{script.stem}.md").write_text(
            example_page(script, repository), encoding="utf-8"
        )
    for picture in OUTPUTS.glob("*.png"):
        copy(picture, folder / "examples" / picture.name)
    (folder / "api").mkdir()
    for name, (title, members) in API.items():
        text = "\n".join(f"::: {member}\n{options_of(member)}" for member in members)
        (folder / "api" / f"{name}.md").write_text(f"# {title}\n\n{text}", encoding="utf-8")


def copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


def example_page(script: Path, repository: str) -> str:
    """A script as a page: what it says of itself, its code, what it printed and drew."""
    source = script.read_text(encoding="utf-8")
    told, code = re.fullmatch(r'"""(.*?)"""\n+(.*)', source, re.S).groups()  # type: ignore[union-attr]
    first, _, about = told.partition("\n")
    title, _, lead = first.partition(": ")
    parts = [f"# {title}", lead[:1].upper() + lead[1:], about.strip("\n"), f"```python\n{code}```"]
    made = [run for run in runs() if run.script == script.stem]
    for run in made:
        output = (OUTPUTS / f"{run.name}.txt").read_text(encoding="utf-8")
        parts.append(f"```sh\n{run.command()}\n```\n\n```text\n{output}```")
    if (OUTPUTS / f"{script.stem}.png").exists():
        parts.append(f"![What it draws]({script.stem}.png)")
    where = json.loads(CIRCUMSTANCES.read_text(encoding="utf-8"))
    told = ", ".join(f"{name} {where[name]}" for name in ("python", *SET_APART))
    how = f"the tests run it and compare what it prints ({told})" if made else "needs a server"
    parts.append(f"[{script.name}]({repository}/blob/main/examples/{script.name}): {how}.")
    return "\n\n".join(parts) + "\n"


def options_of(member: str) -> str:
    is_other_hasher = member.startswith("boltzhash.hashers.") and not member.endswith(
        "SemanticHasher"
    )
    return WITHOUT_INHERITED if is_other_hasher else ""


def relinked(text: str, source: str, name: str, repository: str) -> str:
    """A page that lies elsewhere in the repository: its links lead to the site, or to the repository.

    >>> relinked("[a](docs/search.md#x) [b](setup.py)", "CHANGELOG.md", "changelog.md", "https://h")
    '[a](search.md#x) [b](https://h/blob/main/setup.py)'
    """

    def link(found: re.Match[str]) -> str:
        if re.match(r"[a-z]+:|#", found[1]):
            return found[0]
        path, _, heading = found[1].partition("#")
        target = (ROOT / source).parent.joinpath(path).resolve().relative_to(ROOT).as_posix()
        up = "../" * name.count("/")
        if target.endswith(".png"):
            return found[0]
        if re.fullmatch(r"examples/\w+\.py", target):
            return f"]({up}{target.removesuffix('.py')}.md)"
        if target.startswith("docs/") or target in REPOSITORY_PAGES:
            there = REPOSITORY_PAGES.get(target, target.removeprefix("docs/"))
            return f"]({up}{there}{'#' * bool(heading)}{heading})"
        return f"]({repository}/blob/main/{target})"

    return re.sub(r"\]\(([^)\s]+)\)", link, text)


def configuration(folder: Path, urls: dict[str, str]) -> str:
    """What lies in zensical.toml, and what is found out here."""
    found = {
        "site_url": urls["Documentation"],
        # Not as repo_url: for that the theme would ask the host for stars, in every reader's browser.
        "extra": {"social": [{"icon": "simple/github", "link": urls["Repository"]}]},
        "docs_dir": "docs",
        "site_dir": "site",
        "nav": navigation(folder),
    }
    lines = [f"{name} = {toml(value)}" for name, value in found.items()]
    text = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    text = text.replace('paths = ["../src"]', f"paths = [{toml(str(ROOT / 'src'))}]")
    return text.replace("[project]\n", "[project]\n" + "\n".join(lines) + "\n", 1)


def navigation(folder: Path) -> list[dict[str, Any]]:
    """The parts of the site with their pages, as Zensical wants them."""
    placed: set[str] = set()
    parts: list[dict[str, Any]] = []
    for part, patterns in NAVIGATION.items():
        names: list[str] = []
        for pattern in patterns:
            found = sorted(path.relative_to(folder).as_posix() for path in folder.glob(pattern))
            names += [name for name in found if name not in names]
        placed |= set(names)
        parts.append({part: [{title_of(folder / name): name} for name in names]})
    every = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
    if more := [name for name in every if name not in placed]:
        parts.append({"More": [{title_of(folder / name): name} for name in more]})
    return parts


def title_of(page: Path) -> str:
    found = re.search(r"^# +(.+)$", page.read_text(encoding="utf-8"), re.M)
    assert found, f"{page} has no title"
    return found[1].replace("`", "")


def toml(value: Any) -> str:
    """
    >>> toml([{"Start": ["a.md"]}])
    '[{"Start" = ["a.md"]}]'
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def finish(page: Path) -> list[str]:
    """Formulas as MathML, and names in docstrings without Sphinx's roles; returns the formulas."""
    formulas: list[str] = []

    def drawn(found: re.Match[str]) -> str:
        display = "block" if found[1] == "div" else "inline"
        formulas.append(mathml(html.unescape(found[2]).strip(), display))
        return f'<{found[1]} class="formula">{formulas[-1]}</{found[1]}>'

    text = FORMULA.sub(drawn, page.read_text(encoding="utf-8"))
    page.write_text(ROLE.sub("", text), encoding="utf-8")
    return formulas


def mathml(formula: str, display: str = "inline") -> str:
    """One formula; an error if a part of it is not understood.

    >>> "&#x0223C;" in mathml(r"s \\sim p")
    True
    >>> mathml(r"\\nosuchsign")
    Traceback (most recent call last):
    ...
    ValueError: a part of the formula \\nosuchsign is not known
    """
    text = str(latex2mathml.converter.convert(formula, display=display))
    if "\\" in html.unescape(text):
        raise ValueError(f"a part of the formula {formula} is not known")
    for wrong, right in REPAIRS.items():
        text = text.replace(wrong, right)
    text = FUNCTION.sub(r'\1<mspace width="0.17em"/>', text)
    text = CAPITAL_GREEK.sub(r'<mi mathvariant="normal">\1</mi>', text)
    return ALPHABET.sub(lambda letter: f"<mi>{named_letter(letter[1], letter[2])}</mi>", text)


def named_letter(alphabet: str, letter: str) -> str:
    """
    >>> named_letter("script", "N"), named_letter("double-struck", "R")
    ('𝒩', 'ℝ')
    """
    kind = "CAPITAL" if letter.isupper() else "SMALL"
    for name in (f"MATHEMATICAL {alphabet} {kind} {letter}", f"{alphabet} {kind} {letter}"):
        with suppress(KeyError):
            return unicodedata.lookup(name.upper())
    raise ValueError(f"Unicode has no {alphabet} {letter}")


def write_font(path: Path, characters: set[str]) -> None:
    """Of STIX Two Math what the formulas need."""
    options = subset.Options(flavor="woff", layout_features=["*"], notdef_outline=True)
    italic = {chr(0x1D434 + i) for i in range(52)} | {chr(0x1D6E2 + i) for i in range(58)} | {"ℎ"}
    with subset.load_font(str(files("ziamath.fonts") / "STIXTwoMath-Regular.ttf"), options) as font:
        subsetter = subset.Subsetter(options)
        subsetter.populate(text="".join(characters | italic))
        subsetter.subset(font)
        subset.save_font(font, str(path), options)


class Links(HTMLParser):
    """What a page links to and loads, and the names of its headings."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag in ("a", "area") and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(values["href"])
        elif "src" in values:
            self.loads.append(values["src"])


def broken_links(output: Path, site_url: str) -> list[str]:
    """Links to pages, files and headings of the site that are not there."""
    pages = {page: Links(page) for page in output.rglob("*.html") if page.name != "404.html"}
    wrong = []
    for page, found in pages.items():
        for link in [*found.links, *found.loads]:
            url = urlsplit(link.removeprefix(site_url) if link.startswith(site_url) else link)
            if url.scheme or url.netloc:
                continue
            start = output if link.startswith(site_url) else page.parent
            target = (start / unquote(url.path)).resolve() if url.path else page
            target = target / "index.html" if target.is_dir() else target
            heading = unquote(url.fragment)
            is_there = target.is_file() and (not heading or heading in pages[target].ids)
            if not is_there:
                wrong.append(f"{page.relative_to(output)}: {link} leads nowhere")
    return wrong


def loaded_from_elsewhere(pages: list[Path], output: Path) -> list[str]:
    return [
        f"{page.relative_to(output)} loads {address}"
        for page in pages
        for address in Links(page).loads
        if urlsplit(address).netloc
    ]


if __name__ == "__main__":
    main()
