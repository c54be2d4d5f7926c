"""What passages find in long documents, and what they cost: known items in manual pages.

    python benchmarks/passages.py [--pages PAGES.jsonl] [--questions 150] [--words 200]

Documents are the manual pages of this machine (``man``, without hyphenation; pages of gcloud, which
repeat each other, are left out), or any JSONL with ``id`` and ``text``. A question is made from a page
of five passages or more: a sentence of 8 to 30 words that begins behind the first 400 words of its page
and that no other page has, word for word; and four of its words, drawn at random, without stop words.
The page that it is from is the one to be found. Each question is asked of

- whole pages: one code a page, the model learned from pages;
- passages: a code for each passage, the model learned from passages, as ``index --passages`` does it;
- passages, model of pages: the same with the model learned from pages;
- passages as documents: each passage a document by itself, so that the index of words counts in passages
  too; a page has the place of its first passage. No collection does that: it is what it would be worth.

by codes, by words and by both; 50 hits are asked for. "Shown" is how often the passage that is shown
has the question's sentence, of the pages that are among the first ten. Differences are over the same
questions, with their standard errors. Prints tables and writes JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boltzhash import Collection, SemanticHasher
from boltzhash.collection.sqlite.store import SqliteStore
from boltzhash.hashers import Hasher
from boltzhash.search.snippet import sentences
from boltzhash.text.passages import cut
from boltzhash.text.stopwords import function_words
from boltzhash.version import __version__

OUTPUT = Path(__file__).parent / "results" / "passages.json"
MANUAL = Path("/usr/share/man")
K = 50
DEEP = 400  # words of a page before a question's sentence
WAYS = ("codes", "words", "both")
WHOLE, CUT, CUT_BY_PAGES, AS_DOCUMENTS = (
    *("whole pages", "passages", "passages, model of pages"),
    "passages as documents",
)


class Question(NamedTuple):
    """A text to ask for, the page that it is from, and the sentence that it is made of."""

    text: str
    page: str
    sentence: str


class Asked(NamedTuple):
    """The place of the page among the hits, 0 if it is not there, and whether its sentence is shown."""

    place: int
    is_shown: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--pages", type=Path, help="JSONL with id and text, made if it is not there"
    )
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--words", type=int, default=200, help="of a passage")
    parser.add_argument("--only", nargs="+", default=[WHOLE, CUT, CUT_BY_PAGES, AS_DOCUMENTS])
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.pages or Path(folder, "pages.jsonl")
        if not path.exists():
            path.write_text("".join(json.dumps(page) + "\n" for page in manual_pages()))
        pages = [json.loads(line) for line in path.open(encoding="utf-8")]
        results = measured(pages, options, Path(folder))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(tables(results))


def manual_pages() -> Iterator[dict[str, str]]:
    """As they are shown in a terminal, without what is not text; each once."""
    plain = {**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "GROFF_NO_SGR": "1"}
    seen: set[str] = set()
    for path in sorted(MANUAL.glob("man[1-8]/*")):
        if path.is_symlink() or not path.is_file() or path.name.startswith("gcloud"):
            continue
        shown = subprocess.run(
            ["man", "--nh", "--nj", "-l", str(path)], capture_output=True, env=plain, check=False
        )
        text = subprocess.run(
            ["col", "-bx"], input=shown.stdout, capture_output=True, env=plain, check=True
        ).stdout
        page = text.decode("utf-8", "replace").strip()
        if page and page not in seen:
            seen.add(page)
            yield {"id": path.name.removesuffix(".gz"), "text": page}


def measured(
    pages: list[dict[str, str]], options: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    passages = [
        {"id": f"{page['id']}#{number}", "text": page["text"][start:end]}
        for page in pages
        for number, (start, end) in enumerate(cut(page["text"], options.words))
    ]
    questions = made_questions(pages, options.questions, 5 * options.words)
    by_pages, seconds_pages = timed(lambda: learned(pages))
    by_passages, seconds_passages = timed(lambda: learned(passages))
    collections = {
        WHOLE: (by_pages, pages, None),
        CUT: (by_passages, pages, options.words),
        CUT_BY_PAGES: (by_pages, pages, options.words),
        AS_DOCUMENTS: (by_passages, passages, None),
    }
    found, costs = {}, {}
    for name in options.only:
        hasher, documents, words = collections[name]
        with Collection.create(folder / name, hasher, passages=words) as collection:
            _, seconds = timed(partial(collection.add, documents))
            write_files(collection)
            is_page = name != AS_DOCUMENTS
            found[name], each = asked(collection, questions, is_page=is_page)
            costs[name] = {"add, s of CPU": round(seconds, 1), **each, **sizes(collection)}
    lengths = np.array([len(page["text"].split()) for page in pages])
    return {
        "about": {
            "pages": len(pages),
            "words of a page": [int(value) for value in np.percentile(lengths, [10, 50, 90, 100])],
            "passages": len(passages),
            "questions": {kind: len(some) for kind, some in questions.items()},
            "learning from pages, s of CPU": round(seconds_pages, 1),
            "learning from passages, s of CPU": round(seconds_passages, 1),
            "bits": by_pages.n_bits,
            "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
            "load": [round(value, 1) for value in os.getloadavg()],
            "boltzhash": __version__,
        },
        "found": {name: summary(of) for name, of in found.items()},
        "less whole pages": {
            name: differences(of, found[WHOLE])
            for name, of in found.items()
            if name != WHOLE and WHOLE in found
        },
        "costs": costs,
        "examples": {kind: [q.text for q in some[:5]] for kind, some in questions.items()},
    }


def write_files(collection: Collection) -> None:
    """What is in memory, so that sizes are of all of it."""
    assert isinstance(collection.store, SqliteStore)
    collection.store.flush()


def learned(documents: Sequence[dict[str, str]]) -> Hasher:
    """As ``boltzhash index`` learns."""
    hasher = SemanticHasher(purpose="questions", n_bits=64, random_state=0)
    return hasher.fit([document["text"] for document in documents])


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and its seconds of CPU."""
    start = time.process_time()
    done = work()
    return done, time.process_time() - start


