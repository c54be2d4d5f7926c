"""Questions with judged answers: every way of searching SemanticHasher's codes, beside BM25.

    BOLTZHASH_DATA=... python -m experiments.runs.retrieval --seeds 0 1 2

Reads corpus.jsonl.gz, queries.jsonl and qrels.tsv of each collection from ir/NAME, in BEIR's layout.
A model of 64 bits is fitted on the documents alone: with the defaults, and with stems, as ``boltzhash
index`` fits one. BM25 is bm25s with its stop words
and PyStemmer's English stems. Finished runs are skipped.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from boltzhash import Collection, read_corpus
from boltzhash.corpus import Document
from boltzhash.corpus.judgements import Judgements, Questions, read_judgements, read_questions
from boltzhash.metrics import evaluate_answers, ways_of_searching
from boltzhash.metrics.asking import Way
from experiments.results.files import Result, rounded, write
from experiments.runs.corpora import checksum
from experiments.runs.runner import circumstances, every_param, make
from experiments.runs.sweeps import DEFAULT, Run, Settings, correlated, grid, unfinished

COLLECTIONS = ("cran", "cisi", "npl", "scifact")
BITS, SEEDS = 64, (0, 1, 2)
STEMS = correlated("SemanticHasher-stems", purpose="questions")
# The same with independent bits.
FACTORISED_STEMS = Settings(
    "SemanticHasher-stems-rank-0",
    "SemanticHasher",
    {"purpose": "questions", "rank": 0, "n_components": 1},
)
SETTINGS = [DEFAULT, STEMS, FACTORISED_STEMS]
RIVAL = "BM25"


class Judged(NamedTuple):
    """Documents, questions, and which of the documents answer them."""

    documents: list[Document]
    questions: Questions
    judgements: Judgements
    sha256: str


def judged(name: str) -> Judged:
    """One of ``COLLECTIONS``, from the folder that BOLTZHASH_DATA names."""
    if "BOLTZHASH_DATA" not in os.environ:
        raise SystemExit("set BOLTZHASH_DATA to the folder with the collections, in its folder ir")
    folder = Path(os.environ["BOLTZHASH_DATA"], "ir", name)
    files = [folder / file for file in ("corpus.jsonl.gz", "queries.jsonl", "qrels.tsv")]
    corpus, questions, judgements = files
    return Judged(
        list(read_corpus(corpus)),
        read_questions(questions),
        read_judgements(judgements),
        checksum(files),
    )


def bm25(documents: list[Document]) -> Way:
    """bm25s as it comes; a document without any word of the question is not an answer."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def tokens(texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    index = bm25s.BM25()
    index.index(tokens([document.text for document in documents]), show_progress=False)

    def search(text: str, k: int) -> list[str | int]:
        most = min(k, len(documents))
        rows, scores = index.retrieve(tokens([text]), k=most, show_progress=False)
        found = zip(rows[0].tolist(), scores[0].tolist(), strict=True)
        return [documents[row].id for row, score in found if score > 0]

    return search


def measure(run: Run) -> Result:
    """Fit a model, keep the documents in a collection, ask every question."""
    data = judged(run.corpus)
    start = time.perf_counter()
    hasher = make(run, "auto").fit([d.text for d in data.documents])
    with (
        TemporaryDirectory() as folder,
        Collection.create(Path(folder, "library"), hasher) as collection,
    ):
        collection.add(data.documents)
        ways = {RIVAL: bm25(data.documents), **ways_of_searching(collection)}
        report = evaluate_answers(ways, data.questions, judgements=data.judgements)
    return {
        "run": run.name,
        "settings": run.settings.name,
        "corpus": run.corpus,
        "bits": run.bits,
        "seed": run.seed,
        "params": every_param(hasher),
        "report": rounded(report.as_json()),
        "seconds": round(time.perf_counter() - start, 2),  # all in: training, indexing, asking
        "data_sha256": data.sha256,
        **circumstances("auto"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--collections", nargs="+", choices=COLLECTIONS, default=COLLECTIONS)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    options = parser.parse_args()
    todo = unfinished(grid("retrieval", SETTINGS, options.collections, [BITS], options.seeds))
    print(f"{len(todo)} runs to do", flush=True)
    for run in todo:
        result = measure(run)
        write("retrieval", result)
        figures = {
            way: measures["nDCG@10"]["mean"] for way, measures in result["report"]["ways"].items()
        }
        print(run.name, *(f"{way} {figure:.4f}" for way, figure in figures.items()), flush=True)


if __name__ == "__main__":
    main()
