"""Every path of the kernel against NumPy: value for value, in order."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.search import ExactIndex, compiled, kernel_name, kernel_names
from command_line import Run, run_apart
from nearest_codes import nearest

PATHS = kernel_names()[:-1]
Mask = NDArray[np.bool_] | None


def check(path: str, codes: Codes, queries: Codes, k: int, allowed: Mask, threads: int) -> None:
    rows, distances = compiled.top_k(path, codes, queries, k, allowed, threads)
    assert rows.dtype == np.int64
    assert distances.dtype == np.int32
    for number, query in enumerate(queries):
        expected_rows, expected_distances = nearest(codes, query, allowed)
        np.testing.assert_array_equal(rows[number], expected_rows[:k])
        np.testing.assert_array_equal(distances[number], expected_distances[:k])


def check_within(
    path: str, codes: Codes, queries: Codes, radius: int, allowed: Mask, threads: int
) -> None:
    answers = compiled.within(path, codes, queries, radius, allowed, threads)
    assert len(answers) == len(queries)
    for query, (rows, distances) in zip(queries, answers, strict=True):
        expected_rows, expected_distances = nearest(codes, query, allowed, radius)
        np.testing.assert_array_equal(rows, expected_rows)
        np.testing.assert_array_equal(distances, expected_distances)


@st.composite
def searches(draw: st.DrawFn) -> tuple[Codes, Codes, Mask]:
    """Codes, queries and a mask; where few codes differ, most distances tie."""
    n_bytes = draw(st.sampled_from([8, 16, 32, 64]) | st.integers(1, 70) | st.integers(1, 512))
    n, n_queries = draw(st.integers(1, 150) | st.integers(1, 2000)), draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    different = rng.integers(0, 256, (draw(st.sampled_from([2, 9, 5000])), n_bytes), dtype=np.uint8)
    codes = different[rng.integers(0, len(different), n)]
    queries = different[rng.integers(0, len(different), n_queries)]
    share = draw(st.sampled_from([None, 0.01, 0.3, 0.97]))
    return codes, queries, None if share is None else rng.random(n) < share


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=150)
@given(searches(), st.integers(1, 2100), st.integers(1, 5), st.data())
def test_any_search(
    path: str, search: tuple[Codes, Codes, Mask], k: int, threads: int, data: st.DataObject
) -> None:
    codes, queries, allowed = search
    radius = data.draw(st.integers(0, 8 * codes.shape[1]))
    check_within(path, codes, queries, radius, allowed, threads)
    k = min(k, len(codes) if allowed is None else int(allowed.sum()))
    if k:
        check(path, codes, queries, k, allowed, threads)


# Enough data for threads, tiles and chunks


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n_queries", [1, 3, 40])
def test_threads_share_out_codes_or_queries(path: str, n_queries: int) -> None:
    """200,000 x 16 bytes are many chunks; nine codes in all, so every tie crosses threads."""
    rng = np.random.default_rng(0)
    different = rng.integers(0, 256, (9, 16), dtype=np.uint8)
    codes = different[rng.integers(0, 9, 200_000)]
    queries = different[rng.integers(0, 9, n_queries)]
    allowed = rng.random(len(codes)) < 0.5
    alone = compiled.top_k(path, codes, queries, 30_000, allowed, 1)
    together = compiled.top_k(path, codes, queries, 30_000, allowed, 4)
    np.testing.assert_array_equal(together[0], alone[0])
    np.testing.assert_array_equal(together[1], alone[1])
    check(path, codes, queries[:1], 30_000, allowed, 4)
    check_within(path, codes, queries[:3], 40, allowed, 4)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("k", [1, 2, 100, 4000])
def test_codes_that_come_nearer_and_nearer(path: str, k: int) -> None:
    """Every row is a hit when it comes, so the log of candidates fills up again and again."""
    bits = np.arange(128)[:, None] < np.arange(128, 0, -1)[None, :]
    codes = np.repeat(np.packbits(bits.T, axis=1), 300, axis=0)
    check(path, codes, np.zeros((1, 16), dtype=np.uint8), k, None, 2)


@pytest.mark.parametrize("path", PATHS)
def test_the_extremes_of_distance(path: str) -> None:
    for n_bytes in (1, 7, 8, 16, 32, 64, 512):
        codes = np.repeat(np.array([[255], [0]], dtype=np.uint8), n_bytes, axis=1)
        rows, distances = compiled.top_k(path, codes, codes[1:], 2, None, 1)
        assert (rows.tolist(), distances.tolist()) == ([[1, 0]], [[0, 8 * n_bytes]])
        # 40 copies: also where whole blocks are at the largest distance, 256 bits among them
        codes = np.full((40, n_bytes), 255, dtype=np.uint8)
        check(path, codes, codes[:1] ^ 255, 40, None, 1)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n_bytes", [1, 2, 3, 4, 7, 8, 9, 12, 16, 20, 31, 32, 50, 63, 64, 65])
def test_many_queries_share_slices_of_codes(path: str, n_bytes: int) -> None:
    """Three slices of 512 rows and some left over; codes at all distances from the queries."""
    rng = np.random.default_rng(n_bytes)
    queries = rng.integers(0, 256, (50, n_bytes), dtype=np.uint8)
    codes = np.tile(queries, (32, 1))[:1573]
    share = np.linspace(0, 1, len(codes))[:, None, None]
    codes ^= np.packbits(rng.random((*codes.shape, 8)) < rng.permutation(share), axis=2)[..., 0]
    allowed = rng.random(len(codes)) < 0.3
    check(path, codes, queries, 100, None, 1)
    check(path, codes, queries, 3, allowed, 1)
    check(path, codes, queries, len(codes), None, 1)
    for radius in (0, 1, 4 * n_bytes, 8 * n_bytes):
        check_within(path, codes, queries, radius, allowed, 1)


@pytest.mark.parametrize("path", PATHS)
def test_slices_at_the_largest_distance(path: str) -> None:
    for n_bytes in (1, 7, 8, 16, 32, 64):
        codes = np.full((1024, n_bytes), 255, dtype=np.uint8)
        queries = np.zeros((50, n_bytes), dtype=np.uint8)
        check(path, codes, queries, 600, None, 1)
        check_within(path, codes, queries, 8 * n_bytes - 1, None, 1)


@pytest.mark.parametrize("path", PATHS)
def test_codes_at_any_address(path: str) -> None:
    rng = np.random.default_rng(1)
    store = rng.integers(0, 256, 200 * 32 + 7, dtype=np.uint8)
    for offset in range(7):
        codes = store[offset : offset + 200 * 32].reshape(200, 32)
        check(path, codes, codes[:2], 50, None, 1)


# Threads of Python


@pytest.mark.parametrize("path", PATHS)
def test_many_threads_may_search_at_once(path: str) -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 256, (60_000, 8), dtype=np.uint8)
    expected = compiled.top_k(path, codes, codes[:64], 10, None, 1)

    def one(number: int) -> tuple[Any, Any]:
        return compiled.top_k(path, codes, codes[number : number + 1], 10, None, 2)

    with ThreadPoolExecutor(8) as pool:
        for number, (rows, distances) in enumerate(pool.map(one, range(64))):
            assert rows[0].tolist() == expected[0][number].tolist()
            assert distances[0].tolist() == expected[1][number].tolist()


def runs_during_a_search(n_queries: int) -> bool:
    """Whether this thread gets a turn while another one, which nothing makes pause, searches."""
    codes = np.random.default_rng(3).integers(0, 256, (200_000, 8), dtype=np.uint8)
    done = threading.Event()

    def work() -> None:
        compiled.top_k("plain", codes, codes[:n_queries], 10, None, 1)
        done.set()

    worker = threading.Thread(target=work)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # seconds: a thread runs until it lets go of the GIL
    try:
        worker.start()  # comes back when it has
        return not done.is_set()
    finally:
        sys.setswitchinterval(interval)
        worker.join()


@pytest.mark.skipif(not PATHS, reason="the kernel was not built")
def test_other_threads_run_during_a_search() -> None:
    """With the GIL held, none could before the search is over.

    A busy machine may give them no turn during a short one; then a longer one is tried.
    """
    assert any(runs_during_a_search(n_queries) for n_queries in (10, 100, 1000))


# Which path


@pytest.mark.skipif(
    shutil.which("cc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists(),
    reason="no compiler or no headers of Python here",
)
def test_the_kernel_was_built() -> None:
    assert "plain" in kernel_names()


def test_the_fastest_path_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOLTZHASH_KERNEL", raising=False)
    assert kernel_name() == kernel_names()[0]


@pytest.mark.parametrize("name", kernel_names())
def test_the_environment_chooses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOLTZHASH_KERNEL", name)
    assert kernel_name() == name


def test_a_path_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOLTZHASH_KERNEL", "sse9")
    with pytest.raises(
        ValueError, match=r"BOLTZHASH_KERNEL must be one of .*none here, got 'sse9'"
    ):
        ExactIndex(np.zeros((1, 1), dtype=np.uint8))


def test_a_package_built_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOLTZHASH_KERNEL", raising=False)
    monkeypatch.setitem(sys.modules, "boltzhash.search._kernel", None)
    monkeypatch.setattr(compiled, "_kernel", compiled._load())
    assert kernel_names() == ["none"]
    codes = np.array([[7], [0], [1]], dtype=np.uint8)
    index = ExactIndex(codes)
    assert index.search(codes[1:2], 2).ids.tolist() == [[1, 2]]
    assert [hits.ids.tolist() for hits in index.within(codes[1:2], 1)] == [[1, 2]]


@pytest.mark.skipif(not PATHS, reason="the kernel was not built")
def test_searching_imports_neither_torch_nor_faiss() -> None:
    script = (
        "import sys, numpy as np\n"
        "from boltzhash.search import ExactIndex\n"
        "codes = np.zeros((5, 8), dtype=np.uint8)\n"
        "ExactIndex(codes).search(codes)\n"
        "ExactIndex(codes).within(codes, 3)\n"
        "print([name for name in ('torch', 'faiss') if name in sys.modules])"
    )
    assert run_apart(program=script) == Run(0, "[]\n", "")


# What would harm memory is refused even where Python's checks are passed by


@pytest.mark.skipif(not PATHS, reason="the kernel was not built")
def test_buffers_that_do_not_fit_are_refused() -> None:
    codes = np.zeros((10, 4), dtype=np.uint8)
    rows, distances = np.zeros((10, 3), dtype=np.int64), np.zeros((10, 3), dtype=np.int32)
    mask = np.ones(10, dtype=bool)
    top_k, within = compiled._kernel.top_k, compiled._kernel.within
    top_k(codes, codes, 4, 3, mask, 1, "plain", rows, distances)
    wrong: list[tuple[Any, ...]] = [
        (codes, codes, 3, 3, None, 1, "plain", rows, distances),
        (codes, codes, 0, 3, None, 1, "plain", rows, distances),
        (codes, codes, 4, 3, None, 0, "plain", rows, distances),
        (codes, codes, 4, 4, None, 1, "plain", rows, distances),
        (codes, codes, 4, 0, None, 1, "plain", rows, distances),
        (codes, codes, 4, 3, mask[:9], 1, "plain", rows, distances),
        (codes, codes, 4, 3, None, 1, "sse9", rows, distances),
        (codes[:2], codes, 4, 3, None, 1, "plain", rows, distances),
    ]
    for arguments in wrong:
        with pytest.raises(ValueError, match=r"bytes|mask|path|hold"):
            top_k(*arguments)
    for arguments in [
        (codes, codes, 3, 3, None, 1, "plain"),
        (codes, codes, 4, -1, None, 1, "plain"),
        (codes, codes, 4, 3, mask[:9], 1, "plain"),
        (codes, codes, 1024, 3, None, 1, "plain"),
    ]:
        with pytest.raises(ValueError, match=r"bytes|mask|radius"):
            within(*arguments)
    with pytest.raises(RuntimeError, match="allowed was changed while it was searched"):
        top_k(codes, codes, 4, 3, np.zeros(10, dtype=bool), 1, "plain", rows, distances)


@pytest.mark.skipif(not PATHS, reason="the kernel was not built")
def test_reading_goes_over_every_byte_once() -> None:
    codes = np.random.default_rng(4).integers(0, 256, (70_000, 8), dtype=np.uint8)
    for threads in (1, 3):
        expected = int(np.bitwise_xor.reduce(codes.view(np.uint64).ravel()))
        assert compiled.read(codes, threads) == expected
