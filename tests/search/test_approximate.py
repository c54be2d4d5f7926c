"""Approximate search: what it finds is in exact order, what it misses was measured."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from boltzhash.codes import Codes
from boltzhash.errors import ModelError
from boltzhash.search import ApproximateIndex, ExactIndex
from boltzhash.search.approximate import LISTS, Step, _ladder
from boltzhash.search.lists import centres_of, fill_lists, n_lists_for, nearest_centre

NO_ROWS = np.empty(0, dtype=np.int64)


def topical_codes(n: int, n_bits: int = 64, *, seed: int = 0, topics: int = 60) -> Codes:
    """Codes around shared topics, a quarter of the bits flipped: near lists matter, none is enough."""
    centres = np.random.default_rng(99).integers(0, 256, (topics, n_bits // 8), dtype=np.uint8)
    rng = np.random.default_rng(seed)
    flips = np.packbits(rng.random((n, n_bits)) < 0.25, axis=1)
    return centres[rng.integers(0, topics, n)] ^ flips


@pytest.fixture(scope="module")
def codes() -> Codes:
    return topical_codes(20_000)


@pytest.fixture(scope="module")
def index(codes: Codes) -> ApproximateIndex:
    return ApproximateIndex(codes, k=50)


# Recall


def test_recall_on_new_queries_is_what_was_asked_for(codes: Codes, index: ApproximateIndex) -> None:
    """Queries the index never saw; 1,000 of them, so the mean is sure to about a hundredth."""
    queries = topical_codes(1000, seed=1)
    _, exact = ExactIndex(codes).search_rows(queries, 50)
    for asked in (0.5, 0.8, 0.95, 0.99):
        _, found = index.search_rows(queries, 50, recall=asked)
        assert np.mean(found <= exact[:, -1:]) > asked - 0.02


def test_the_measured_recall_is_that_of_an_independent_computation(codes: Codes) -> None:
    queries = topical_codes(200, seed=2)
    index = ApproximateIndex(codes, k=20, queries=queries)
    _, exact = ExactIndex(codes).search_rows(queries, 20)
    for probes, recall in index.recalls:
        searcher = faiss.clone_binary_index(index._lists)
        searcher.nprobe = probes
        found = np.sort(searcher.search(queries, 20)[0], axis=1)
        shares = [
            np.mean(
                [np.sum(f[:cut] <= e[cut - 1]) / cut for f, e in zip(found, exact, strict=True)]
            )
            for cut in (1, 10, 20)
        ]
        assert recall == pytest.approx(min(shares), abs=1e-12)


def test_more_lists_find_more_and_all_lists_find_all(index: ApproximateIndex) -> None:
    probes = [step.probes for step in index.recalls]
    recalls = [step.recall for step in index.recalls]
    assert probes == sorted(set(probes))
    assert recalls == sorted(recalls)
    assert index.recalls[-1] == Step(n_lists_for(20_000), 1.0)
    assert recalls[0] < 0.9, "the codes are too easy to test anything"
    assert index.probes_for(0.95) == next(p for p, r in index.recalls if r >= 0.95)
    assert 1 < index.probes_for(0.95) < probes[-1]


def test_a_document_does_not_count_as_its_own_hit() -> None:
    """Codes at random have no near lists: finding oneself must not pass for recall."""
    codes = np.random.default_rng(0).integers(0, 256, (3000, 16), dtype=np.uint8)
    assert ApproximateIndex(codes, k=1).recalls[0].recall < 0.5


def test_recall_1_gives_the_exact_answer(codes: Codes, index: ApproximateIndex) -> None:
    """All but which of the codes at the distance of the 50th, the last the index gives."""
    queries = topical_codes(50, seed=3)
    all_rows, all_distances = ExactIndex(codes).search_rows(queries, 50)
    sure = all_distances < all_distances[:, -1:]
    for k in (1, 10, 50):
        rows, distances = index.search_rows(queries, k, recall=1)
        assert (rows.dtype, distances.dtype) == (np.int64, np.int32)
        np.testing.assert_array_equal(distances, all_distances[:, :k])
        np.testing.assert_array_equal(rows[sure[:, :k]], all_rows[:, :k][sure[:, :k]])
    assert sure.mean() > 0.4


# Order


@pytest.mark.parametrize("n_bits", [8, 16, 64])
def test_hits_come_by_distance_and_insertion(n_bits: int) -> None:
    """The nearest of exactly the codes in the probed lists, in order.

    Which of the codes at the distance of the last hit are there is faiss's choice: these are only
    compared with what lies at that distance.
    """
    codes, queries = topical_codes(3000, n_bits), topical_codes(20, n_bits, seed=4)
    index = ApproximateIndex(codes, k=40)
    centres = faiss.vector_to_array(faiss.downcast_IndexBinary(index._lists.quantizer).xb).reshape(
        -1, n_bits // 8
    )
    compared = 0
    for recall in (0.5, 0.9):
        probes = index.probes_for(recall)
        lists, _ = ExactIndex(centres).search_rows(queries, probes)
        member = nearest_centre(codes, centres)
        rows, distances = index.search_rows(queries, 40, recall=recall)
        for number, query in enumerate(queries):
            probed = np.flatnonzero(np.isin(member, lists[number]))
            if len(probed) < 40:
                continue
            expected, at = ExactIndex(codes[probed]).search_rows(query[None], 40)
            np.testing.assert_array_equal(distances[number], at[0])
            last = at[0, -1]
            sure = at[0] < last
            np.testing.assert_array_equal(rows[number][sure], probed[expected[0]][sure])
            there, where = ExactIndex(codes[probed]).within_rows(query[None], int(last))[0]
            tied = rows[number][~sure].tolist()
            assert tied == sorted(set(tied))
            assert set(tied) <= set(probed[there[where == last]].tolist())
            compared += 1
    assert compared >= 20


def test_a_shorter_answer_is_the_beginning_of_a_longer_one(index: ApproximateIndex) -> None:
    queries = topical_codes(30, seed=5)
    rows, _ = index.search_rows(queries, 50, recall=0.9)
    for k in (1, 7, 20):
        np.testing.assert_array_equal(index.search_rows(queries, k, recall=0.9)[0], rows[:, :k])


def test_faiss_without_its_heap_is_still_of_no_use(codes: Codes) -> None:
    """Why ``use_heap`` stays on; when this fails faiss was repaired, and it may be tried again."""
    lists = fill_lists(codes, codes[:16])
    assert lists.use_heap
    lists.nprobe = 16
    right, _ = lists.search(codes[:5], 10)
    lists.use_heap = False
    wrong, _ = lists.search(codes[:5], 10)
    assert not np.array_equal(right, wrong)


def test_lists_that_hold_fewer_than_k_are_not_the_end() -> None:
    """1,000 copies of one code and 1,000 scattered ones: most lists hold next to nothing."""
    rng = np.random.default_rng(6)
    codes = np.zeros((2000, 8), dtype=np.uint8)
    codes[1000:] = rng.integers(0, 256, (1000, 8), dtype=np.uint8)
    index = ApproximateIndex(codes, k=100)
    rows, distances = index.search_rows(codes[-20:], 100, recall=0.01)
    assert rows.min() >= 0
    assert [len(set(line)) for line in rows.tolist()] == [100] * 20
    np.testing.assert_array_equal(distances, np.sort(distances, axis=1))


# Small and strange collections


@pytest.mark.parametrize("n", [0, 1, 2, 9, 10, 999, 1000])
def test_any_number_of_codes(n: int) -> None:
    codes = topical_codes(n) if n else np.empty((0, 8), dtype=np.uint8)
    index = ApproximateIndex(codes, k=5)
    queries = topical_codes(3, seed=7)
    _, distances = index.search_rows(queries, 5, recall=1)
    np.testing.assert_array_equal(distances, ExactIndex(codes).search_rows(queries, 5)[1])
    assert len(index) == n


def test_all_codes_the_same() -> None:
    index = ApproximateIndex(np.full((5000, 8), 3, dtype=np.uint8))
    rows, distances = index.search_rows(np.full((2, 8), 3, dtype=np.uint8), 100)
    assert rows.tolist() == [list(range(100))] * 2
    assert not distances.any()


def test_no_queries(index: ApproximateIndex) -> None:
    assert index.search(np.empty((0, 8), dtype=np.uint8), 5).ids.shape == (0, 5)


# Lists


def test_centres_are_those_of_the_clusters() -> None:
    """Four tight clusters far apart: each centre ends as the majority of one of them."""
    rng = np.random.default_rng(8)
    middles = np.array([[0] * 8, [255] * 8, [15] * 8, [240] * 8], dtype=np.uint8)
    flips = np.packbits(rng.random((4000, 64)) < 0.03, axis=1)
    codes = middles[np.arange(4000) % 4] ^ flips
    centres = centres_of(codes, 16, NO_ROWS, rng)
    _, distances = ExactIndex(centres).search_rows(middles, 1)
    assert distances.max() <= 2
    every = nearest_centre(codes, centres)
    for cluster in range(4):
        others = np.setdiff1d(np.arange(4), [cluster])
        here = set(every[np.arange(4000) % 4 == cluster].tolist())
        there = {c for o in others for c in every[np.arange(4000) % 4 == o].tolist()}
        assert not here & there


def test_training_does_not_see_what_is_held_out() -> None:
    codes = np.zeros((2000, 8), dtype=np.uint8)
    codes[:100] = 255
    centres = centres_of(codes, 4, np.arange(100), np.random.default_rng(0))
    assert not centres.any()


def test_every_code_is_in_one_list(index: ApproximateIndex) -> None:
    sizes = [index._lists.get_list_size(i) for i in range(index._lists.nlist)]
    assert sum(sizes) == len(index) == 20_000


def test_the_same_seed_gives_the_same_index(codes: Codes, index: ApproximateIndex) -> None:
    again = ApproximateIndex(codes, k=50)
    assert again.recalls == index.recalls
    other = ApproximateIndex(codes, k=50, random_state=1)
    assert other.recalls != index.recalls


def test_the_ladder_of_lists() -> None:
    assert list(_ladder(1)) == []
    assert list(_ladder(3)) == [1, 2]
    assert list(_ladder(40)) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]


# Threads


def test_threads_may_ask_for_different_recalls_at_once(index: ApproximateIndex) -> None:
    queries = topical_codes(40, seed=9)
    recalls = [0.3, 0.9, 0.99, 1.0] * 10
    expected = {r: index.search_rows(queries, 10, recall=r)[0].tolist() for r in recalls}
    assert expected[0.3] != expected[1.0]
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(lambda r: index.search_rows(queries, 10, recall=r)[0].tolist(), recalls)
        for recall, rows in zip(recalls, answers, strict=True):
            assert rows == expected[recall]


# Files


@pytest.mark.parametrize("with_ids", [False, True])
def test_what_is_saved_comes_back(codes: Codes, tmp_path: Path, with_ids: bool) -> None:
    ids: list[str | int] | None = [f"é\n{i}" if i % 2 else i for i in range(3000)]
    index = ApproximateIndex(codes[:3000], ids if with_ids else None, k=30)
    index.save(tmp_path / "index")
    loaded = ApproximateIndex.load(tmp_path / "index")
    assert (len(loaded), loaded.n_bits, loaded.k) == (3000, 64, 30)
    assert loaded.recalls == index.recalls
    queries = topical_codes(20, seed=10)
    for recall in (0.5, 0.95, 1):
        hits, expected = (
            loaded.search(queries, 30, recall=recall),
            index.search(queries, 30, recall=recall),
        )
        assert hits.ids.tolist() == expected.ids.tolist()
        assert hits.distances.tolist() == expected.distances.tolist()


def test_saving_again_replaces_the_index_and_nothing_else(codes: Codes, tmp_path: Path) -> None:
    index = ApproximateIndex(codes[:100])
    index.save(tmp_path / "index")
    ApproximateIndex(codes[:50]).save(tmp_path / "index")
    assert len(ApproximateIndex.load(tmp_path / "index")) == 50
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="was not replaced"):
        index.save(tmp_path / "notes")
    assert (tmp_path / "notes" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("name", [LISTS, "ids.jsonl"])
def test_a_damaged_or_missing_file_is_refused(codes: Codes, tmp_path: Path, name: str) -> None:
    ApproximateIndex(codes[:100], [str(i) for i in range(100)]).save(tmp_path / "index")
    path = tmp_path / "index" / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    with pytest.raises(ModelError, match=f"{name} is damaged"):
        ApproximateIndex.load(tmp_path / "index")
    path.unlink()
    with pytest.raises(ModelError, match=f"{name} is missing"):
        ApproximateIndex.load(tmp_path / "index")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recalls": [[1, 1.0]]}, "its recalls are not those saved"),
        ({"k": 10_000}, "its recalls are not those saved"),
        ({"format_version": 99}, "has format version 99"),
        ({"format": "boltzhash model"}, "holds a 'boltzhash model'"),
        ({"n_documents": 7}, "do not fit together"),
        ({"n_bits": 32}, "do not fit together"),
        ({"n_bits": "many"}, "config.json is damaged"),
    ],
)
def test_a_changed_config_is_refused(
    codes: Codes, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    ApproximateIndex(codes[:2000]).save(tmp_path / "index")
    path = tmp_path / "index" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=message):
        ApproximateIndex.load(tmp_path / "index")


# What is refused


@pytest.mark.parametrize("recall", [0, -0.5, 1.01, float("nan"), True, "high"])
def test_a_recall_is_above_0_and_at_most_1(index: ApproximateIndex, recall: Any) -> None:
    with pytest.raises(ValueError, match="recall must be a number above 0 and at most 1, got"):
        index.search(topical_codes(1), 5, recall=recall)


def test_more_hits_than_recall_was_measured_for(index: ApproximateIndex) -> None:
    with pytest.raises(ValueError, match=r"measured for up to 50 hits, got k=51: build the index"):
        index.search(topical_codes(1), 51)


def test_other_wrong_arguments(codes: Codes, index: ApproximateIndex) -> None:
    with pytest.raises(ValueError, match="k must be a positive integer, got 0"):
        index.search(codes[:1], 0)
    with pytest.raises(ValueError, match="k must be a positive integer, got 0"):
        ApproximateIndex(codes, k=0)
    with pytest.raises(ValueError, match="there are 20000 codes and 1 ids"):
        ApproximateIndex(codes, ["a"])
    with pytest.raises(TypeError, match="codes must be packed"):
        ApproximateIndex(codes.astype(np.int64))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="holds codes of 64 bits, the queries have 32"):
        index.search(codes[:1, :4])
    with pytest.raises(ValueError, match="holds codes of 64 bits, the queries have 32"):
        ApproximateIndex(codes, queries=codes[:, :4])
