"""A service for an hour with all that goes wrong at times, and whether it told the truth.

Two workers serve a collection that lies on a small file system, while clients search, add and delete.
Every minute a worker is killed; now and then the file system is filled and freed, the clock is moved,
and from the command line the collection is rehashed and backed up. Every answer is compared with the
writes that were acknowledged and those that were under way; at the end everything is read back after
a restart. Prints and writes JSON; where something was wrong, says so in one line and exits with 1.

    python benchmarks/soak.py [--minutes 60] [--report build/soak.json]

The file system is a tmpfs, which needs root; the clock is moved by libfaketime (Debian's package of that
name). Where one cannot be had, the report says so and the rest is run.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from boltzhash import LSH
from boltzhash.collection import Collection
from service import KEY, Client
from serving import Served, private_bytes, served, start_time, workers_of

WORKERS = 2
SEARCHERS, WRITERS = 6, 2
DISK = "128m"
LARGE = 1 << 20  # characters that a document brings along while the disk is full
LIVE = 300  # documents of a writer, about
RARE = [f"{a}{b}{c}" for a in "bdfgklmnpr" for b in "aeiou" for c in ("lto", "ven", "rik", "sum")]
COMMON = "star planet moon orbit comet bread butter oven flour sugar ship sail anchor wave".split()
CLOCKS = ("+3d", "-400d", "+20y", "+0d")
KILL_SECONDS, DISK_SECONDS, CLOCK_SECONDS, COMMAND_SECONDS = 60, 70, 40, 15
FULL_SECONDS = 8
AFTER_A_KILL = 20  # seconds in which connections may break
# SQLite keeps up to 64 MiB of pages for each connection that reads, here three, and fills that as it
# goes: for so long memory grows. What it may still grow by then is what is left to chance.
WARM_MINUTES = 20
GROWTH, GROWTH_BYTES = 0.10, 16 << 20

Answer = dict[str, Any]


@dataclass
class Life:
    """A document as the clients know it; times are infinite until something happens."""

    text: str
    sent: float
    added: float = float("inf")  # acknowledged
    delete_sent: float = float("inf")
    deleted: float = float("inf")  # acknowledged
    refused: bool = False

    def must_be_there(self, began: float, ended: float) -> bool:
        """Throughout a request: the addition was acknowledged before, no deletion sent until the end."""
        return self.added < began and self.delete_sent > ended

    def why_not(self, began: float, ended: float) -> str | None:
        """What is wrong with finding it in a request of that time; None if nothing is."""
        if self.refused:
            return "whose addition was refused"
        if self.deleted < began:
            return "which was deleted before"
        return "which was not yet sent" if self.sent > ended else None


@dataclass
class Seen:
    """All documents, everything that went wrong, and counts."""

    lives: dict[str, Life] = field(default_factory=dict)
    generation: int = 0  # the last that was acknowledged
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    killed: list[float] = field(default_factory=list)
    full: list[tuple[float, float]] = field(default_factory=list)  # from when to when
    memory: dict[int, list[tuple[float, int]]] = field(default_factory=dict)  # by worker

    def wrong(self, problem: str) -> None:
        self.counts["wrong"] += 1
        if len(self.problems) < 20:
            self.problems.append(problem)

    def was_full(self, began: float, ended: float) -> bool:
        return any(start <= ended and began <= end for start, end in self.full)

    def broke(self, what: str) -> None:
        """A connection did; only a killed worker is an excuse."""
        self.counts["broken connections"] += 1
        now = time.monotonic()
        if not any(0 <= now - killed < AFTER_A_KILL for killed in self.killed):
            self.wrong(f"a connection broke, and no worker had been killed: {what}")

    def check_found(self, what: str, ids: list[str], began: float, ended: float) -> None:
        for id_ in ids:
            if id_ not in self.lives:
                self.wrong(f"{what} found {id_!r}, which nobody sent")
            elif (why := self.lives[id_].why_not(began, ended)) is not None:
                self.wrong(f"{what} found {id_!r}, {why}")


def made_up_text(chosen: random.Random) -> str:
    """Four words that hardly any other document has all of, and some that many have."""
    words = chosen.sample(RARE, 4) + chosen.sample(COMMON, 5)
    chosen.shuffle(words)
    return " ".join(words)


class Searcher:
    """Asks one question after the other, and compares each answer with what is known."""

    def __init__(self, port: int, seen: Seen, seed: int) -> None:
        self._client, self._seen, self._chosen = Client(port), seen, random.Random(seed)

    async def run(self, end: float) -> None:
        ways = (self._by_both, self._by_words, self._by_codes, self._like, self._get)
        while time.monotonic() < end:
            id_ = self._chosen.choice(list(self._seen.lives))
            try:
                await self._chosen.choice(ways)(id_)
            except (OSError, EOFError):
                self._seen.broke("a search")
                self._client.close()
            await asyncio.sleep(0.02)
        self._client.close()

    async def _ask(self, path: str, body: Answer) -> tuple[int, Answer, float, float]:
        known, began = self._seen.generation, time.monotonic()
        status, answer = await self._client.post(path, body)
        ended = time.monotonic()
        if status == 200:
            self._seen.counts["answers"] += 1
            self._seen.counts["answers while the disk was full"] += self._seen.was_full(
                began, ended
            )
            if answer["generation"] < known:
                self._seen.wrong(
                    f"{path} answered from generation {answer['generation']} < {known}"
                )
        elif status == 503:
            self._seen.counts["reads refused (503)"] += 1
            await asyncio.sleep(0.2)
        elif status != 404:
            self._seen.wrong(f"{path} answered {status}: {answer}")
        return status, answer, began, ended

    async def _search(self, id_: str, body: Answer) -> tuple[list[Answer], bool]:
        """The hits, and whether the document must be among them."""
        life = self._seen.lives[id_]
        status, answer, began, ended = await self._ask("/v1/search", {"text": life.text, **body})
        if status != 200:
            return [], False
        self._seen.check_found(f"a search ({body})", ids_of(answer), began, ended)
        return answer["hits"], life.must_be_there(began, ended)

    async def _by_both(self, id_: str) -> None:
        hits, must = await self._search(id_, {})
        if must and id_ not in [hit["id"] for hit in hits]:
            self._seen.wrong(f"{id_!r} was not found by its own text")

    async def _by_words(self, id_: str) -> None:
        hits, must = await self._search(id_, {"by": "words"})
        if must and id_ not in [hit["id"] for hit in hits]:
            self._seen.wrong(f"{id_!r} was not found by its own words")

    async def _by_codes(self, id_: str) -> None:
        hits, must = await self._search(id_, {"by": "codes"})
        distances = [hit["distance"] for hit in hits]
        if distances != sorted(distances):
            self._seen.wrong(f"hits by codes are not in order: {distances}")
        if must and distances[0] != 0:
            self._seen.wrong(f"nothing was found at distance 0 of {id_!r}")

    async def _like(self, id_: str) -> None:
        life = self._seen.lives[id_]
        status, answer, began, ended = await self._ask("/v1/similar", {"id": id_})
        if status == 200:
            self._seen.check_found("more like it", [id_, *ids_of(answer)], began, ended)
        elif status == 404 and life.must_be_there(began, ended):
            self._seen.wrong(f"{id_!r} is there, and nothing was found like it: {answer}")

    async def _get(self, id_: str) -> None:
        asked = [id_, *self._chosen.sample(list(self._seen.lives), 4)]
        status, answer, began, ended = await self._ask("/v1/documents/get", {"ids": asked})
        if status != 200:
            return
        texts = {document["id"]: document["text"] for document in answer["documents"]}
        self._seen.check_found("documents/get", list(texts), began, ended)
        for one in asked:
            life = self._seen.lives[one]
            if life.must_be_there(began, ended) and texts.get(one) != life.text:
                self._seen.wrong(f"{one!r} is there, and was answered as {texts.get(one)!r}")


def ids_of(answer: Answer) -> list[str]:
    return [hit["id"] for hit in answer["hits"]]


class Writer:
    """Adds and deletes documents of its own, and notes what became of each."""

    def __init__(self, port: int, seen: Seen, seed: int) -> None:
        self._client, self._seen, self._chosen = Client(port), seen, random.Random(seed)
        self._name = f"w{seed}"
        self._mine: list[str] = []

    async def run(self, end: float) -> None:
        for number in itertools.count():
            if time.monotonic() >= end:
                break
            delete = len(self._mine) > self._chosen.randint(LIVE // 2, LIVE * 3 // 2)
            await (self._delete() if delete else self._add(number))
            await asyncio.sleep(0.1)
        self._client.close()

    async def _send(self, path: str, body: Answer) -> str:
        """What became of it: acknowledged, refused or unsure."""
        began = time.monotonic()
        try:
            status, answer = await self._client.post(path, body)
        except (OSError, EOFError):
            self._seen.broke("a write")
            self._client.close()
            self._seen.counts["writes whose connection broke"] += 1
            return "unsure"
        if status == 200:
            self._seen.counts["writes acknowledged"] += 1
            self._seen.generation = max(self._seen.generation, answer["generation"])
            return "acknowledged"
        self._seen.counts[f"writes refused ({status})"] += 1
        if status == 507 and not self._seen.was_full(began, time.monotonic()):
            self._seen.wrong(f"507 while there was room: {answer}")
        elif status not in (503, 507):
            self._seen.wrong(f"a write was answered {status}: {answer}")
        return "refused"

    async def _add(self, number: int) -> None:
        ids = [f"{self._name}-{number}-{i}" for i in range(self._chosen.randint(1, 5))]
        for id_ in ids:
            self._seen.lives[id_] = Life(made_up_text(self._chosen), time.monotonic())
        lives = [self._seen.lives[id_] for id_ in ids]
        documents: list[Answer] = [
            {"id": id_, "text": life.text} for id_, life in zip(ids, lives, strict=True)
        ]
        if self._seen.was_full(time.monotonic(), time.monotonic()):
            # What is small may still fit into pages that the database has.
            documents[0]["metadata"] = {"note": "x" * LARGE}
        became = await self._send("/v1/documents", {"documents": documents})
        for life in lives:
            life.refused = became == "refused"
            if became == "acknowledged":
                life.added = time.monotonic()
        if became == "acknowledged":
            self._mine += ids

    async def _delete(self) -> None:
        some = self._chosen.sample(self._mine, self._chosen.randint(1, 20))
        lives = [self._seen.lives[id_] for id_ in some]
        for life in lives:
            life.delete_sent = time.monotonic()
        became = await self._send("/v1/documents/delete", {"ids": some})
        for life in lives:
            if became == "acknowledged":
                life.deleted = time.monotonic()
            elif became == "refused":
                life.delete_sent = float("inf")
        if became != "refused":
            self._mine = [id_ for id_ in self._mine if id_ not in set(some)]


async def kill_workers(service: Served, seen: Seen, end: float) -> None:
    """The youngest each time, so that the oldest can show whether memory grows."""
    while await slept(KILL_SECONDS, end):
        workers = sorted(workers_of(service.process.pid), key=start_time)
        seen.killed.append(time.monotonic())
        os.kill(workers[-1], signal.SIGKILL)
        seen.counts["workers killed"] += 1


async def fill_the_disk(disk: Path, seen: Seen, end: float) -> None:
    while await slept(DISK_SECONDS, end - 2 * FULL_SECONDS):
        filler = disk / "filler"
        seen.full.append((time.monotonic(), float("inf")))
        with suppress(OSError), filler.open("wb") as file:
            while True:
                file.write(bytes(1 << 16))
                file.flush()
        await asyncio.sleep(FULL_SECONDS)
        filler.unlink()
        freed = time.monotonic()
        seen.full[-1] = (seen.full[-1][0], freed + 1)  # what is under way may still be refused
        seen.counts["times the disk was full"] += 1
        acknowledged = seen.counts["writes acknowledged"]
        await asyncio.sleep(FULL_SECONDS)
        if seen.counts["writes acknowledged"] == acknowledged:
            seen.wrong(f"no write was acknowledged within {FULL_SECONDS} s after room was made")


async def move_the_clock(service: Served, clock: Path, seen: Seen, end: float) -> None:
    for offset in itertools.cycle(CLOCKS):
        if not await slept(CLOCK_SECONDS, end):
            return
        clock.write_text(offset)
        seen.counts["times the clock was moved"] += 1
        await asyncio.sleep(3)
        with suppress(OSError, EOFError):
            seen.counts["times it was seen to be wrong"] += await is_clock_wrong(service.port)


async def is_clock_wrong(port: int) -> bool:
    """Whether the date of an answer is not today's."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    head = (await reader.read()).decode("latin-1").partition("\r\n\r\n")[0].lower()
    writer.close()
    dates = [line[5:] for line in head.splitlines() if line.startswith("date:")]
    return bool(dates) and abs(parsedate_to_datetime(dates[0]).timestamp() - time.time()) > 86_000


