"""Measures against hand-worked cases, trec_eval, and the mean over all tie orders."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pytrec_eval

from boltzhash.codes import hamming
from boltzhash.metrics import (
    average_precision,
    ndcg,
    precision,
    precision_within,
    recall,
)
from boltzhash.metrics.ties import _PAIRS, pairs
from boltzhash.search import ExactIndex

Measure = Callable[..., np.ndarray]

# Name → our measure, trec_eval's name of it; trec_eval's cut-offs are part of the name.
AT_K: dict[str, tuple[Measure, str]] = {
    "precision": (precision, "P"),
    "recall": (recall, "recall"),
    "map": (average_precision, "map_cut"),
    "ndcg": (ndcg, "ndcg_cut"),
}


def codes(*numbers: int) -> np.ndarray:
    return np.array([[n] for n in numbers], dtype=np.uint8)


def of(
    measure: Callable[..., np.ndarray], case: tuple[np.ndarray, ...], **options: Any
) -> np.ndarray:
    """A measure of (queries, codes, labels of queries, labels)."""
    queries, database, query_labels, labels = case
    return measure(queries, database, query_labels=query_labels, labels=labels, **options)


def random_case(seed: int, n: int = 60, n_bytes: int = 1) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    database = rng.integers(0, 8, (n, n_bytes)).astype(np.uint8)
    labels = rng.random((n, 4)) < 0.3
    queries = rng.integers(0, 8, (9, n_bytes)).astype(np.uint8)
    query_labels = rng.random((9, 4)) < 0.3
    query_labels[0] = False  # a query with nothing relevant
    return queries, database, query_labels, labels


def trec(rankings: list[list[int]], relevant: np.ndarray, measures: set[str]) -> list[dict]:
    """trec_eval's values of rankings given as document numbers, first to last."""
    judged = {str(q): {str(d): int(r) for d, r in enumerate(row)} for q, row in enumerate(relevant)}
    runs = {
        str(q): {str(d): float(len(ranked) - place) for place, d in enumerate(ranked)}
        for q, ranked in enumerate(rankings)
    }
    found = pytrec_eval.RelevanceEvaluator(judged, measures).evaluate(runs)
    return [found[str(q)] for q in range(len(rankings))]


# By hand: distances 0, 1, 1, 1, 2 with relevant 1, 0, 1, 1, 0.
DATABASE = codes(0b0, 0b1, 0b10, 0b100, 0b11)
LABELS = np.array([[1, 0], [0, 1], [1, 1], [1, 0], [0, 1]], dtype=bool)
HAND = (codes(0), DATABASE, np.array([[True, False]]), LABELS)


def test_ties_by_hand() -> None:
    """The top 2 hold 1 + 2/3 relevant ones."""
    for k, found in ((1, 1), (2, 1 + 2 / 3), (3, 1 + 4 / 3), (4, 3), (5, 3)):
        assert of(precision, HAND, k=k)[0] == pytest.approx(found / k)
        assert of(recall, HAND, k=k)[0] == pytest.approx(found / 3)


def test_average_precision_by_hand() -> None:
    """Places 2 to 4 hold one irrelevant document, at each of them with probability 1/3.

    At 2: precisions 1, 2/3, 3/4. At 3: 1, 1, 3/4. At 4: 1, 1, 1.
    """
    assert of(average_precision, HAND)[0] == pytest.approx(
        ((1 + 2 / 3 + 3 / 4) + (1 + 1 + 3 / 4) + 3) / 9
    )
    insertion = of(average_precision, HAND, ties="insertion")[0]
    assert insertion == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)


def test_ndcg_by_hand() -> None:
    gain = 1 + 2 / 3 * (1 / np.log2(3) + 1 / np.log2(4) + 1 / np.log2(5))
    ideal = 1 + 1 / np.log2(3) + 1 / np.log2(4)
    assert of(ndcg, HAND, k=5)[0] == pytest.approx(gain / ideal)
    assert of(ndcg, HAND, k=1)[0] == 1


def test_precision_within_by_hand() -> None:
    for radius, expected in ((0, 1), (1, 3 / 4), (2, 3 / 5), (8, 3 / 5), (99, 3 / 5)):
        assert of(precision_within, HAND, radius=radius)[0] == pytest.approx(expected)
    far = (codes(0b11111111), *HAND[1:])
    assert of(precision_within, far, radius=2)[0] == 0  # an empty ball


@pytest.mark.parametrize("name", AT_K)
@pytest.mark.parametrize("k", [1, 2, 3, 5, 6])
def test_expectation_is_the_mean_over_all_tie_orders(name: str, k: int) -> None:
    """All 720 orders of 6 documents that sort by distance, each judged by trec_eval."""
    measure, trec_name = AT_K[name]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        database = codes(*rng.choice([0, 1, 2, 3, 5], 6))
        labels = rng.random((6, 2)) < 0.5
        case = (codes(0), database, np.array([[True, False]]), labels)
        distances = hamming(case[0], database)[0]
        orders = [
            list(order)
            for order in itertools.permutations(range(6))
            if (np.diff(distances[list(order)]) >= 0).all()
        ]
        relevant = np.repeat(labels[None, :, 0], len(orders), axis=0)
        values = trec(orders, relevant, {f"{trec_name}.{k}"})
        expected = np.mean([value[f"{trec_name}_{k}"] for value in values])
        assert of(measure, case, k=k)[0] == pytest.approx(expected, abs=1e-9)


