"""Work in batches, and on blocks in as many threads as there are CPUs, results in order."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Block = TypeVar("Block")
Item = TypeVar("Item")
Result = TypeVar("Result")


def available_cpus() -> int:
    """How many CPUs this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items as lists of at most ``size``, taken as they are needed.

    >>> list(in_batches("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    remaining = iter(items)
    while batch := list(itertools.islice(remaining, size)):
        yield batch


def in_threads(work: Callable[[Block], Result], blocks: Iterable[Block]) -> Iterator[Result]:
    """``map(work, blocks)``, several blocks at a time if there are several.

    Blocks are taken as they are needed, a few ahead, so memory does not grow with their number. If the
    next block cannot be read, the results of those before it come first, as without threads.

    >>> list(in_threads(len, ["one", "two", "three"]))
    [3, 3, 5]
    """
    failure: list[Exception] = []
    remaining, n_threads = _until_failure(blocks, failure), available_cpus()
    first = list(itertools.islice(remaining, 2))
    remaining = itertools.chain(first, remaining)
    if len(first) < 2 or n_threads == 1:
        yield from map(work, remaining)
    else:
        yield from _in_pool(work, remaining, n_threads)
    if failure:
        raise failure[0]


def _in_pool(
    work: Callable[[Block], Result], blocks: Iterable[Block], n_threads: int
) -> Iterator[Result]:
    with ThreadPoolExecutor(n_threads) as pool:
        pending: deque[Future[Result]] = deque()
        try:
            for block in blocks:
                pending.append(pool.submit(work, block))
                if len(pending) > 2 * n_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:  # after an error or a break, what has not begun never begins
            pool.shutdown(wait=True, cancel_futures=True)


def _until_failure(blocks: Iterable[Block], failure: list[Exception]) -> Iterator[Block]:
    """The blocks before one that cannot be read: their results come first, then what went wrong."""
    try:
        yield from blocks
    except Exception as error:
        failure.append(error)