async def use_commands(folder: Path, models: list[Path], seen: Seen, end: float) -> None:
    """Rehashes and backups, from the command line, one after the other."""
    for model in itertools.cycle(models):
        if not await slept(COMMAND_SECONDS, end):
            return
        if await is_done(seen, "rehash", str(folder), str(model)):
            seen.counts["rehashes"] += 1
        copy = model.parent / "backup"
        began = time.monotonic()
        if await is_done(seen, "backup", str(folder), "-o", str(copy)):
            ended = time.monotonic()
            seen.counts["backups"] += 1
            check_kept(seen, await asyncio.to_thread(read_all, copy), began, ended, "a backup")
        shutil.rmtree(copy, ignore_errors=True)


async def is_done(seen: Seen, *command: str) -> bool:
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "boltzhash", *command, "-q"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    told = (await process.communicate())[1].decode()
    if process.returncode == 0:
        return True
    if not seen.was_full(began, time.monotonic()):
        seen.wrong(f"{command[0]} ended with {process.returncode}: {told[-300:]}")
    seen.counts["commands that met a full disk"] += 1
    return False


def read_all(folder: Path) -> dict[str, str]:
    with Collection.open(folder) as collection, collection.snapshot() as now:
        now.check()
        return {str(document.id): document.text for document in now}


