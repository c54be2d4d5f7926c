"""The scripts of examples/ run as their readers would run them, and print what their pages show."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
KEY_LINES = {
    "own_corpus": [r"^\d+ documents of .+corpus\.jsonl are now in .+library$", r"^   3 .+ file"],
    "sklearn_pipeline": [r"^  64 bits: accuracy 0\.[6-9]\d", r"^the best .+: accuracy 0\.[6-9]\d$"],
    "own_vectors": [
        r"bytes of vectors became [\d,]+ bytes of codes$",
        r"^ +\d  scipy\.interpolate",
    ],
    "near_duplicates": [
        r"groups of near-duplicates, such as$",
        r"^  numpy\..+: numpy\..+ \((0\.[89]\d|1\.00)\)",
        r"^the same text again: there already$",
        r"^a sentence more: there already$",
        r"^another text: new$",
    ],
    "filters": [
        r"^where={'package': 'numpy'}\n( +\d+\.\d\d  numpy\..+\n){3}where",
        r"^where={'words': {'<': 30}}\n( +\d+\.\d\d  .+  [12]\d words\n){3}where",
        r"^where={'\$or': .+\n( +\d+\.\d\d  (\w*zip\w*\.|.*\breader\b).*\n){3}where",
    ],
    "service_client": [
        r"^added: .+'written': 1}$",
        r"^ +\d+\.\d\d  mine$",
        r"^deleted: .+'deleted': 1}$",
        r"^the service ended with 0$",
    ],
    "evaluation": [r"^a  SemanticHasher +\*?0\.\d{4}", r"^d  LSH +0\.\d{4}"],
    "bits_explained": [r"^  bit  0  on: \w+", r"^The farthest document is .+ bits agree$"],
    "corpus_larger_than_memory": [r"^40,000 codes in 320,000 bytes", r"^at most … MB"],
    "map_of_topics": [
        r"^\d+ docstrings, 10 regions$",
        r"^ +\d+  .*\bdistribution\b",
        r"^ +\d+  .*\bmasked\b",
    ],
    "own_corpus-cranfield": [
        r"^1400 documents of cran/corpus.jsonl.gz are",
        r"^   1 +\d\.\d\d  51 ",
    ],
}


@pytest.fixture(scope="module")
def examples() -> ModuleType:
    """docs/run_examples.py, which wrote examples/outputs."""
    path = EXAMPLES.parent / "docs" / "run_examples.py"
    spec = importlib.util.spec_from_file_location("run_examples", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", KEY_LINES)
def test_prints_what_its_page_shows(name: str, examples: ModuleType, tmp_path: Path) -> None:
    """Line by line where it was written in circumstances like these; elsewhere the lines that matter.

    Where this fails and should: ``make examples`` writes anew what scripts print.
    """
    (one,) = (one for one in examples.runs() if one.name == name)
    if not one.is_possible():
        pytest.skip("BOLTZHASH_DATA does not name a folder with ir/cran")
    printed = examples.printed(one, tmp_path)
    for line in KEY_LINES[name]:
        assert re.search(line, printed, re.MULTILINE), (line, printed)
    if json.loads(examples.CIRCUMSTANCES.read_text()) == examples.circumstances():
        assert printed == (examples.OUTPUTS / f"{name}.txt").read_text(encoding="utf-8")
    drawn = [path.name for path in tmp_path.glob("*.png")]
    assert drawn == [path.name for path in examples.OUTPUTS.glob(f"{name}.png")]


def test_without_a_server_the_example_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOLTZHASH_POSTGRES", raising=False)
    command = [sys.executable, EXAMPLES / "postgresql.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Give postgresql://user@host/database, or set BOLTZHASH_POSTGRES" in done.stderr


def test_every_example_is_run_and_listed(examples: ModuleType) -> None:
    scripts = {path.stem for path in EXAMPLES.glob("*.py")}
    assert {one.name for one in examples.runs()} == set(KEY_LINES)
    ran = {one.script for one in examples.runs()}
    assert scripts == {*ran, "postgresql"}  # which tests/collection runs, where a server is
    outputs = {path.stem for path in (EXAMPLES / "outputs").glob("*.txt")}
    assert outputs == set(KEY_LINES)
    listed = re.findall(r"^\| \[(\w+)\.py\]\(\1\.py\)", (EXAMPLES / "README.md").read_text(), re.M)
    assert set(listed) == scripts
