"""The exact index against NumPy: value for value, in order, ties by insertion."""

import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.search import ExactIndex, Hits, kernel_name, kernel_names
from nearest_codes import nearest

WIDTHS = [8, 16, 24, 32, 40, 64, 72, 128, 160, 256, 512]


@pytest.fixture(autouse=True, params=[*kernel_names(), "none without faiss"])
def _every_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOLTZHASH_KERNEL", request.param.split()[0])
    if "without faiss" in request.param:
        monkeypatch.setitem(sys.modules, "faiss", None)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Thousands of tiny searches: threads would only wait for each other."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(threads)


def reference(codes: Codes, queries: Codes, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows and distances of the k nearest, equal distances in the order of insertion."""
    rows, distances = zip(*(nearest(codes, query) for query in queries), strict=True)
    return np.stack(rows)[:, :k], np.stack(distances)[:, :k]


def random_codes(rng: np.random.Generator, n: int, n_bits: int, different: int) -> Codes:
    """n codes of which at most ``different`` differ, so that most distances tie."""
    few = rng.integers(0, 256, (different, n_bits // 8), dtype=np.uint8)
    return few[rng.integers(0, different, n)]


def check_against_reference(codes: Codes, queries: Codes, k: int) -> None:
    rows, distances = ExactIndex(codes).search_rows(queries, k)
    expected_rows, expected_distances = reference(codes, queries, k)
    np.testing.assert_array_equal(distances, expected_distances, strict=True)
    np.testing.assert_array_equal(rows, expected_rows, strict=True)


@pytest.mark.parametrize("n_bits", WIDTHS)
@pytest.mark.parametrize("different", [3, 10_000], ids=["heavy ties", "few ties"])
def test_rows_and_distances_are_those_of_a_stable_sort(n_bits: int, different: int) -> None:
    rng = np.random.default_rng([n_bits, different])
    for n in (0, 1, 2, 3, 9, 64, 100, 257, 1000, 3000):
        codes = random_codes(rng, n, n_bits, different)
        for n_queries in (1, 7):
            queries = random_codes(rng, n_queries, n_bits, different)
            if n:
                queries[0] = codes[-1]
            for k in (1, 2, 10, 99, n, n + 5):
                if k:
                    check_against_reference(codes, queries, k)


@pytest.mark.parametrize("n_queries", [1, 31, 32, 33, 200])
def test_answers_do_not_depend_on_how_many_queries_come_together(n_queries: int) -> None:
    rng = np.random.default_rng(n_queries)
    codes = random_codes(rng, 500, 16, 20)
    check_against_reference(codes, random_codes(rng, n_queries, 16, 20), 37)


def test_the_longest_codes() -> None:
    rng = np.random.default_rng(0)
    codes = random_codes(rng, 300, 4096, 5)
    check_against_reference(codes, codes[:4], 100)
    opposite = np.stack([np.zeros(512, dtype=np.uint8), np.full(512, 255, dtype=np.uint8)])
    assert ExactIndex(opposite).search(opposite[:1], 2).distances.tolist() == [[0, 4096]]


@pytest.mark.parametrize("n_bits", [8, 64])
@pytest.mark.parametrize("k", [1, 10, 70_000])
@pytest.mark.parametrize("threads", [1, 4])
def test_ties_across_the_blocks_of_a_large_index(n_bits: int, k: int, threads: int) -> None:
    faiss.omp_set_num_threads(threads)
    # faiss goes through the codes in blocks of 65,536. Nine codes in 200,000 documents: every tie
    # has members in every block.
    rng = np.random.default_rng(k)
    codes = random_codes(rng, 200_000, n_bits, 9)
    check_against_reference(codes, codes[[0, 65_535, 65_536, 199_999]], k)


def test_a_nearest_code_on_either_side_of_a_block_border() -> None:
    codes = np.full((200_000, 1), 0b1111_0000, dtype=np.uint8)
    at_the_borders = [65_535, 65_536, 131_071, 131_072, 199_999]
    codes[at_the_borders] = 0
    rows, distances = ExactIndex(codes).search_rows(np.zeros((1, 1), dtype=np.uint8), 7)
    assert rows.tolist() == [[*at_the_borders, 0, 1]]
    assert distances.tolist() == [[0] * 5 + [4] * 2]


def test_a_shorter_answer_is_the_beginning_of_a_longer_one() -> None:
    rng = np.random.default_rng(3)
    codes = random_codes(rng, 400, 8, 30)
    index = ExactIndex(codes)
    all_rows, all_distances = index.search_rows(codes[:20], 400)
    for k in range(1, 400, 13):
        rows, distances = index.search_rows(codes[:20], k)
        np.testing.assert_array_equal(rows, all_rows[:, :k])
        np.testing.assert_array_equal(distances, all_distances[:, :k])


# Filtered and radius searches


@pytest.mark.parametrize("n_bits", [8, 32, 64, 128, 256, 1000])
@pytest.mark.parametrize("share", [0.001, 0.2, 1])
def test_only_allowed_rows_are_found(n_bits: int, share: float) -> None:
    rng = np.random.default_rng(n_bits)
    codes, queries = random_codes(rng, 3000, n_bits, 40), random_codes(rng, 5, n_bits, 40)
    allowed = rng.random(3000) < share
    allowed[7] = True
    kept = np.flatnonzero(allowed)
    for k in (1, 10, 3000):
        rows, distances = ExactIndex(codes).search_rows(queries, k, allowed=allowed)
        expected_rows, expected_distances = reference(codes[kept], queries, k)
        np.testing.assert_array_equal(rows, kept[expected_rows], strict=True)
        np.testing.assert_array_equal(distances, expected_distances, strict=True)


@pytest.mark.parametrize("n_bits", [8, 32, 64, 128, 256, 1000])
def test_all_within_a_radius(n_bits: int) -> None:
    rng = np.random.default_rng(n_bits)
    codes, queries = random_codes(rng, 2000, n_bits, 40), random_codes(rng, 5, n_bits, 40)
    allowed = rng.random(2000) < 0.3
    rows, distances = reference(codes, queries, 2000)
    for radius in (0, 3, n_bits // 2, n_bits, n_bits + 7):
        for mask in (None, allowed):
            answers = ExactIndex(codes).within_rows(queries, radius, allowed=mask)
            for number, (found, at) in enumerate(answers):
                chosen = distances[number] <= radius
                if mask is not None:
                    chosen &= mask[rows[number]]
                np.testing.assert_array_equal(found, rows[number][chosen], strict=True)
                np.testing.assert_array_equal(at, distances[number][chosen], strict=True)


def test_a_mask_and_a_radius_give_ids_too() -> None:
    codes = np.array([[0], [1], [3], [7]], dtype=np.uint8)
    index = ExactIndex(codes, ids=["a", "b", "c", "d"])
    allowed = np.array([False, True, False, True])
    hits = index.search(codes[:1], k=10, allowed=allowed)
    assert (hits.ids.tolist(), hits.distances.tolist()) == ([["b", "d"]], [[1, 3]])
    answers = index.within(codes[[0, 3]], 1, allowed=allowed)
    assert [hits.ids.tolist() for hits in answers] == [["b"], ["d"]]
    assert [hits.distances.tolist() for hits in answers] == [[1], [0]]
    assert all(isinstance(hits, Hits) and hits.ids.ndim == 1 for hits in answers)


def test_nothing_allowed_and_nothing_near_give_empty_answers() -> None:
    codes = np.array([[0], [1]], dtype=np.uint8)
    index = ExactIndex(codes)
    none = np.zeros(2, dtype=bool)
    hits = index.search(codes, 5, allowed=none)
    assert (hits.ids.shape, hits.distances.shape) == ((2, 0), (2, 0))
    far = np.array([[255]], dtype=np.uint8)
    for answer in (index.within(far, 3), index.within(codes[:1], 8, allowed=none)):
        assert [(h.ids.tolist(), h.distances.tolist()) for h in answer] == [([], [])]
    assert index.within(np.empty((0, 1), dtype=np.uint8), 3) == []
    nothing = ExactIndex(np.empty((0, 1), dtype=np.uint8))
    assert [h.ids.tolist() for h in nothing.within(far, 8)] == [[]]


def test_the_number_of_threads_changes_nothing() -> None:
    rng = np.random.default_rng(4)
    codes = random_codes(rng, 300_000, 64, 200)
    index = ExactIndex(codes)
    alone = index.search_rows(codes[:3], 50, threads=1)
    for threads in (2, 7, 10**9):
        together = index.search_rows(codes[:3], 50, threads=threads)
        np.testing.assert_array_equal(together[0], alone[0])
        np.testing.assert_array_equal(together[1], alone[1])


# Shapes


def test_fewer_documents_than_k_give_a_shorter_answer_without_padding() -> None:
    codes = np.array([[1], [3]], dtype=np.uint8)
    hits = ExactIndex(codes, ids=["one", "two"]).search(codes[:1], k=10)
    assert hits.ids.tolist() == [["one", "two"]]
    assert hits.distances.tolist() == [[0, 1]]


def test_an_empty_index_answers_with_nothing() -> None:
    index = ExactIndex(np.empty((0, 2), dtype=np.uint8), ids=[])
    hits = index.search(np.zeros((3, 2), dtype=np.uint8), k=5)
    assert (len(index), hits.ids.shape, hits.distances.shape) == (0, (3, 0), (3, 0))


def test_no_queries_give_no_answers() -> None:
    index = ExactIndex(np.zeros((4, 2), dtype=np.uint8))
    hits = index.search(np.empty((0, 2), dtype=np.uint8), k=3)
    assert (hits.ids.shape, hits.distances.shape) == ((0, 3), (0, 3))


def test_the_length_and_width_of_an_index() -> None:
    index = ExactIndex(np.zeros((4, 2), dtype=np.uint8))
    assert (len(index), index.n_bits) == (4, 16)


# Ids


def test_ids_of_any_kind_come_back_as_they_were_given() -> None:
    ids: list[str | int] = ["a", 7, "日本", "x\ny", -3]
    codes = np.arange(5, dtype=np.uint8)[:, None]
    hits = ExactIndex(codes, ids).search(codes, k=1)
    assert isinstance(hits, Hits)
    found = hits.ids.ravel().tolist()
    assert found == ids
    assert [type(i) for i in found] == [str, int, str, str, int]


def test_ids_follow_the_order_of_the_rows() -> None:
    rng = np.random.default_rng(5)
    codes = random_codes(rng, 200, 16, 12)
    ids = [f"document {i}" for i in rng.permutation(200)]
    rows, _ = reference(codes, codes[:9], 50)
    hits = ExactIndex(codes, ids).search(codes[:9], 50)
    assert hits.ids.tolist() == [[ids[row] for row in line] for line in rows]


def test_without_ids_the_rows_are_the_ids() -> None:
    codes = np.array([[9], [8], [9]], dtype=np.uint8)
    assert ExactIndex(codes).search(codes[:1]).ids.tolist() == [[0, 2, 1]]


@pytest.mark.parametrize("ids", [[], ["a"], ["a", "b", "c"]])
def test_one_id_a_code(ids: list[str]) -> None:
    with pytest.raises(ValueError, match=f"there are 2 codes and {len(ids)} ids"):
        ExactIndex(np.zeros((2, 1), dtype=np.uint8), ids)


# Arrays of every layout


def test_codes_and_queries_need_not_be_contiguous() -> None:
    rng = np.random.default_rng(8)
    wide = rng.integers(0, 4, (400, 12), dtype=np.uint8)
    for codes in (wide[:, 2:6], wide[::3, ::3], np.asfortranarray(wide), wide[::-1]):
        assert not codes.flags.c_contiguous
        check_against_reference(codes, codes[::2], 30)


def test_codes_may_be_mapped_from_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    codes = random_codes(rng, 300, 32, 10)
    np.save(tmp_path / "codes.npy", codes)
    mapped = np.load(tmp_path / "codes.npy", mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    check_against_reference(mapped, mapped[5:9], 40)


def test_the_index_keeps_its_own_copy() -> None:
    codes = np.array([[0], [255]], dtype=np.uint8)
    index = ExactIndex(codes)
    codes[:] = 7
    assert index.search(np.array([[255]], dtype=np.uint8), 2).distances.tolist() == [[0, 8]]


def test_codes_that_nobody_may_write_to_are_not_copied(tmp_path: Path) -> None:
    codes = random_codes(np.random.default_rng(10), 500_000, 64, 1000)
    np.save(tmp_path / "codes.npy", codes)
    codes.flags.writeable = False
    allowed = np.ones(len(codes), dtype=bool)
    for given in (codes, np.load(tmp_path / "codes.npy", mmap_mode="r")):
        tracemalloc.start()
        index = ExactIndex(given)
        if kernel_name() != "none":  # faiss keeps a copy, and NumPy needs memory for its blocks
            index.search(codes[:3], 10, allowed=allowed)
            index.within(codes[:3], 0, allowed=allowed)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < codes.nbytes / 10


# What is refused


@pytest.mark.parametrize(
    ("wrong", "came"),
    [
        (np.zeros((3, 16), dtype=bool), r"bool \(3, 16\)"),
        (np.zeros((3, 2), dtype=np.int64), r"int64 \(3, 2\)"),
        (np.zeros((3, 2), dtype=np.int8), r"int8 \(3, 2\)"),
        (np.zeros(2, dtype=np.uint8), r"uint8 \(2,\)"),
        ([[1, 2]], "list"),
    ],
)
def test_only_packed_codes_are_taken(wrong: Any, came: str) -> None:
    expected = rf"codes must be packed: a uint8 array \(n, n_bits/8\), got .*{came}"
    with pytest.raises(TypeError, match=expected):
        ExactIndex(wrong)
    with pytest.raises(TypeError, match=expected):
        ExactIndex(np.zeros((3, 2), dtype=np.uint8)).search(wrong)


@pytest.mark.parametrize("n_bytes", [0, 513])
def test_codes_of_no_bits_or_too_many_are_refused(n_bytes: int) -> None:
    with pytest.raises(ValueError, match=f"between 8 and 4096, got {8 * n_bytes}"):
        ExactIndex(np.zeros((3, n_bytes), dtype=np.uint8))


@pytest.mark.parametrize("n", [0, 3])
def test_queries_of_another_width_are_refused(n: int) -> None:
    index = ExactIndex(np.zeros((n, 2), dtype=np.uint8))
    with pytest.raises(ValueError, match="holds codes of 16 bits, the queries have 24"):
        index.search(np.zeros((1, 3), dtype=np.uint8))


@pytest.mark.parametrize("k", [0, -1])
@pytest.mark.parametrize("n", [0, 3])
def test_k_must_be_positive(k: int, n: int) -> None:
    index = ExactIndex(np.zeros((n, 2), dtype=np.uint8))
    with pytest.raises(ValueError, match=f"k must be at least 1, got {k}"):
        index.search(np.zeros((1, 2), dtype=np.uint8), k)


@pytest.mark.parametrize(
    ("allowed", "came"),
    [
        (np.ones(2, dtype=bool), r"bool \(2,\)"),
        (np.ones((3, 1), dtype=bool), r"bool \(3, 1\)"),
        (np.ones(3, dtype=np.uint8), r"uint8 \(3,\)"),
        ([True, True, True], "list"),
    ],
)
def test_a_mask_must_have_a_bool_a_code(allowed: Any, came: str) -> None:
    index = ExactIndex(np.zeros((3, 2), dtype=np.uint8))
    queries = np.zeros((1, 2), dtype=np.uint8)
    expected = rf"allowed must be a bool array \(3,\), one per code, got .*{came}"
    with pytest.raises(TypeError, match=expected):
        index.search(queries, allowed=allowed)
    with pytest.raises(TypeError, match=expected):
        index.within(queries, 1, allowed=allowed)


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "2"])
def test_radius_and_threads_are_integers(wrong: Any) -> None:
    index, queries = ExactIndex(np.zeros((3, 2), dtype=np.uint8)), np.zeros((1, 2), dtype=np.uint8)
    with pytest.raises(ValueError, match=f"radius must be an integer of 0 or more, got {wrong!r}"):
        index.within(queries, wrong)
    with pytest.raises(ValueError, match=f"threads must be a positive integer, got {wrong!r}"):
        index.search(queries, threads=wrong)
    with pytest.raises(ValueError, match="threads must be a positive integer, got 0"):
        index.search(queries, threads=0)
