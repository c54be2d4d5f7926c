"""Radius search by tables against NumPy: the same rows in the same order, whatever the codes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.search import ExactIndex, compiled, kernel_names, multi_index
from boltzhash.search.multi_index import RadiusSearch, n_keys
from nearest_codes import nearest

PATHS = kernel_names()[:-1]
Mask = NDArray[np.bool_] | None
Answers = list[tuple[NDArray[np.int64], NDArray[np.int32]]]

needs_kernel = pytest.mark.skipif(not PATHS, reason="the kernel was not built")


@st.composite
def codes_and_queries(draw: st.DrawFn) -> tuple[Codes, Codes]:
    """Codes at random, crowded around a few, or copies of a few; queries a few bits from some."""
    n_bytes = draw(st.sampled_from([2, 3, 4, 5, 7, 8, 8, 8, 9, 12, 16, 32, 64, 65]))
    n, n_queries = draw(st.sampled_from([0, 1, 2, 50, 400, 3000])), draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    few = rng.integers(0, 256, (draw(st.sampled_from([1, 9, 5000])), n_bytes), dtype=np.uint8)
    codes = few[rng.integers(0, len(few), n)]
    flips = draw(st.sampled_from([0, 1, 2, 5]))
    return flipped(rng, codes, flips), flipped(rng, few[rng.integers(0, len(few), n_queries)], 2)


def flipped(rng: np.random.Generator, codes: Codes, most: int) -> Codes:
    """The codes with up to so many bits turned over, anywhere."""
    bits = np.unpackbits(codes, axis=1)
    for _ in range(most):
        places = rng.integers(0, bits.shape[1], len(bits))
        bits[np.arange(len(bits)), places] ^= rng.random(len(bits)) < 0.7
    return np.packbits(bits, axis=1)


def check(answers: Answers, codes: Codes, queries: Codes, radius: int, allowed: Mask) -> None:
    assert len(answers) == len(queries)
    for query, (rows, distances) in zip(queries, answers, strict=True):
        expected_rows, expected_distances = nearest(codes, query, allowed, radius)
        np.testing.assert_array_equal(rows, expected_rows, strict=True)
        np.testing.assert_array_equal(distances, expected_distances, strict=True)


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=200)
@given(codes_and_queries(), st.data())
def test_any_search(path: str, given: tuple[Codes, Codes], data: st.DataObject) -> None:
    """At every cost: with 0 all queries are looked up, with others some or all are scanned for."""
    codes, queries = given
    key_bits = data.draw(st.integers(1, min(11, 8 * (codes.shape[1] // 2))))
    cost, threads = data.draw(st.sampled_from([0, 1, 10, 10**6])), data.draw(st.integers(1, 4))
    share = data.draw(st.sampled_from([None, 0.01, 0.5]))
    allowed = None if share is None else np.random.default_rng(0).random(len(codes)) < share
    tables = compiled.tables_of(codes, key_bits, cost, threads)
    for radius in (0, 1, 2, 3, data.draw(st.integers(4, 12))):
        answers = compiled.within(path, codes, queries, radius, allowed, threads, tables)
        check(answers, codes, queries, radius, allowed)


@needs_kernel
@pytest.mark.parametrize("n_bytes", [2, 8, 16])
def test_every_pair_of_halves_that_a_radius_allows(n_bytes: int) -> None:
    """All codes at most 3 bits from a query: however these lie in the halves, each is found once."""
    zero = np.zeros((1, 8 * n_bytes), dtype=np.uint8)
    bits = [zero]
    for _ in range(3):
        bits.append(np.concatenate([bits[-1] ^ one for one in np.eye(8 * n_bytes, dtype=np.uint8)]))
        bits[-1] = np.unique(bits[-1], axis=0)
        if n_bytes == 16:
            bits[-1] = bits[-1][:: max(1, len(bits[-1]) // 3000)]
    codes = np.packbits(np.concatenate(bits), axis=1)
    tables = compiled.tables_of(codes, min(8, 4 * n_bytes), 0, 1)
    for radius in range(5):
        query = np.packbits(zero, axis=1)
        answers = compiled.within(PATHS[0], codes, query, radius, None, 1, tables)
        check(answers, codes, query, radius, None)


def test_the_keys_of_a_radius_are_counted() -> None:
    """One by one: keys that differ in at most so many bits from another."""
    weights = np.bitwise_count(np.arange(2**9))
    for radius in range(25):
        expected = (weights <= radius // 2).sum() + (weights <= (radius - 1) // 2).sum()
        assert n_keys(9, radius) == (expected if radius else 1)


# When tables are made


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of codes of each set of tables that was made."""
    made: list[int] = []
    make = compiled.tables_of

    def counted(codes: Codes, key_bits: int, lookup_cost: int, threads: int) -> compiled.Tables:
        made.append(len(codes))
        return make(codes, key_bits, lookup_cost, threads)

    monkeypatch.setattr(compiled, "tables_of", counted)
    return made


