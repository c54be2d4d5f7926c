"""Work on blocks in as many threads as there are CPUs, results in order."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Block = TypeVar("Block")
Result = TypeVar("Result")


def available_cpus() -> int:
    """How many CPUs this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(work: Callable[[Block], Result], blocks: Iterable[Block]) -> Iterator[Result]:
    """``map(work, blocks)``, several blocks at a time where there are several.

    Blocks are taken as they are needed, a few ahead, so memory does not grow with their number.

    >>> list(in_threads(len, ["one", "two", "three"]))
    [3, 3, 5]
    """
    remaining, n_threads = iter(blocks), available_cpus()
    first = list(itertools.islice(remaining, 2))
    remaining = itertools.chain(first, remaining)
    if len(first) < 2 or n_threads == 1:
        yield from map(work, remaining)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        pending: deque[Future[Result]] = deque()
        try:
            for block in remaining:
                pending.append(pool.submit(work, block))
                if len(pending) > 2 * n_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:  # after an error or a break, what has not begun is not begun
            pool.shutdown(wait=True, cancel_futures=True)
