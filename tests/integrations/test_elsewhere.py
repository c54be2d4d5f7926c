"""Codes in faiss, usearch and DuckDB: the page is run, and neighbours are those of our kernel."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash import LSH, Collection, ExactIndex
from boltzhash.cli.parser import main
from boltzhash.codes import hamming, unpack

PAGE = Path(__file__).parents[2] / "docs" / "elsewhere.md"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LSH:
    """A collection called library in the folder where a test runs, and its model."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    words = [*"bread butter jam stars planets moons law court judge sea ship storm".split()]
    texts = [" ".join(rng.choice(words, 6)) for _ in range(300)]
    hasher = LSH(64).fit(texts)
    with Collection.create("library", hasher) as made:
        made.add({"id": f"text {i}", "text": text} for i, text in enumerate(texts))
        made.delete(["text 7"])
    return hasher


def run(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A command, whose output goes to a file if it says so."""
    command, _, file = line.partition(" > ")
    program, *arguments = shlex.split(command, comments=True)
    assert program == "boltzhash"
    capsys.readouterr()
    assert main(arguments) == 0, line
    if file:
        Path(file).write_text(capsys.readouterr().out, encoding="utf-8")


def test_every_line_of_the_page_runs(library: LSH, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("faiss", "usearch", "duckdb", "pyarrow"):
        pytest.importorskip(name)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    kinds = [kind for kind, _ in blocks]
    assert kinds == ["sh", *["python"] * 5, "sh"]
    library.save("model")
    names: dict[str, Any] = {}
    for kind, code in blocks:
        if kind == "python":
            exec(compile(code, str(PAGE), "exec"), names)
        else:
            for line in code.splitlines():
                run(line, capsys)
    assert len(names["ids"]) == 299
    assert names["table"].schema.metadata[b"boltzhash.model"].decode() == library.fingerprint()
    card = Path("model", "README.md").read_text(encoding="utf-8")
    assert "release notes, 2020 to 2025" in card
    assert "299 documents in halves" in card
    assert names["bits"].astype(bool).tolist() == unpack(np.array(names["codes"])).tolist()


def some_codes(n_bits: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n_bits)
    codes = rng.integers(0, 256, (2000, n_bits // 8), dtype=np.uint8)
    return codes, codes[:20] ^ (rng.random((20, n_bits // 8)) < 0.3).astype(np.uint8)


@pytest.mark.parametrize("n_bits", [8, 24, 64, 128, 256])
def test_faiss_finds_the_same(n_bits: int) -> None:
    faiss = pytest.importorskip("faiss")
    codes, queries = some_codes(n_bits)
    index = faiss.IndexBinaryFlat(n_bits)
    index.add(codes)
    distances, rows = index.search(queries, 10)
    ours = ExactIndex(codes).search(queries, 10)
    np.testing.assert_array_equal(distances, ours.distances)
    np.testing.assert_array_equal(rows, ours.ids)


@pytest.mark.parametrize("n_bits", [8, 24, 64, 128, 256])
def test_usearch_finds_the_same(n_bits: int) -> None:
    """Among documents at one distance it has another order, so distances are what is compared."""
    usearch = pytest.importorskip("usearch.index")
    codes, queries = some_codes(n_bits)
    index = usearch.Index(ndim=n_bits, metric="hamming", dtype="b1")
    index.add(np.arange(len(codes)), codes)
    found = index.search(queries, 10, exact=True)
    ours = ExactIndex(codes).search(queries, 10)
    np.testing.assert_array_equal(found.distances, ours.distances)
    told = np.take_along_axis(hamming(queries, codes), found.keys.astype(np.int64), axis=1)
    np.testing.assert_array_equal(told, ours.distances)
