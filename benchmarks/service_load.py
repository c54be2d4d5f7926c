"""How many searches a service answers in a second, and what each costs, beside another search server.

Two workers, 64 connections, reads only; the client, wrk, runs on the same CPUs. Each question is a few
words from one of the collection's documents, and hardly any is asked twice. Beside the rate stands the
CPU time of a request, in the workers and in the client, which says as much on a busy machine. Then
Groonga, a search server written in C, gets the same documents and the same questions from the same
client: words in any order, ranked by tf-idf, with a snippet of each hit. At last, in this process, what
the parts of a search take: the least of several times, so that it says something on a busy machine,
too. Prints tables with the bars and writes JSON.

    python benchmarks/service_load.py COLLECTION [--seconds 15]

wrk and Groonga are Debian's (`apt-get install wrk groonga-bin`); `make bench-load` installs them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from boltzhash.collection import Collection
from boltzhash.corpus import Document
from boltzhash.server import answers
from boltzhash.server.hits import found as shown
from boltzhash.server.hits import search_text
from boltzhash.server.marks import Sought
from boltzhash.server.requests import SearchRequest
from serving import cpu_seconds, served, wait_for_workers

RESULTS = Path(__file__).parent / "results"
CONNECTIONS, WORKERS = 64, 2
WARM_SECONDS = 5
WORDS = 8  # of a question
BARS = {"by codes": 1500, "by words and codes": 1000}  # searches per second
P99_BAR = 80  # milliseconds
WARM_QUESTIONS, PROFILED, TIMES = 3000, 100, 7
ANSWER = TypeAdapter(answers.FoundIn)
SNIFFED = 300  # questions that are looked at to see whether they find their document

# wrk sends what this returns, without making it anew; it begins anywhere, so that runs differ.
SCRIPT = """
local requests, i = {}, 0
init = function(args)
  for line in io.lines(args[1]) do
    local method, path, body = line:match("^(%S+) (%S+) ?(.*)$")
    local headers = {}
    if body ~= "" then headers["content-type"] = "application/json" else body = nil end
    requests[#requests + 1] = wrk.format(method, path, headers, body)
  end
  i = tonumber(args[2]) % #requests
end
request = function() i = i % #requests + 1; return requests[i] end
"""


class Question(NamedTuple):
    """Words of a document."""

    id: str
    text: str


class Request(NamedTuple):
    """What is sent: a method, a path, and JSON or nothing."""

    method: str
    path: str
    body: dict[str, Any] | None = None

    def line(self) -> str:
        body = "" if self.body is None else " " + json.dumps(self.body)
        return f"{self.method} {self.path}{body}"


class Client:
    """wrk with its script."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._offset = folder, 0
        (folder / "script.lua").write_text(SCRIPT)

    def measure(
        self, port: int, servers: list[int], requests: list[Request], seconds: float
    ) -> dict[str, Any]:
        """The rate, how long an answer takes, and CPU milliseconds of a request, after a warm-up."""
        asked = self._folder / "requests.txt"
        asked.write_text("\n".join(request.line() for request in requests) + "\n")
        warmed = 0
        while warmed < min(WARM_QUESTIONS, len(requests)):
            warmed += int(found(r"(\d+) requests in", self._run(port, asked, WARM_SECONDS)))
        before, client_before = sum(map(cpu_seconds, servers)), os.times()
        told = self._run(port, asked, seconds)
        used, client = sum(map(cpu_seconds, servers)) - before, os.times()
        n = int(found(r"(\d+) requests in", told))
        if "Socket errors" in told:
            raise RuntimeError(f"not all were answered: {told}")
        refused = re.search(r"Non-2xx or 3xx responses: (\d+)", told)
        client_used = sum(client[2:4]) - sum(client_before[2:4])
        return {
            "per_second": round(float(found(r"Requests/sec:\s+(\S+)", told)), 1),
            "refused": int(refused[1]) if refused else 0,
            "p50_ms": milliseconds(found(r"\n +50% +(\S+)", told)),
            "p99_ms": milliseconds(found(r"\n +99% +(\S+)", told)),
            "server_cpu_ms": round(1000 * used / n, 3),
            "client_cpu_ms": round(1000 * client_used / n, 3),
        }

    def _run(self, port: int, asked: Path, seconds: float) -> str:
        self._offset += 1009
        command = [
            "wrk",
            "-t1",
            f"-c{CONNECTIONS}",
            f"-d{round(seconds)}s",
            "--latency",
            "--timeout=30s",
        ]
        command += ["-s", str(self._folder / "script.lua"), f"http://127.0.0.1:{port}"]
        done = subprocess.run(
            [*command, "--", str(asked), str(self._offset)],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise RuntimeError(f"wrk said nothing like {pattern}: {text}")
    return match.group(1)


def milliseconds(told: str) -> float:
    """
    >>> milliseconds("1.25s"), milliseconds("850.00us")
    (1250.0, 0.85)
    """
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", told).groups()  # type: ignore[union-attr]
    return round(float(number) * {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000}[unit], 2)


def questions_of(documents: list[Document]) -> list[Question]:
    """A few words from somewhere in each document, without signs that mean something to a server."""
    chosen = random.Random(0)
    questions = {}
    for document in documents:
        words = re.findall(r"[^\W\d_]{2,}", document.text)
        start = chosen.randrange(max(1, len(words) - WORDS))
        if words:
            text = " ".join(words[start : start + WORDS])
            questions[text] = Question(str(document.id), text)
    shuffled = list(questions.values())
    chosen.shuffle(shuffled)
    return shuffled


def our_search(question: Question, by: str | None) -> Request:
    way = {} if by is None else {"by": by}
    return Request("POST", "/v1/search", {"text": question.text, "k": 10, **way})


def their_search(question: Question) -> Request:
    asked = {
        "table": "Documents",
        "match_columns": "scorer_tf_idf(text)",
        "query": " OR ".join(question.text.split()),
        "output_columns": "_key,_score,snippet_html(text)",
        "sort_keys": "-_score",
        "limit": "10",
    }
    return Request("GET", f"/d/select?{urllib.parse.urlencode(asked)}")


def asked(port: int, request: Request) -> Any:
    body = None if request.body is None else json.dumps(request.body).encode()
    sent = urllib.request.Request(
        f"http://127.0.0.1:{port}{request.path}", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(sent, timeout=60) as answer:
        return json.load(answer)


def measure_ours(
    collection: Path, client: Client, questions: list[Question], seconds: float
) -> dict[str, Any]:
    ways = {"by codes": "codes", "by words": "words", "by words and codes": None}
    measured = {}
    with served(collection, "--workers", str(WORKERS)) as service:
        workers = wait_for_workers(service, WORKERS)
        for name, path in (("nothing: /healthz", "/healthz"), ("a thread: /readyz", "/readyz")):
            measured[name] = client.measure(
                service.port, workers, [Request("GET", path)], seconds / 3
            )
        for name, by in ways.items():
            requests = [our_search(question, by) for question in questions]
            measured[name] = client.measure(service.port, workers, requests, seconds)
            answers = [asked(service.port, request)["hits"] for request in requests[:SNIFFED]]
            measured[name]["finds_its_document"] = share(
                questions, [[str(hit["id"]) for hit in hits] for hits in answers]
            )
    return measured


def share(questions: list[Question], found_ids: list[list[str]]) -> float:
    """Of questions, how many have the document that they were taken from among their hits."""
    pairs = list(zip(questions, found_ids, strict=False))
    return round(sum(question.id in ids for question, ids in pairs) / len(pairs), 3)


def measure_groonga(
    documents: list[Document], client: Client, questions: list[Question], seconds: float
) -> dict[str, Any]:
    with groonga(documents) as (process, port):
        requests = [their_search(question) for question in questions]
        measured = client.measure(port, [process.pid], requests, seconds)
        # [[status, …], [[[n], [columns], [_key, _score, snippet], …]]]
        answers = [asked(port, request)[1][0][2:] for request in requests[:SNIFFED]]
        ids = [[hit[0] for hit in hits] for hits in answers]
        measured["finds_its_document"] = share(questions, ids)
    return measured


@contextmanager
def groonga(documents: list[Document]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A server with the documents, as many threads as we have workers."""
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "db")
        schema = (
            "table_create Documents TABLE_HASH_KEY ShortText\n"
            "column_create Documents text COLUMN_SCALAR Text\n"
            "table_create Words TABLE_PAT_KEY ShortText --default_tokenizer TokenBigram "
            "--normalizer NormalizerAuto\n"
            "column_create Words of_text COLUMN_INDEX|WITH_POSITION Documents text\n"
        )
        rows = [{"_key": str(document.id), "text": document.text} for document in documents]
        load = f"load --table Documents\n{json.dumps(rows)}\n"
        subprocess.run(
            ["groonga", "-n", database],
            input=(schema + load).encode(),
            check=True,
            capture_output=True,
        )
        port = free_port()
        process = subprocess.Popen(
            [
                *("groonga", "-s", "--protocol", "http", "--bind-address", "127.0.0.1"),
                *("--port", str(port), "--max-threads", str(WORKERS), database),
            ]
        )
        try:
            wait_until_open(process, port)
            yield process, port
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_until_open(process: subprocess.Popen[bytes], port: int) -> None:
    while process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("groonga did not start")


def profile(location: Path, questions: list[Question]) -> dict[str, float]:
    """CPU microseconds of the parts of a search, each the mean over questions of its least time."""
    some = questions[:PROFILED]
    with Collection.open(location) as collection, collection.snapshot() as now:
        hasher, words = now.hasher, now.words
        for question in questions[:WARM_QUESTIONS]:  # words and pages are known then
            ask(collection, question, None)
        rows = [hasher.tfidf([question.text]) for question in some]
        found_by = {
            by: [collection.search(question.text, 10, by=by) for question in some]
            for by in ("codes", "both")
        }
        sought = [Sought.by_query(words, question.text) for question in some]
        told = [ask(collection, question, "codes") for question in some]
        bodies = [json.dumps(our_search(question, None).body) for question in some]
        parts: dict[str, Callable[[int], object]] = {
            "the request validated": lambda i: SearchRequest.model_validate_json(bodies[i]),
            "a snapshot opened": lambda i: collection.snapshot().close(),
            "words counted and weighed": lambda i: hasher.tfidf([some[i].text]),
            "the network": lambda i: hasher.margins(rows[i]),
            "searched by codes": lambda i: collection.search(some[i].text, 10, by="codes"),
            "searched by both": lambda i: collection.search(some[i].text, 10),
            "hits shown, by codes": lambda i: shown(now, found_by["codes"][i], sought[i]),
            "hits shown, by both": lambda i: shown(now, found_by["both"][i], sought[i]),
            "answer to bytes": lambda i: encoded(told[i]),
            "by codes without HTTP": lambda i: encoded(ask(collection, some[i], "codes")),
            "by both without HTTP": lambda i: encoded(ask(collection, some[i], None)),
        }
        return {name: least_microseconds(part, len(some)) for name, part in parts.items()}


def encoded(answer: answers.FoundIn) -> bytes:
    """As FastAPI does it."""
    return ANSWER.dump_json(ANSWER.validate_python(answer))


def ask(collection: Collection, question: Question, by: str | None) -> answers.FoundIn:
    request = SearchRequest.model_validate(our_search(question, by).body)
    with collection.snapshot() as now:
        return search_text(now, request)


def least_microseconds(part: Callable[[int], object], n: int) -> float:
    least = [float("inf")] * n
    for _ in range(TIMES):
        for i in range(n):
            start = time.thread_time()
            part(i)
            least[i] = min(least[i], time.thread_time() - start)
    return round(1e6 * sum(least) / n, 1)


def print_profile(profiled: dict[str, float]) -> None:
    print("CPU microseconds of the parts of a search")
    for name, value in profiled.items():
        print(f"  {name:<32} {value:8.0f}")


def print_table(result: dict[str, Any]) -> None:
    print(
        f"{'':<24} {'per s':>8} {'p50 ms':>8} {'p99 ms':>8} {'server':>8} {'client':>8} {'finds':>6}"
    )
    for name, row in {**result["boltzhash"], "Groonga, by words": result["groonga"]}.items():
        figures = [row[key] for key in ("per_second", "p50_ms", "p99_ms")]
        costs = [row[key] for key in ("server_cpu_ms", "client_cpu_ms")]
        finds = f"{row['finds_its_document']:.0%}" if "finds_its_document" in row else ""
        cells = " ".join(f"{value:8.1f}" for value in figures)
        cells += " " + " ".join(f"{value:8.3f}" for value in costs)
        print(f"{name:<24} {cells} {finds:>6}")
        if row["refused"]:
            print(f"{'':<24} {row['refused']} requests were refused")
    print("server, client: CPU milliseconds of a request")
    for name, bar in BARS.items():
        row = result["boltzhash"][name]
        ratio = row["per_second"] / bar
        print(f"{name}: {row['per_second']:.0f} / {bar} per second = {ratio:.2f} (bar 1)")
        slow = row["p99_ms"] / P99_BAR
        print(
            f"{name}: p99 {row['p99_ms']:.0f} / {P99_BAR} ms = {slow:.2f} (bar 1, less is better)"
        )
    theirs = result["groonga"]["per_second"] / result["boltzhash"]["by words"]["per_second"]
    print(f"Groonga answers {theirs:.2f} times as many as boltzhash by words")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("collection", type=Path)
    parser.add_argument("--seconds", type=float, default=15)
    options = parser.parse_args()
    for program in ("wrk", "groonga"):
        if shutil.which(program) is None:
            sys.exit(f"there is no {program}: apt-get install wrk groonga-bin (as root)")
    with Collection.open(options.collection) as collection:
        documents = list(collection)
    questions = questions_of(documents)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        client = Client(Path(folder))
        ours = measure_ours(options.collection, client, questions, options.seconds)
        theirs = measure_groonga(documents, client, questions, options.seconds)
    result: dict[str, Any] = {
        "documents": len(documents),
        "questions": len(questions),
        "connections": CONNECTIONS,
        "workers": WORKERS,
        "seconds": options.seconds,
        "boltzhash": ours,
        "groonga": theirs,
        "profile_us": profile(options.collection, questions),
        "bars": {**BARS, "p99_ms": P99_BAR},
        "load_before": round(load, 1),
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
    }
    print_table(result)
    print_profile(result["profile_us"])
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "service_load.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
