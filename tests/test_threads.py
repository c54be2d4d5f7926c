"""Blocks in threads: the order, how far ahead, errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from boltzhash import threads
from boltzhash.threads import available_cpus, in_threads


@pytest.fixture(params=[1, 2, 5])
def n_cpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(threads, "available_cpus", lambda: request.param)
    return int(request.param)


def test_there_is_a_cpu() -> None:
    assert available_cpus() >= 1


@pytest.mark.parametrize("n_blocks", [0, 1, 2, 3, 50])
def test_results_come_in_order(n_cpus: int, n_blocks: int) -> None:
    """The even blocks wait until an odd one is done, where there are threads to do that."""
    odd_done = threading.Event()

    def work(number: int) -> int:
        if number % 2:
            odd_done.set()
        elif n_cpus > 1 and n_blocks > 1:
            assert odd_done.wait(30)
        return number * number

    assert list(in_threads(work, range(n_blocks))) == [n * n for n in range(n_blocks)]


def test_blocks_are_taken_a_few_ahead(n_cpus: int) -> None:
    taken = 0

    def blocks() -> Iterator[int]:
        nonlocal taken
        while taken < 1000:
            taken += 1
            yield taken

    results = in_threads(lambda n: n, blocks())
    for received in range(1, 20):
        assert next(results) == received
        assert taken <= received + 2 * n_cpus + 1
    results.close()  # type: ignore[attr-defined]
    assert taken < 100


def test_errors_of_the_work_and_of_the_blocks_arrive(n_cpus: int) -> None:
    def fail_at_seven(number: int) -> int:
        if number == 7:
            raise ValueError("seven")
        return number

    received = []
    with pytest.raises(ValueError, match="seven"):
        for result in in_threads(fail_at_seven, range(100)):
            received.append(result)
    assert received == list(range(7))

    def broken() -> Iterator[int]:
        yield from range(3)
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        list(in_threads(fail_at_seven, broken()))
