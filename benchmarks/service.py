"""A service under load, and whether it told the truth.

Starts ``boltzhash serve`` with several workers over a copy of a collection, searches it by codes over 64
connections for a minute while four of them add and delete documents, and kills a worker half-way.
Afterwards every answer is compared with exact search in the generation that it names, and every
acknowledged write is looked for. Prints a table and writes JSON.

    python benchmarks/service.py COLLECTION [--seconds 60] [--connections 64] [--workers 2]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import os
import platform
import random
import re
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection import Collection
from boltzhash.search import ExactIndex
from serving import open_sockets, served, wait_for_workers, workers_of

KEY = "key-of-the-benchmark"
RESULTS = Path(__file__).parent / "results"
K = 10
WRITERS = 4


@dataclass
class Answered:
    """One search that was answered."""

    generation: int
    query: int
    hits: list[tuple[str | int, int]]


@dataclass
class Write:
    """A change that was sent; ``generation`` is None until it is acknowledged."""

    added: list[tuple[str, str]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    generation: int | None = None


@dataclass
class Seen:
    """Everything that the clients saw."""

    answers: list[Answered] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    refusals: int = 0  # 503 with Retry-After
    killed: float = math.inf  # when
    broken: list[float] = field(default_factory=list)  # when a connection broke
    errors: list[str] = field(default_factory=list)


class Client:
    """One HTTP/1.1 connection, opened again when it breaks."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        content = json.dumps(body).encode()
        writer.write(
            f"POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n".encode()
            + content
        )
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        found = re.search(rb"content-length: (\d+)", head)
        assert found is not None
        answer = json.loads(await reader.readexactly(int(found.group(1))))
        if b"connection: close" in head:
            self.close()
        return status, answer

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def search_on(client: Client, queries: list[str], end: float, seen: Seen, seed: int) -> None:
    chosen = random.Random(seed)
    while time.monotonic() < end:
        query = chosen.randrange(len(queries))
        start = time.perf_counter()
        try:
            status, answer = await client.post(
                "/v1/search", {"text": queries[query], "k": K, "by": "codes"}
            )
        except (OSError, EOFError):
            seen.broken.append(time.monotonic())
            client.close()
            continue
        if status == 200:
            seen.seconds.append(time.perf_counter() - start)
            hits = [(hit["id"], hit["distance"]) for hit in answer["hits"]]
            seen.answers.append(Answered(answer["generation"], query, hits))
        else:
            await note_refusal(seen, status, answer)


async def write_on(client: Client, texts: list[str], end: float, seen: Seen, seed: int) -> None:
    chosen = random.Random(seed)
    mine: list[str] = []
    for number in itertools.count():
        if time.monotonic() >= end:
            return
        if mine and chosen.random() < 0.4:
            some = chosen.sample(mine, min(len(mine), chosen.randint(1, 3)))
            write = Write(deleted=some)
            request: tuple[str, dict[str, Any]] = ("/v1/documents/delete", {"ids": some})
        else:
            some = [f"w{seed}-{number}-{i}" for i in range(chosen.randint(1, 4))]
            write = Write(added=[(id_, chosen.choice(texts)) for id_ in some])
            documents = [{"id": id_, "text": text} for id_, text in write.added]
            request = ("/v1/documents", {"documents": documents})
        try:
            status, answer = await client.post(*request)
        except (OSError, EOFError):
            seen.broken.append(time.monotonic())
            client.close()
            seen.writes.append(write)  # who knows
            mine = [id_ for id_ in mine if id_ not in write.deleted]
            continue
        if status == 200:
            write.generation = answer["generation"]
            seen.writes.append(write)
            mine = [id_ for id_ in mine if id_ not in write.deleted]
            mine += [id_ for id_, _ in write.added]
        else:
            await note_refusal(seen, status, answer)
        await asyncio.sleep(0.05)


async def note_refusal(seen: Seen, status: int, answer: dict[str, Any]) -> None:
    if status == 503:
        seen.refusals += 1
        await asyncio.sleep(0.2)
    else:
        seen.errors.append(f"{status}: {answer}")