def check_kept(
    seen: Seen, found: dict[str, str], began: float, ended: float, where: str
) -> tuple[int, int]:
    """How many acknowledged writes were looked for, and how many are lost."""
    seen.check_found(where, list(found), began, ended)
    looked_for = lost = 0
    for id_, life in seen.lives.items():
        must = life.must_be_there(began, ended)
        looked_for += must or life.deleted < began
        if must and found.get(id_) != life.text:
            lost += 1
            seen.wrong(f"{id_!r} was acknowledged, and {where} has {found.get(id_)!r}")
        lost += life.deleted < began and id_ in found  # which check_found has told
    return looked_for, lost


async def watch_memory(service: Served, seen: Seen, end: float) -> None:
    while await slept(2, end):
        for worker in workers_of(service.process.pid):
            with suppress(OSError, AssertionError):  # it was killed just now
                measured = (time.monotonic(), private_bytes(worker))
                seen.memory.setdefault(worker, []).append(measured)


async def slept(seconds: float, end: float) -> bool:
    """After some seconds; False if the end comes first."""
    left = end - time.monotonic()
    await asyncio.sleep(max(0, min(seconds, left)))
    return left > seconds


async def everything(
    service: Served, place: Place, models: list[Path], seen: Seen, minutes: float
) -> None:
    end = time.monotonic() + 60 * minutes
    work = [Searcher(service.port, seen, i).run(end) for i in range(SEARCHERS)]
    work += [Writer(service.port, seen, i).run(end) for i in range(WRITERS)]
    work += [kill_workers(service, seen, end), watch_memory(service, seen, end)]
    work += [use_commands(place.collection, models, seen, end)]
    if place.is_small:
        work.append(fill_the_disk(place.disk, seen, end))
    if place.clock is not None:
        work.append(move_the_clock(service, place.clock, seen, end))
    await asyncio.gather(*work)