def test_full_average_precision_is_the_mean_over_all_tie_orders() -> None:
    labels = np.array([[1], [0], [1], [1], [0], [0]], dtype=bool)
    case = (codes(0), codes(1, 2, 4, 3, 5, 6), np.array([[True]]), labels)
    orders = [
        [*near, *far]
        for near in itertools.permutations(range(3))
        for far in itertools.permutations(range(3, 6))
    ]
    values = trec(orders, np.repeat(labels.T, len(orders), axis=0), {"map"})
    assert of(average_precision, case)[0] == pytest.approx(np.mean([v["map"] for v in values]))


@pytest.mark.parametrize("seed", range(3))
def test_insertion_order_agrees_with_trec_eval(seed: int) -> None:
    """The ranking is the index's own: trec_eval judges what the user would see."""
    queries, database, query_labels, labels = case = random_case(seed, n=150, n_bytes=2)
    rankings, _ = ExactIndex(database).search_rows(queries, k=150)
    relevant = (query_labels.astype(int) @ labels.T.astype(int)) > 0
    names = {f"{trec_name}.1,7,50,150" for _, trec_name in AT_K.values()} | {"map"}
    values = trec(rankings.tolist(), relevant, names)
    for k in (1, 7, 50, 150):
        for measure, trec_name in AT_K.values():
            expected = [value[f"{trec_name}_{k}"] for value in values]
            assert of(measure, case, k=k, ties="insertion") == pytest.approx(expected, abs=1e-9)
    assert of(average_precision, case, ties="insertion") == pytest.approx(
        [v["map"] for v in values]
    )


@pytest.mark.parametrize(
    ("measure", "options"),
    [
        (precision, {"k": 10}),
        (recall, {"k": 10}),
        (average_precision, {}),
        (ndcg, {"k": 10}),
        (precision_within, {"radius": 2}),
    ],
)
def test_a_query_without_relevant_documents_is_0(measure: Measure, options: dict) -> None:
    values = of(measure, random_case(0), **options)
    assert values.shape == (9,)
    assert values[0] == 0
    assert values[1:].max() > 0


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(5, n_bytes=3)
    whole = [of(average_precision, case), of(precision_within, case, radius=9)]
    monkeypatch.setattr("boltzhash.metrics.ties._PAIRS", 2 * len(case[1]) + 1)
    assert [len(block.distances) for block in pairs(*case)] == [2, 2, 2, 2, 1]
    assert (of(average_precision, case) == whole[0]).all()
    assert (of(precision_within, case, radius=9) == whole[1]).all()


def test_one_block_is_bounded() -> None:
    n = 50_000
    labels = np.ones((n, 1), dtype=bool)
    database = np.zeros((n, 1), dtype=np.uint8)
    first = next(pairs(database, database, labels, labels))
    assert first.distances.size <= _PAIRS


def test_no_queries() -> None:
    queries, database, query_labels, labels = random_case(0)
    assert precision(
        queries[:0], database, query_labels=query_labels[:0], labels=labels, k=3
    ).shape == (0,)
    assert precision_within(
        queries[:0], database, query_labels=query_labels[:0], labels=labels
    ).shape == (0,)


@pytest.mark.parametrize("k", [0, 4])
def test_k_beyond_the_collection_is_named(k: int) -> None:
    labels = np.ones((3, 1), dtype=bool)
    with pytest.raises(ValueError, match=f"k must be between 1 and the 3 documents, got {k}"):
        precision(codes(1), codes(1, 2, 3), query_labels=labels[:1], labels=labels, k=k)


def test_wrong_arguments_are_named() -> None:
    queries, database, query_labels, labels = random_case(0)
    with pytest.raises(TypeError, match=r"labels must be a bool array .*, got int64 \(60, 4\)"):
        precision(queries, database, query_labels=query_labels, labels=labels.astype(int), k=3)
    with pytest.raises(ValueError, match="there are 60 codes and 59 rows of labels"):
        precision(queries, database, query_labels=query_labels, labels=labels[1:], k=3)
    with pytest.raises(ValueError, match="query_labels have 3 columns and labels 4"):
        precision(queries, database, query_labels=query_labels[:, :3], labels=labels, k=3)
    with pytest.raises(ValueError, match="queries have 16 bits and codes 8"):
        precision(
            np.hstack([queries, queries]), database, query_labels=query_labels, labels=labels, k=3
        )
    with pytest.raises(ValueError, match="ties must be one of 'expected', 'insertion', got 'r'"):
        precision(queries, database, query_labels=query_labels, labels=labels, k=3, ties="r")
    with pytest.raises(ValueError, match="k must be a positive integer, got 0"):
        recall(queries, database, query_labels=query_labels, labels=labels, k=0)
    with pytest.raises(ValueError, match="radius must be an integer of 0 or more, got -1"):
        precision_within(queries, database, query_labels=query_labels, labels=labels, radius=-1)
