"""A service of one's own to measure: ``boltzhash serve`` on a free port, and its processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

START_SECONDS = 120
_TICKS = os.sysconf("SC_CLK_TCK")


class Served(NamedTuple):
    """A running service."""

    process: subprocess.Popen[str]
    address: str  # http://127.0.0.1:PORT
    log: Path

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


@contextmanager
def served(
    collection: str | Path, *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """A service over a collection, ready to answer; it is stopped at the end."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [sys.executable, "-m", "boltzhash", "serve", str(collection), "--port", "0"]
        with log.open("w") as stderr:
            process = subprocess.Popen(
                [*command, *options],
                env={**os.environ, **(environment or {})},
                stderr=stderr,
                text=True,
            )
        try:
            yield Served(process, _address_when_ready(process, log), log)
        finally:
            process.terminate()
            process.wait(timeout=60)


def _address_when_ready(process: subprocess.Popen[str], log: Path) -> str:
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < START_SECONDS:
        found = re.search(r"http://\S+:\d+", log.read_text())
        if found and is_ready(found.group()):
            return found.group()
        time.sleep(0.05)
    raise RuntimeError(f"the service did not start: {log.read_text()}")


def is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=20) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def wait_for_workers(service: Served, n: int) -> list[int]:
    """The processes that serve, once each has imported what it needs and idles."""
    began = time.monotonic()
    while time.monotonic() - began < START_SECONDS:
        workers = workers_of(service.process.pid)
        before = {worker: cpu_seconds(worker) for worker in workers}
        time.sleep(0.5)
        if len(workers) == n and all(cpu_seconds(w) - before[w] < 0.1 for w in workers):
            return workers
    raise RuntimeError(f"{n} workers did not start: {service.log.read_text()}")


def workers_of(parent: int) -> list[int]:
    """The processes that serve: children of the parent that run its spawned main."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [
        int(child)
        for child in children
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def cpu_seconds(process: int) -> float:
    """What a process has used so far, as user and in the system."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def start_time(process: int) -> int:
    """When it was started, in ticks since the machine was."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])


def open_sockets(process: int) -> int:
    """How many connections (and a few other sockets) a process holds."""
    links = (os.readlink(path) for path in Path(f"/proc/{process}/fd").iterdir())
    return sum(link.startswith("socket:") for link in links)


def private_bytes(process: int) -> int:
    """Memory that is its own: not files and not what is shared."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    assert found is not None
    return 1024 * int(found.group(1))