async def load(
    port: int, parent: int, queries: list[str], seconds: float, connections: int, kill: bool
) -> Seen:
    seen = Seen()
    end = time.monotonic() + seconds
    clients = [Client(port) for _ in range(connections)]
    tasks = [
        (write_on if i < WRITERS else search_on)(client, queries, end, seen, i)
        for i, client in enumerate(clients)
    ]

    async def kill_half_way() -> None:
        await asyncio.sleep(seconds / 2)
        seen.killed = time.monotonic()
        os.kill(max(workers_of(parent), key=open_sockets), signal.SIGKILL)

    await asyncio.gather(*tasks, *([kill_half_way()] if kill else []))
    for client in clients:
        client.close()
    await asyncio.sleep(0.1)  # for the connections to be closed
    return seen


class Truth:
    """The collection as it was in each generation, from what was written."""

    def __init__(self, folder: Path, queries: list[str]) -> None:
        with Collection.open(folder) as collection:
            self.hasher = collection.hasher
            documents = list(collection)
            self.first = int(collection.stats()["generation"])
        self.ids: list[str | int] = [document.id for document in documents]
        self.codes = self.hasher.transform(document.text for document in documents)
        self.queries = self.hasher.transform(queries)

    def wrong_answers(self, writes: list[Write], answers: list[Answered]) -> int:
        """How many are not the exact answer; writes in the order of their generations."""
        added = [pair for write in writes for pair in write.added]
        codes = self.codes
        if added:
            codes = np.concatenate([codes, self.hasher.transform(text for _, text in added)])
        ids = [*self.ids, *(id_ for id_, _ in added)]
        place = {id_: i for i, id_ in enumerate(ids)}
        alive = np.zeros(len(ids), dtype=np.bool_)
        alive[: len(self.ids)] = True
        pending = iter(writes)
        write = next(pending, None)
        wrong = 0
        for answer in sorted(answers, key=lambda answer: answer.generation):
            while write is not None and (write.generation or 0) <= answer.generation:
                alive[[place[id_] for id_, _ in write.added]] = True
                alive[[place[id_] for id_ in write.deleted if id_ in place]] = False
                write = next(pending, None)
            expected = nearest(codes, alive, self.queries[answer.query], ids)
            wrong += answer.hits != expected
        return wrong


def nearest(
    codes: Codes, alive: Any, query: Codes, ids: list[str | int]
) -> list[tuple[str | int, int]]:
    distances = np.bitwise_count(codes ^ query).sum(axis=1, dtype=np.int32)
    distances[~alive] = 1 << 20
    order = np.argsort(distances, kind="stable")[:K]
    return [(ids[i], int(distances[i])) for i in order if alive[i]]


def check(truth: Truth, seen: Seen, folder: Path) -> dict[str, Any]:
    """Wrong answers, lost writes, and generations that nobody wrote."""
    with Collection.open(folder) as collection:
        with collection.snapshot() as now:
            now.check()
        final = {document.id: document.text for document in collection}
        last = int(collection.stats()["generation"])
    acknowledged = [write for write in seen.writes if write.generation is not None]
    unsure = [write for write in seen.writes if write.generation is None]
    taken = {write.generation for write in acknowledged}
    missing = sorted(set(range(truth.first + 1, last + 1)) - taken)
    # A write whose connection broke was committed or not. Those generations that no acknowledged
    # write has made must be theirs, in some order: any that explains all answers will do.
    best: tuple[int, list[Write]] | None = None
    for order in itertools.permutations(unsure, len(missing)):
        happened = [
            Write(write.added, write.deleted, generation)
            for write, generation in zip(order, missing, strict=True)
        ]
        history = sorted([*acknowledged, *happened], key=lambda write: write.generation or 0)
        if state_after(truth, history) != final.keys():
            continue
        wrong = truth.wrong_answers(history, seen.answers)
        if best is None or wrong < best[0]:
            best = wrong, history
        if wrong == 0:
            break
    lost = lost_writes(acknowledged, unsure, final)
    return {
        "wrong_answers": None if best is None else best[0],
        "explained": best is not None,
        "lost_writes": lost,
        "unsure_writes": len(unsure),
        "of_which_committed": len(missing),
        "generations": last - truth.first,
    }