@dataclass
class Place:
    """Where it all happens, and what could not be had."""

    disk: Path
    is_small: bool  # a file system of its own
    clock: Path | None  # the file that says how wrong the clock is
    skipped: list[str]

    @property
    def collection(self) -> Path:
        return self.disk / "collection"

    def environment(self) -> dict[str, str]:
        plain = {"BOLTZHASH_API_KEY": KEY}
        if self.clock is None:
            return plain
        return {
            **plain,
            "LD_PRELOAD": str(faketime_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self.clock),
            "FAKETIME_CACHE_DURATION": "1",
            # The clock that measures spans does not jump when the date is set.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }


def faketime_library() -> Path | None:
    return next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


@contextmanager
def prepared(folder: Path) -> Iterator[Place]:
    """A small file system and a clock that can be moved, as far as they can be had."""
    disk, clock, skipped = folder / "disk", folder / "clock", []
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk)]
    is_small = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    if not is_small:
        skipped.append("a full disk: mounting a tmpfs needs root")
    if faketime_library() is None:
        skipped.append("a wrong clock: there is no libfaketime (apt-get install libfaketime)")
    clock.write_text("+0d")
    try:
        yield Place(disk, is_small, clock if faketime_library() else None, skipped)
    finally:
        if is_small:
            subprocess.run(["umount", "--lazy", str(disk)], check=True)


