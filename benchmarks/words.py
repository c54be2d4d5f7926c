"""What finding documents by their words costs, over a million of them, beside FTS5 and tantivy.

    pip install tantivy
    BOLTZHASH_DATA=... python benchmarks/words.py [--documents 1000000]

A text is 50 to 100 words as they stand in the texts under ``$BOLTZHASH_DATA``: six tenths from one real
text, drawn at random, the rest from all of them, so a word is as common as it is there and words of one
text keep company. A question is 2 to 12 different words of one such text, any of them, without
English stop words, which nobody here searches for: some are in a third of all documents, some in one.
Ids are ``doc-0``, ``doc-1`` …; codes are of LSH, 64 bits, fitted on 20,000 of the texts.

Each part runs in a process of its own, which takes the time by the clock and of the CPU (all threads)
and its peak memory, mapped files included. FTS5 (tokenizer porter, no copy of the texts) and tantivy
(``en_stem``, frequencies without positions) index the same texts and are asked for ten documents with
any of the words. Prints a table and writes JSON; collection_report.py makes a table of that.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from boltzhash import LSH
from boltzhash.collection import Collection
from boltzhash.collection.sqlite.word_files import WORDS_FOLDER
from boltzhash.collection.sqlite.words import WordFollower
from boltzhash.search.compiled import kernel_name
from boltzhash.text.stopwords import function_words
from boltzhash.version import __version__

Results = dict[str, Any]

OUTPUT = Path(__file__).parent / "results" / "words.json"
TEXTS, QUESTIONS = "texts.txt", "questions.json"
N_QUESTIONS = 1000
OF_ONE_TEXT = 0.6  # share of a document's words
BLOCK = 10_000
SAMPLE = 20_000
BARS = {"both, p50": 15.0, "both, p99": 60.0, "documents/s with words, of those without": 0.6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--folder", help="where to put everything (a temporary folder)")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--part", choices=list(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="+", default=list(PARTS), help="some of the parts")
    options = parser.parse_args()
    if options.part:
        print(json.dumps(PARTS[options.part](Path(options.folder))))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        make_texts(Path(folder), options.documents)
        results = {"about": about(options.documents)}
        options.output.parent.mkdir(parents=True, exist_ok=True)
        for part in options.only:
            results[part] = in_a_new_process(part, folder)
            options.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    for part, found in results.items():
        for name, value in found.items():
            print(f"{part:<10} {name:<34} {value}")


def in_a_new_process(part: str, folder: str) -> Results:
    command = [sys.executable, __file__, "--part", part, "--folder", folder]
    load = os.getloadavg()[0]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = {**json.loads(done.stdout.splitlines()[-1]), "load before": round(load, 1)}
    print(part, found, file=sys.stderr, flush=True)
    return found


def about(n: int) -> Results:
    return {
        "documents": n,
        "questions": N_QUESTIONS,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, kernel path {kernel_name()}",
        "sqlite": sqlite3.sqlite_version,
        "boltzhash": __version__,
    }


# Texts and questions


def make_texts(folder: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    texts = [text.split() for text in real_texts(Path(os.environ["BOLTZHASH_DATA"]))]
    lengths = np.array([len(text) for text in texts])
    starts, total = np.cumsum(lengths) - lengths, int(lengths.sum())
    words = np.array([word for text in texts for word in text], dtype=object)
    with (folder / TEXTS).open("w", encoding="utf-8") as file:
        for first in range(0, n, BLOCK):
            sizes = rng.integers(50, 101, size=min(BLOCK, n - first))
            one = np.repeat(rng.integers(len(texts), size=len(sizes)), sizes)
            of_one = starts[one] + (rng.random(len(one)) * lengths[one]).astype(int)
            of_all = (rng.random(len(one)) * total).astype(int)
            chosen = words[np.where(rng.random(len(one)) < OF_ONE_TEXT, of_one, of_all)]
            for some in np.split(chosen, np.cumsum(sizes)[:-1]):
                file.write(" ".join(some) + "\n")
    questions = []
    stop_words = frozenset(function_words("english"))
    for text in every_text(folder, n // N_QUESTIONS or 1):
        found = {word.lower() for word in re.findall(r"[^\W_]+", text)} - stop_words
        size = min(int(rng.integers(2, 13)), len(found))
        questions.append(" ".join(rng.choice(sorted(found), size, replace=False)))
    (folder / QUESTIONS).write_text(json.dumps(questions[:N_QUESTIONS]), encoding="utf-8")


def real_texts(data: Path) -> Iterator[str]:
    for path in sorted([*data.glob("*.jsonl.gz"), *data.glob("ir/*/corpus.jsonl.gz")]):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                text = json.loads(line)["text"]
                if len(text.split()) >= 10:
                    yield text


def every_text(folder: Path, step: int = 1) -> Iterator[str]:
    with (folder / TEXTS).open(encoding="utf-8") as file:
        for number, line in enumerate(file):
            if number % step == 0:
                yield line.rstrip("\n")


def asked(folder: Path) -> list[str]:
    return list(json.loads((folder / QUESTIONS).read_text(encoding="utf-8")))


# What is measured


def add_without_words(folder: Path) -> Results:
    with mock.patch.object(WordFollower, "catch_up"):
        return _add(folder, folder / "without")


def add_with_words(folder: Path) -> Results:
    """Until the last document can be found by its words."""
    return _add(folder, folder / "collection")


def _add(folder: Path, path: Path) -> Results:
    hasher = LSH(64).fit(list(itertools.islice(every_text(folder), SAMPLE)))
    documents = ({"id": f"doc-{i}", "text": text} for i, text in enumerate(every_text(folder)))
    with Collection.create(path, hasher) as collection:
        taken = Taken()
        n = collection.add(documents)
        if path.name == "collection":
            last = f"doc-{n - 1}"
            assert collection.search(last, 1, by="words").ids == [last]
        times = taken.until_now()
        sizes = collection.stats()["bytes_per_document"]
    return {
        "documents/s": round(n / times["s"]),
        **times,
        "peak MB": peak_megabytes(),
        "bytes a document": sizes,
    }


def rebuild(folder: Path) -> Results:
    """The first search after the index was lost."""
    shutil.rmtree(folder / "collection" / WORDS_FOLDER)
    return first_search(folder)


def first_search(folder: Path) -> Results:
    question = asked(folder)[0]
    taken = Taken()
    with Collection.open(folder / "collection") as collection:
        opened = taken.until_now()
        collection.search(question, by="both")
        found = taken.until_now()
    files = list((folder / "collection" / WORDS_FOLDER).iterdir())
    return {
        "open": opened,
        "open and search": found,
        "peak MB": peak_megabytes(),
        "files": len(files),
        "words, MB": round(sum(path.stat().st_size for path in files) / 1e6, 1),
    }


def searches(folder: Path) -> Results:
    with Collection.open(folder / "collection") as collection:
        return {
            by: _times(partial(collection.search, by=by), asked(folder))
            for by in ("both", "words", "codes")
        }


def after_additions(folder: Path) -> Results:
    """The first search after some documents were added to all the others, and after one more."""
    found, texts = {}, list(itertools.islice(every_text(folder), 1000))
    with Collection.open(folder / "collection") as collection:
        questions = iter(asked(folder))
        collection.search(next(questions), by="both")
        for n in (1, 100, 1000):
            collection.add({"id": f"more-{n}-{i}", "text": texts[i]} for i in range(n))
            taken = Taken()
            collection.search(next(questions), by="both")
            found[f"{n} added, next search"] = taken.until_now()
        last = collection.search("more-1000-999", 1, by="both").ids
        assert last == ["more-1000-999"]
        collection.delete(f"more-{n}-{i}" for n in (1, 100, 1000) for i in range(n))
        taken = Taken()
        collection.search(next(questions), by="both")
        found["all of them deleted, next search"] = taken.until_now()
    return found


def fts5(folder: Path) -> Results:
    path = folder / "fts5.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(
        "CREATE VIRTUAL TABLE texts USING fts5(text, content='', tokenize='porter unicode61')"
    )
    taken = Taken()
    connection.executemany(
        "INSERT INTO texts(rowid, text) VALUES (?, ?)", enumerate(every_text(folder))
    )
    connection.commit()
    built = taken.until_now()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def search(question: str) -> Any:
        any_word = " OR ".join(f'"{word}"' for word in question.split())
        return connection.execute(
            "SELECT rowid, bm25(texts) FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT 10",
            (any_word,),
        ).fetchall()

    size = path.stat().st_size
    questions = asked(folder)[: N_QUESTIONS // 10]  # it takes its time
    return {"build": built, "bytes": size, "search": _times(search, questions)}


def tantivy_index(folder: Path) -> Results:
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field("text", tokenizer_name="en_stem", index_option="freq")
    schema.add_unsigned_field("number", stored=True)
    (folder / "tantivy").mkdir()
    index = tantivy.Index(schema.build(), path=str(folder / "tantivy"))
    taken = Taken()
    writer = index.writer(heap_size=500_000_000, num_threads=2)
    for number, text in enumerate(every_text(folder)):
        writer.add_document(tantivy.Document(text=text, number=number))
    writer.commit()
    writer.wait_merging_threads()
    built = taken.until_now()
    index.reload()
    searcher = index.searcher()

    def search(question: str) -> Any:
        found = searcher.search(index.parse_query(question, ["text"]), 10).hits
        return [searcher.doc(address) for _, address in found]

    size = sum(path.stat().st_size for path in (folder / "tantivy").iterdir())
    return {"build": built, "bytes": size, "search": _times(search, asked(folder))}


PARTS: dict[str, Callable[[Path], Results]] = {
    "without words": add_without_words,
    "with words": add_with_words,
    "first": first_search,
    "search": searches,
    "added": after_additions,
    "tantivy": tantivy_index,
    "fts5": fts5,
    "rebuilt": rebuild,
}


# Time and memory


class Taken:
    """Seconds by the clock and of the CPU since it was made."""

    def __init__(self) -> None:
        self._start, self._cpu = time.perf_counter(), time.process_time()

    def until_now(self) -> dict[str, float]:
        clock, cpu = time.perf_counter() - self._start, time.process_time() - self._cpu
        return {"s": round(clock, 4), "CPU s": round(cpu, 4)}


def _times(search: Callable[[str], object], questions: list[str]) -> Results:
    """Milliseconds a question by the clock and of the CPU, after twenty questions to warm up."""
    for question in questions[:20]:
        search(question)
    times = []
    for question in questions:
        taken = Taken()
        search(question)
        times.append(list(taken.until_now().values()))
    by_clock, of_cpu = 1000 * np.array(times).T
    return {
        name: round(float(np.percentile(of, p)), 2)
        for name, of, p in (
            ("p50 ms", by_clock, 50),
            ("p99 ms", by_clock, 99),
            ("CPU p50 ms", of_cpu, 50),
            ("CPU p99 ms", of_cpu, 99),
        )
    }


def peak_megabytes() -> int:
    """Of this process alone: what getrusage says counts the one that started it, too."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


if __name__ == "__main__":
    main()
