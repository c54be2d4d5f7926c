"""Text to codes: documents/s of each part and of the whole, beside scikit-learn's TfidfVectorizer.

    BOLTZHASH_DATA=... python benchmarks/encoding.py            # 20 Newsgroups as it is
    python benchmarks/encoding.py --small                       # fewer documents, under a minute

The model is a default SemanticHasher of 64 bits, 10,000 words, 500 hidden units, trained for one epoch:
speed does not depend on how well it learned. Everything is measured in turn, several rounds, and the
fastest round counts: what else the machine does can only make a figure lower. Without BOLTZHASH_DATA the
documents are Python's docstrings.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from boltzhash import SemanticHasher, Training, load
from boltzhash.cli.parser import main as command_line
from boltzhash.corpus.docstrings import docstring_corpus
from boltzhash.hashers.shared import inference
from boltzhash.text.counting import Counts, PythonCounter, count_words
from boltzhash.text.tfidf import TfIdf
from boltzhash.threads import available_cpus
from machine import machine

RESULTS = Path(__file__).parent / "results" / "encoding.json"
BAR = 15_000  # documents/s of the whole, all CPUs
BARRED = "texts → codes, 2 threads"
ENCODE, INDEX = "boltzhash encode, 2 threads", "boltzhash index, 2 threads"
INDEX_BAR = 0.6  # of the documents/s of encode
RIVAL = "scikit-learn TfidfVectorizer, 1 thread"
BLOCK = 1024


class Row(NamedTuple):
    """One thing to measure: on how many CPUs, on how many of the documents."""

    name: str
    cpus: int
    n_documents: int
    work: Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", action="store_true", help="fewer documents and rounds")
    small = parser.parse_args().small
    corpus, texts = read_texts(4096 if small else None)
    with tempfile.TemporaryDirectory() as folder:
        hasher = SemanticHasher(64, training=Training(epochs=1, device="cpu")).fit(
            texts[:: 4 if small else 1]
        )
        hasher.save(Path(folder, "model"))
        rates = measure(rows(hasher, texts, Path(folder)), rounds=3 if small else 15)
        rates["texts → codes, 2 processes"] = in_processes(Path(folder, "model"), texts, 2)
    result = {
        "corpus": corpus,
        "documents": len(texts),
        "characters_per_document": round(sum(map(len, texts)) / len(texts)),
        "words": hasher.n_features_in_,
        "compiled": inference._layers is not None,
        "bar": {BARRED: BAR, INDEX: round(INDEX_BAR * rates.get(ENCODE, 0))},
        "documents_per_second": {name: round(rate) for name, rate in rates.items()},
        **machine(),
    }
    print(table(result))
    if not small:  # the figures that are kept are those of the full run
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def read_texts(at_most: int | None) -> tuple[str, list[str]]:
    folder = os.environ.get("BOLTZHASH_DATA")
    if not folder:
        return "docstrings", [document.text for document in docstring_corpus()][:at_most]
    with gzip.open(Path(folder, "ng20.jsonl.gz"), "rt", encoding="utf-8") as lines:
        return "ng20", [json.loads(line)["text"] for line in lines][:at_most]


def rows(hasher: SemanticHasher, texts: list[str], folder: Path) -> list[Row]:
    """What is measured. Parts work on blocks, as ``transform`` does."""
    tfidf = hasher.tfidf_
    assert tfidf is not None
    blocks = [texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK)]
    counts = [count_words(block, tfidf._counter) for block in blocks]
    weighed = [tfidf.transform(block) for block in blocks]
    plain: Any = load(folder / "model")
    plain.tfidf_._counter = PythonCounter(tfidf.words_, None)
    rival = TfidfVectorizer(stop_words="english", max_features=10_000).fit(texts)
    few, n = texts[::8], len(texts)
    accented = [f"{text} é" for text in texts]  # what is not ASCII is normalised by Python first
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts)))
    return [
        Row("tokens and counts, 1 thread", 1, n, lambda: count_words(texts, tfidf._counter)),
        Row("weights, 1 thread", 1, n, lambda: [weigh(tfidf, c) for c in counts]),
        Row("network, 1 thread", 1, n, lambda: [hasher._margins(rows) for rows in weighed]),
        Row("texts → codes, 1 thread", 1, n, lambda: hasher.transform(texts)),
        Row(BARRED, 2, n, lambda: hasher.transform(texts)),
        Row("the same with an é in each, 2 threads", 2, n, lambda: hasher.transform(accented)),
        Row(ENCODE, 2, n, lambda: encode(folder, corpus)),
        Row(INDEX, 2, n, lambda: index(folder, corpus)),
        Row("texts → codes, nothing compiled", 1, len(few), lambda: nothing_compiled(plain, few)),
        Row(RIVAL, 1, len(few), lambda: rival.transform(few)),
    ]


def weigh(tfidf: TfIdf, counts: Counts) -> sparse.csr_matrix:
    return tfidf._weigh(counts._replace(values=counts.values.copy()), len(tfidf.words_))


def encode(folder: Path, corpus: Path) -> None:
    """The command, without the start of Python: reading JSONL, encoding, writing codes and ids."""
    _run("encode", f"{folder}/model", str(corpus), "-o", f"{folder}/codes")


def index(folder: Path, corpus: Path) -> None:
    """The same for a collection: texts and metadata are written as well, and are on disk at the end."""
    shutil.rmtree(folder / "collection", ignore_errors=True)
    _run("index", f"{folder}/model", str(corpus), "-o", f"{folder}/collection")


def _run(*arguments: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        done = command_line(list(arguments))
    assert done == 0


def nothing_compiled(hasher: Any, texts: list[str]) -> None:
    """What an install without a compiler does; ``hasher`` has the plain counter."""
    compiled, inference._layers = inference._layers, None  # type: ignore[assignment]
    try:
        hasher.transform(texts)
    finally:
        inference._layers = compiled


def measure(todo: list[Row], rounds: int) -> dict[str, float]:
    """Documents/s of the fastest round of each; those that need more CPUs than there are stay out."""
    at_hand = sorted(os.sched_getaffinity(0))
    best: dict[str, float] = {}
    for _ in range(rounds):
        for row in todo:
            if row.cpus > available_cpus():
                continue
            os.sched_setaffinity(0, at_hand[: row.cpus])
            start = time.perf_counter()
            row.work()
            rate = row.n_documents / (time.perf_counter() - start)
            os.sched_setaffinity(0, at_hand)
            best[row.name] = max(rate, best.get(row.name, 0.0))
    return best


def in_processes(model: Path, texts: list[str], n_processes: int, rounds: int = 30) -> float:
    """Documents/s of processes that each encode their share on a CPU of their own."""
    context = multiprocessing.get_context("spawn")
    at_hand = sorted(os.sched_getaffinity(0))
    barrier = context.Barrier(n_processes + 1)
    workers = [
        context.Process(
            target=encode_share,
            args=(model, texts[i::n_processes], at_hand[i % len(at_hand)], barrier, rounds),
        )
        for i in range(n_processes)
    ]
    for worker in workers:
        worker.start()
    best = 0.0
    for _ in range(rounds):
        barrier.wait()
        start = time.perf_counter()
        barrier.wait()
        best = max(best, len(texts) / (time.perf_counter() - start))
    for worker in workers:
        worker.join()
    return best


def encode_share(model: Path, texts: list[str], cpu: int, barrier: Any, rounds: int) -> None:
    os.sched_setaffinity(0, {cpu})
    hasher = load(model)
    hasher.transform(texts[:BLOCK])
    for _ in range(rounds):
        barrier.wait()
        hasher.transform(texts)
        barrier.wait()


def table(result: dict[str, Any]) -> str:
    """As Markdown: documents/s, times scikit-learn's, and the bar if there is one."""
    rates = result["documents_per_second"]
    lines = [
        f"{result['documents']:,} documents of {result['corpus']}, "
        f"{result['characters_per_document']:,} characters each; {result['cpus']} CPUs, "
        f"{result['cpu']}; load {result['load_average']}",
        "",
        "| | documents/s | × scikit-learn | bar |",
        "| --- | ---: | ---: | --- |",
    ]
    for name, rate in rates.items():
        bar = result["bar"].get(name)
        verdict = f"{bar:,}: {'reached' if rate >= bar else 'MISSED'}" if bar else ""
        lines.append(f"| {name} | {rate:,} | {rate / rates[RIVAL]:.1f} | {verdict} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
