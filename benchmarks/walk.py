"""Functions of the library that a default search passes, in the order in which they are entered.

    python benchmarks/walk.py COLLECTION ["a question"]

Counts distinct functions and files under `src/boltzhash`, once for a search in Python and once for the
same search over HTTP, each after two that warm up. Lambdas, generators and comprehensions count, too.
Prints the walk; `--most N M` exits with 1 beyond N or M functions.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import uvicorn

import boltzhash
from boltzhash.collection import Collection
from boltzhash.server.app import create_app
from boltzhash.server.settings import Settings

ROOT = Path(boltzhash.__file__).parent
QUESTION = "read a csv file"
WARM = 2
SETTLED = 0.3  # seconds after which the last answer leaves nothing to do


class Recorder:
    """Names of the library's functions that are entered, in any thread that begins while it records."""

    def __init__(self) -> None:
        self.passed: dict[str, None] = {}

    def __enter__(self) -> Recorder:
        threading.setprofile(self._enter)
        sys.setprofile(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _enter(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            file = Path(code.co_filename).relative_to(ROOT)
            self.passed[f"{file}: {code.co_qualname}"] = None


def walk_in_python(location: str, question: str) -> list[str]:
    with Collection.open(location) as collection:
        for _ in range(WARM):
            collection.search(question)
        with Recorder() as recorder:
            collection.search(question)
    return list(recorder.passed)


def walk_over_http(location: str, question: str) -> list[str]:
    """The service runs in this thread while it is recorded; a thread that is not asks."""
    config = uvicorn.Config(create_app(Settings(location)), port=0, log_level="error")
    server = uvicorn.Server(config)
    found: list[str] = []

    def ask() -> None:
        sys.setprofile(None)
        try:
            while not server.started:
                time.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                for _ in range(WARM):
                    client.post("/v1/search", json={"text": question}).raise_for_status()
                time.sleep(SETTLED)
                recorder.passed.clear()
                client.post("/v1/search", json={"text": question}).raise_for_status()
                found.extend(recorder.passed)
        finally:
            server.should_exit = True

    with Recorder() as recorder:
        asker = threading.Thread(target=ask)
        asker.start()
        asyncio.run(server.serve())
    asker.join()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("collection")
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--most", nargs=2, type=int, metavar=("N", "M"))
    options = parser.parse_args()
    counts = []
    for title, walk in (("in Python", walk_in_python), ("over HTTP", walk_over_http)):
        passed = walk(options.collection, options.question)
        files = {name.partition(":")[0] for name in passed}
        print(f"{title}: {len(passed)} functions in {len(files)} files")
        print(*(f"  {name}" for name in passed), sep="\n")
        counts.append(len(passed))
    if options.most is None:
        return 0
    return int(any(n > most for n, most in zip(counts, options.most, strict=True)))


if __name__ == "__main__":
    raise SystemExit(main())