def random_codes(n: int, n_bytes: int = 8) -> Codes:
    return np.random.default_rng(n).integers(0, 256, (n, n_bytes), dtype=np.uint8)


@needs_kernel
def test_tables_are_made_once_when_their_cost_has_been_spent_on_scans(builds: list[int]) -> None:
    codes = random_codes(20_000)
    index = ExactIndex(codes)
    for number in range(multi_index.SCANS_A_BUILD - 1):
        index.within_rows(codes[number : number + 1], 3)
    assert builds == []
    for number in range(300):
        query = codes[number : number + 1]
        check(index.within_rows(query, 3), codes, query, 3, None)
    assert builds == [20_000]


@needs_kernel
def test_a_batch_that_pays_for_tables_has_them_at_once(builds: list[int]) -> None:
    codes = random_codes(20_000)
    queries = codes[: multi_index.SCANS_A_BUILD]
    check(ExactIndex(codes).within_rows(queries, 2), codes, queries, 2, None)
    assert builds == [20_000]


@needs_kernel
@pytest.mark.parametrize(
    ("n", "n_bytes", "radius"),
    [(1000, 8, 3), (20_000, 8, 8), (20_000, 1, 0), (0, 8, 0)],
    ids=["few codes", "a large radius", "codes without halves", "no codes"],
)
def test_no_tables_where_they_cannot_pay(
    builds: list[int], n: int, n_bytes: int, radius: int
) -> None:
    codes, queries = random_codes(n, n_bytes), random_codes(1000, n_bytes)
    check(ExactIndex(codes).within_rows(queries, radius), codes, queries, radius, None)
    assert builds == []


@needs_kernel
def test_no_tables_that_would_fill_the_memory(
    builds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 600}  # an eighth of it is 307,200 bytes
    monkeypatch.setattr("os.sysconf", memory.__getitem__)
    codes = random_codes(20_000)
    ExactIndex(codes).within_rows(codes[:1000], 0)
    assert builds == []
    ExactIndex(codes[:10_000]).within_rows(codes[:1000], 0)
    assert builds == [10_000]


@needs_kernel
def test_without_memory_for_tables_codes_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> compiled.Tables:
        raise MemoryError

    monkeypatch.setattr(compiled, "tables_of", no_memory)
    codes = random_codes(20_000)
    index = ExactIndex(codes)
    for _ in range(2):
        check(index.within_rows(codes[:300], 1), codes, codes[:300], 1, None)


@needs_kernel
def test_threads_that_ask_while_tables_are_made(builds: list[int]) -> None:
    codes = random_codes(50_000)
    codes[1::2] = codes[::2]
    search = RadiusSearch(codes)

    def ask(number: int) -> None:
        query = codes[number : number + 1]
        check(search.within(query, 3, None, 1), codes, query, 3, None)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(2 * multi_index.SCANS_A_BUILD)))
    assert builds == [50_000]


# What would harm memory is refused even where Python's checks are passed by


@needs_kernel
def test_tables_that_do_not_fit_are_refused() -> None:
    codes = random_codes(100)
    tables, within = compiled._kernel.tables, compiled._kernel.within
    good = tables(codes, 8, 6, 1)
    within(codes, codes, 8, 3, None, 1, "plain", good, 6, 0)
    for arguments in [(codes, 7, 6, 1), (codes, 8, 0, 1), (codes, 8, -1, 1), (codes, 8, 32, 1)]:
        with pytest.raises(ValueError, match="no tables of 800 bytes of codes"):
            tables(*arguments)
    with pytest.raises(ValueError, match="no tables of 800 bytes of codes"):
        tables(codes, 1, 3, 1)
    for wrong in [(good, 5, 0), (good, -1, 0), (good[:-4], 6, 0), (good, 6, -1)]:
        with pytest.raises(ValueError, match="bytes are no tables of 100 codes"):
            within(codes, codes, 8, 3, None, 1, "plain", *wrong)
    with pytest.raises(ValueError, match="bytes are no tables of 99 codes"):
        within(codes[1:], codes, 8, 3, None, 1, "plain", good, 6, 0)
