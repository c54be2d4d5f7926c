"""The oracle of benchmarks/soak.py: what it must not overlook, and what it must not blame."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"
BEGAN, ENDED = 10.0, 11.0


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module("soak")


@pytest.mark.parametrize(
    ("times", "problem"),
    [
        ({"sent": 1, "added": 2}, None),
        ({"sent": 1}, None),  # under way, or nobody knows
        ({"sent": 1, "added": 2, "delete_sent": 3}, None),
        ({"sent": 1, "added": 2, "delete_sent": 3, "deleted": 10.5}, None),
        ({"sent": 1, "added": 2, "delete_sent": 3, "deleted": 4}, "which was deleted before"),
        ({"sent": 12}, "which was not yet sent"),
        ({"sent": 1, "refused": True}, "whose addition was refused"),
    ],
)
def test_what_may_be_found(soak: ModuleType, times: dict[str, Any], problem: str | None) -> None:
    seen = soak.Seen({"a": soak.Life("text", **times)})
    seen.check_found("a search", ["a"], BEGAN, ENDED)
    assert seen.problems == ([] if problem is None else [f"a search found 'a', {problem}"])


def test_what_nobody_sent_is_wrong(soak: ModuleType) -> None:
    seen = soak.Seen()
    seen.check_found("a search", ["b"], BEGAN, ENDED)
    assert seen.problems == ["a search found 'b', which nobody sent"]


@pytest.mark.parametrize(
    ("times", "must"),
    [
        ({"added": 2}, True),
        ({"added": 2, "delete_sent": 12}, True),
        ({"added": 2, "delete_sent": 10.5}, False),
        ({"added": 10.5}, False),
        ({}, False),
    ],
)
def test_what_must_be_found(soak: ModuleType, times: dict[str, float], must: bool) -> None:
    assert soak.Life("text", 1, **times).must_be_there(BEGAN, ENDED) == must


def test_lost_writes_are_counted(soak: ModuleType) -> None:
    lives = {
        "kept": soak.Life("one", 1, 2),
        "lost": soak.Life("two", 1, 2),
        "changed": soak.Life("three", 1, 2),
        "back": soak.Life("four", 1, 2, 3, 4),
        "unsure": soak.Life("five", 1),
    }
    seen = soak.Seen(lives)
    found = {"kept": "one", "changed": "other", "back": "four"}
    assert soak.check_kept(seen, found, BEGAN, ENDED, "the end") == (4, 3)
    assert len(seen.problems) == 3


def test_a_connection_may_break_after_a_kill_only(soak: ModuleType) -> None:
    seen = soak.Seen()
    seen.killed.append(soak.time.monotonic())
    seen.broke("a search")
    assert seen.problems == []
    seen.killed.clear()
    seen.broke("a search")
    assert seen.problems == ["a connection broke, and no worker had been killed: a search"]


@pytest.mark.parametrize(
    ("end", "minutes", "is_wrong"), [(120, 60, False), (200, 60, True), (400, 30, False)]
)
def test_memory_may_not_grow(soak: ModuleType, end: int, minutes: int, is_wrong: bool) -> None:
    """From minute 20 on, in a run that is long enough to tell."""
    seen = soak.Seen()
    last = 60 * minutes
    growing = [(at, round((100 + (end - 100) * at / last) * 1e6)) for at in range(0, last + 1, 2)]
    seen.memory = {1: growing, 2: growing[:3]}
    told = soak.memory_of_the_oldest(seen)
    assert (told["lived_minutes"], told["most_mb"]) == (minutes, end)
    assert told["judged"] == (minutes == 60)
    assert bool(seen.problems) == is_wrong
