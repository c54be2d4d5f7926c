"""What an index shows of boltzhash: its metadata, the README, and the files beside it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest
from readme_renderer import markdown

import boltzhash

ROOT = Path(__file__).parents[2]
FACTS = metadata("boltzhash")
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")


def project() -> dict[str, Any]:
    read = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(read["project"])


def description() -> str:
    return str(FACTS.get_payload())


def test_a_bare_install_brings_five_packages() -> None:
    names = {re.match(r"[\w-]+", line)[0] for line in project()["dependencies"]}  # type: ignore[index]
    assert names == {"numpy", "scipy", "safetensors", "tqdm", "PyStemmer", "shtab"}


def test_the_readme_renders_on_an_index() -> None:
    assert FACTS["Description-Content-Type"] == "text/markdown"
    html = markdown.render(description())
    assert html is not None
    assert html.count("<table>") == 1
    assert "<img" in html


def test_links_and_pictures_of_the_readme_lead_somewhere_from_an_index() -> None:
    repository = project()["urls"]["Repository"]
    found = LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", description(), flags=re.S))
    assert found
    for picture, link in found:
        assert link.startswith("https://"), link
        if link.startswith(repository):
            kind = "raw" if picture else "blob"
            at_tag = f"{repository}/{kind}/v{boltzhash.__version__}/"
            assert link.startswith(at_tag)
            path = link.removeprefix(at_tag).partition("#")[0]
            assert (ROOT / path).exists(), link


def test_the_changelog_has_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)$", text, re.M)
    day = r"unreleased|\d{4}-\d\d-\d\d"
    assert re.fullmatch(rf"{re.escape(boltzhash.__version__)}, ({day})", sections[0]), sections[0]


def test_the_citation_is_valid_and_of_this_version() -> None:
    check(ROOT / "CITATION.cff", "citation-file-format")
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {boltzhash.__version__}\n" in text


def test_workflows_are_valid_and_hold_no_secret() -> None:
    if not (ROOT / ".github").exists():
        pytest.skip("not part of an sdist")
    for workflow in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        check(workflow, "github-workflows")
        assert not re.search(r"secrets\.|password|token:\s*\S+[^\s:]{16}", workflow.read_text())
    check(ROOT / ".github" / "dependabot.yml", "dependabot")
    config = ROOT / ".github" / "zizmor.yml"
    run([Path(sys.executable).parent / "zizmor", "--offline", "--config", config, ROOT / ".github"])


def check(file: Path, schema: str) -> None:
    run([sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", file])


def run(command: list[Any]) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
