"""How much an approximate index looks at, and what is said of it."""

from __future__ import annotations

import pytest

from boltzhash.collection.recall import Effort, least_effort

# The distances of what is found of the five nearest, by how much is looked at.
ANSWERS = {None: [1, 1, 2, 3, 3], 10: [1, 2, 4, 4, 5], 20: [1, 1, 3, 3, 4], 40: [1, 1, 2, 3, 3]}


@pytest.mark.parametrize(
    ("recall", "expected"),
    [(0.3, Effort(10, 0.4)), (0.8, Effort(20, 0.8)), (0.95, Effort(40, 1.0))],
)
def test_the_least_effort_that_finds_enough(recall: float, expected: Effort) -> None:
    found = least_effort(lambda _, effort: ANSWERS[effort], 3, [10, 20, 40], recall)
    assert found.effort == expected.effort
    assert found.recall == pytest.approx(expected.recall)


def test_where_none_finds_enough_it_is_the_most() -> None:
    asked: list[int | None] = []

    def nearest(_: int, effort: int | None) -> list[int]:
        asked.append(effort)
        return ANSWERS[effort]

    found = least_effort(nearest, 2, [10, 20], 0.95)
    assert (found.effort, found.recall) == (20, pytest.approx(0.8))
    assert asked == [None, None, 10, 10, 20, 20]  # the exact answers are asked for once


def test_an_empty_collection_misses_nothing() -> None:
    assert least_effort(lambda *_: [], 2, [10, 20], 0.95) == Effort(10, 1.0)
