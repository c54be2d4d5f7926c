"""Questions with judged answers: what is asked, of whom, and what becomes of it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from boltzhash import LSH
from boltzhash.corpus import Document
from experiments.runs import retrieval
from experiments.runs.sweeps import DEFAULT, Run
from small_corpus import DOCUMENTS, as_jsonl

# The stem of "planets" is in the documents, and each word of the topic "sky" is in no other.
QUESTION = "what are the planets?"


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("BOLTZHASH_DATA", str(tmp_path))
    folder = tmp_path / "ir" / "cran"
    folder.mkdir(parents=True)
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(as_jsonl(DOCUMENTS).encode()))
    (folder / "queries.jsonl").write_text(as_jsonl([{"id": "1", "text": QUESTION}]))
    lines = [f"1\t{d['id']}\t1\n" for d in DOCUMENTS if "planet" in d["text"]]
    (folder / "qrels.tsv").write_text("".join(lines))
    return "cran"


def test_bm25_finds_stems_and_never_pads() -> None:
    documents = [Document(d["id"], d["text"]) for d in DOCUMENTS]
    search = retrieval.bm25(documents)
    expected = {d.id for d in documents if "planet" in d.text}
    assert 0 < len(expected) < 30
    assert set(search(QUESTION, 30)) == expected
    assert search(QUESTION, 3) == search(QUESTION, 30)[:3]
    assert search("unheard", 3) == []
    assert len(search(" ".join(d.text for d in documents), 1000)) == len(documents)


def test_a_run_compares_every_way_with_bm25(
    collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieval, "make", lambda run, device: LSH(run.bits))
    result = retrieval.measure(Run("retrieval", DEFAULT, collection, 64, 0))
    report = result["report"]
    assert result["run"] == "SemanticHasher-cran-64-0"
    assert report["questions"] == 1
    assert list(report["ways"]) == ["BM25", "words", "codes", "both"]
    assert report["differences_from"] == retrieval.RIVAL
    assert report["ways"]["BM25"]["nDCG@10"]["mean"] == 1
    assert result["data_sha256"] == retrieval.judged(collection).sha256