def made_questions(
    pages: Sequence[dict[str, str]], n: int, fewest_words: int
) -> dict[str, list[Question]]:
    draw = random.Random(0)
    on_pages = Counter(
        line for page in pages for line in {plain(s) for s in sentences(page["text"])}
    )
    whole: list[Question] = []
    few: list[Question] = []
    long_pages = [page for page in pages if len(page["text"].split()) >= fewest_words]
    for page in draw.sample(long_pages, len(long_pages)):
        start = list(re.finditer(r"\S+", page["text"]))[DEEP].start()
        deep = [plain(sentence) for sentence in sentences(page["text"][start:])[1:]]
        own = [line for line in deep if on_pages[line] == 1 and is_a_sentence(line)]
        if not own or len(whole) == n:
            continue
        sentence = draw.choice(own)
        whole.append(Question(sentence, page["id"], sentence))
        few.append(Question(" ".join(draw.sample(telling(sentence), 4)), page["id"], sentence))
    return {"a sentence": whole, "four of its words": few}


def plain(sentence: str) -> str:
    return " ".join(sentence.split())


def is_a_sentence(line: str) -> bool:
    is_prose = re.fullmatch(r"[A-Z][\w\s,;:'’()/.-]*\.", line) is not None
    return is_prose and 8 <= len(line.split()) <= 30 and len(telling(line)) >= 4


def telling(sentence: str) -> list[str]:
    """Its words that say something, each once; a list, so that the order is the same in every run."""
    words = re.findall(r"[a-z]{3,}", sentence.lower())
    return sorted(set(words).difference(function_words("english")))


def asked(
    collection: Collection, questions: dict[str, list[Question]], *, is_page: bool
) -> tuple[dict[str, list[Asked]], dict[str, float]]:
    found: dict[str, list[Asked]] = {}
    collection.search("warm up")
    costs = {}
    for by in WAYS:
        start = time.process_time()
        for kind, some in questions.items():
            found[f"{kind}, by {by}"] = [ask(collection, one, by, is_page=is_page) for one in some]
        n = sum(map(len, questions.values()))
        costs[f"a question by {by}, ms of CPU"] = round(1000 * (time.process_time() - start) / n, 2)
    return found, costs


def ask(collection: Collection, question: Question, by: str, *, is_page: bool) -> Asked:
    text = re.sub(r'["-]', " ", question.text)  # nothing that a query would read as a sign
    hits = collection.search(text, K if is_page else 10 * K, by=by).hits
    pages = [hit.id if is_page else str(hit.id).rpartition("#")[0] for hit in hits]
    first = {page: number for number, page in reversed(list(enumerate(pages)))}
    if question.page not in first:
        return Asked(0, is_shown=False)
    place = sorted(first, key=first.__getitem__).index(question.page) + 1
    hit = hits[first[question.page]]
    return Asked(place if place <= K else 0, question.sentence in plain(hit.passage_text))


def summary(found: dict[str, list[Asked]]) -> dict[str, dict[str, float]]:
    return {
        name: {
            "first": share(of, 1),
            "first ten": share(of, 10),
            "MRR": round(float(np.mean(reciprocal(of))), 3),
            "shown": round(float(np.mean([one.is_shown for one in of if 1 <= one.place <= 10])), 3),
        }
        for name, of in found.items()
    }


def share(found: Sequence[Asked], within: int) -> float:
    return round(float(np.mean([1 <= one.place <= within for one in found])), 3)


def reciprocal(found: Sequence[Asked]) -> Any:
    return np.array([1 / one.place if one.place else 0.0 for one in found])


def differences(
    found: dict[str, list[Asked]], others: dict[str, list[Asked]]
) -> dict[str, tuple[float, float]]:
    """Of MRR: mean and standard error, over the same questions."""
    return {
        name: mean_and_error(reciprocal(of) - reciprocal(others[name]))
        for name, of in found.items()
    }


def mean_and_error(values: Any) -> tuple[float, float]:
    error = values.std(ddof=1) / np.sqrt(len(values))
    return round(float(values.mean()), 3), round(float(error), 3)


def sizes(collection: Collection) -> dict[str, float]:
    told = collection.stats()["bytes"]
    parts = ("codes", "codes_file", "words_files", "database")
    return {f"{part}, kB": round(told.get(part, 0) / 1000) for part in parts}


def tables(results: dict[str, Any]) -> str:
    lines = [f"{name}: {value}" for name, value in results["about"].items()]
    columns = ("first", "first ten", "MRR", "shown")
    for question in next(iter(results["found"].values())):
        lines += ["", f"| {question} | {' | '.join(columns)} | MRR less that of whole pages |"]
        lines.append("| --- " * (len(columns) + 2) + "|")
        for name, found in results["found"].items():
            less = results["less whole pages"].get(name, {}).get(question)
            shown = "" if less is None else f"{less[0]:+.3f} ± {less[1]:.3f}"
            values = " | ".join(f"{found[question][column]:.3f}" for column in columns)
            lines.append(f"| {name} | {values} | {shown} |")
    costs = results["costs"]
    lines += ["", f"| | {' | '.join(costs)} |", "| --- " * (len(costs) + 1) + "|"]
    for cost in next(iter(costs.values())):
        lines.append(f"| {cost} | {' | '.join(str(of[cost]) for of in costs.values())} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