def made_collection(place: Place, folder: Path, seen: Seen) -> list[Path]:
    """Some documents to begin with; returns two models to hash them with."""
    chosen = random.Random(0)
    texts = [made_up_text(chosen) for _ in range(LIVE)]
    hashers = [LSH(64, random_state=i).fit(texts) for i in range(2)]
    models = [folder / f"model-{i}" for i in range(2)]
    for hasher, model in zip(hashers, models, strict=True):
        hasher.save(model)
    with Collection.create(place.collection, hashers[0]) as collection:
        collection.add({"id": f"base-{i}", "text": text} for i, text in enumerate(texts))
    for i, text in enumerate(texts):
        seen.lives[f"base-{i}"] = Life(text, 0, 0)
    return models


def memory_of_the_oldest(seen: Seen) -> dict[str, Any]:
    """Its private bytes when it is warm and at the end, medians of two minutes; judged in long runs."""
    samples = max(seen.memory.values(), key=len)
    first, last = samples[0][0], samples[-1][0]
    warm = median_between(samples, first + 60 * WARM_MINUTES)
    end = median_between(samples, last - 60)
    is_judged = last - first >= 120 * WARM_MINUTES
    allowed = float("inf") if warm is None else warm * (1 + GROWTH) + GROWTH_BYTES
    if is_judged and end is not None and end > allowed:
        seen.wrong(f"the memory of a worker is {end / 1e6:.0f} MB, more than {allowed / 1e6:.0f}")
    return {
        "lived_minutes": round((last - first) / 60, 1),
        "first_mb": round(samples[0][1] / 1e6, 1),
        "warm_mb": None if warm is None else round(warm / 1e6, 1),
        "end_mb": None if end is None else round(end / 1e6, 1),
        "most_mb": round(max(n for _, n in samples) / 1e6, 1),
        "may_grow": f"{GROWTH:.0%} and {GROWTH_BYTES >> 20} MiB from minute {WARM_MINUTES} on",
        "judged": is_judged,
    }


def median_between(samples: list[tuple[float, int]], middle: float) -> float | None:
    """Of a minute before and a minute after; None if nothing was measured then."""
    near = [n for when, n in samples if abs(when - middle) <= 60]
    return statistics.median(near) if near else None


def soak(minutes: float) -> tuple[dict[str, Any], list[str]]:
    """The report, and what was wrong."""
    seen = Seen()
    with tempfile.TemporaryDirectory() as temporary, prepared(Path(temporary)) as place:
        models = made_collection(place, Path(temporary), seen)
        options = ("--workers", str(WORKERS))
        with served(place.collection, *options, environment=place.environment()) as service:
            asyncio.run(everything(service, place, models, seen, minutes))
            service.process.terminate()
            if (code := service.process.wait(timeout=60)) != 0:
                seen.wrong(f"the service ended with {code}: {service.log.read_text()[-300:]}")
        memory = memory_of_the_oldest(seen)
        with served(place.collection):  # opens and searches, or it would not be ready
            found = read_all(place.collection)
        now = time.monotonic()
        looked_for, lost = check_kept(seen, found, now, now, "the collection at the end")
        skipped = place.skipped
    if seen.counts["times the disk was full"] and not seen.counts["writes refused (507)"]:
        seen.wrong("no write was refused while the disk was full: it was not, or nobody wrote")
    if (
        seen.counts["times the clock was moved"] > 1
        and not seen.counts["times it was seen to be wrong"]
    ):
        seen.wrong("the clock was moved, and no answer had another date")
    report = {
        "minutes": minutes,
        "load": round(os.getloadavg()[1], 1),
        **dict(sorted(seen.counts.items())),
        "wrong": seen.counts["wrong"],
        "acknowledged documents and deletions looked for at the end": looked_for,
        "of which lost": lost,
        "memory of the oldest worker": memory,
        "skipped": skipped,
        "problems": seen.problems,
    }
    return report, seen.problems


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--report", type=Path, default=Path("build/soak.json"))
    options = parser.parse_args()
    report, problems = soak(options.minutes)
    told = json.dumps(report, indent=2)
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(told + "\n")
    print(told)
    if problems:
        sys.exit(f"soak: {report['wrong']} things were wrong, the first: {problems[0]}")


if __name__ == "__main__":
    main()
