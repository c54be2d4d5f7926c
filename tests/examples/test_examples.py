"""The scripts of examples/ run as their readers would run them, and print what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

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
    "evaluation": [r"^a  CorrSH +\*?0\.\d{4}", r"^d  LSH +0\.\d{4}"],
    "bits_explained": [r"^  bit  0  on: \w+", r"^The farthest document is .+ bits agree$"],
    "corpus_larger_than_memory": [r"^40,000 codes in 320,000 bytes", r"^at most \d+ MB"],
}


def run(script: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in an empty folder, which is also where temporary files go."""
    return subprocess.run(
        [sys.executable, EXAMPLES / f"{script}.py", *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize("script", KEY_LINES)
def test_prints_what_it_promises(script: str, tmp_path: Path) -> None:
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
    for line in KEY_LINES[script]:
        assert re.search(line, done.stdout, re.MULTILINE), (line, done.stdout)


def test_the_corpus_may_be_ones_own(tmp_path: Path) -> None:
    corpus = tmp_path / "mine.csv"
    rows = [f"{i},star {i % 7} planet eigenvalues {i}" for i in range(60)]
    corpus.write_text("\n".join(["id,text", *rows]))
    done = run("own_corpus", tmp_path, "mine.csv")
    assert done.returncode == 0, done.stderr
    assert "60 documents of mine.csv are now in" in done.stdout


def test_without_a_server_the_example_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOLTZHASH_POSTGRES", raising=False)
    done = run("postgresql", tmp_path)
    assert done.returncode == 1
    assert "Give postgresql://user@host/database, or set BOLTZHASH_POSTGRES" in done.stderr


def test_every_example_is_run_and_listed() -> None:
    scripts = {path.stem for path in EXAMPLES.glob("*.py")}
    assert scripts == {*KEY_LINES, "postgresql"}  # which tests/collection runs, where a server is
    listed = re.findall(r"^\| \[(\w+)\.py\]\(\1\.py\)", (EXAMPLES / "README.md").read_text(), re.M)
    assert set(listed) == scripts