def state_after(truth: Truth, history: list[Write]) -> set[str | int]:
    present: set[str | int] = set(truth.ids)
    for write in history:
        present.update(id_ for id_, _ in write.added)
        present.difference_update(write.deleted)
    return present


def lost_writes(acknowledged: list[Write], unsure: list[Write], final: dict[Any, str]) -> int:
    """Documents that were added or deleted for certain, and are not as they should be."""
    doubtful = {id_ for write in unsure for id_ in write.deleted}
    gone = {id_ for write in acknowledged for id_ in write.deleted}
    lost = sum(id_ in final for id_ in gone)
    for write in acknowledged:
        for id_, text in write.added:
            if id_ not in gone and id_ not in doubtful:
                lost += final.get(id_) != text
    return lost


def bare_rates(folder: Path, queries: list[str]) -> dict[str, float]:
    """Queries per second of one thread in this process: the kernel alone, and the whole collection."""
    with Collection.open(folder) as collection:
        codes = collection.hasher.transform(document.text for document in collection)
        asked = collection.hasher.transform(queries)
        codes.flags.writeable = False
        index = ExactIndex(codes)

        def rate(work: Any) -> float:
            start, n = time.perf_counter(), 0
            while time.perf_counter() - start < 2:
                work(n % len(queries))
                n += 1
            return n / (time.perf_counter() - start)

        return {
            "kernel_queries_per_second": rate(lambda i: index.search_rows(asked[i : i + 1], K)),
            "collection_queries_per_second": rate(
                lambda i: collection.search(queries[i], K, by="codes")
            ),
        }


def measure(
    collection: Path, seconds: float, connections: int, workers: int, *, rates: bool = True
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "collection"
        with Collection.open(collection) as original:
            original.backup(folder)
            texts = [" ".join(d.text.split()[:8]) for d in itertools.islice(original, 400)]
        queries = [text for text in texts if text]
        with Collection.open(folder) as copy:
            copy.search(
                queries[0]
            )  # a copy has no index of words; else the first write would make it
        truth = Truth(folder, queries)
        bare = bare_rates(folder, queries) if rates else {}
        key = {"BOLTZHASH_API_KEY": KEY}
        with served(folder, "--workers", str(workers), environment=key) as service:
            if workers > 1:
                wait_for_workers(service, workers)
            process = service.process
            seen = asyncio.run(
                load(service.port, process.pid, queries, seconds, connections, workers > 1)
            )
        milliseconds = 1000 * np.array(seen.seconds)
        return {
            "documents": len(truth.ids),
            "bits": truth.hasher.n_bits,
            "workers": workers,
            "connections": connections,
            "seconds": seconds,
            "answers": len(seen.answers),
            "queries_per_second": round(len(seen.answers) / seconds, 1),
            "p50_ms": round(float(np.percentile(milliseconds, 50)), 1),
            "p99_ms": round(float(np.percentile(milliseconds, 99)), 1),
            "writes_acknowledged": sum(write.generation is not None for write in seen.writes),
            "refusals": seen.refusals,
            "broken_connections": len(seen.broken),
            "broken_not_by_the_kill": sum(
                not seen.killed <= when < seen.killed + 5 for when in seen.broken
            ),
            "errors": seen.errors[:10],
            **check(truth, seen, folder),
            **{name: round(value, 1) for name, value in bare.items()},
            "exit_code": process.returncode,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    result = measure(options.collection, options.seconds, options.connections, options.workers)
    result["machine"] = (
        f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    )
    result["load_before"] = round(os.getloadavg()[0], 1)
    for name, value in result.items():
        print(f"{name:<32} {value}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "service.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
