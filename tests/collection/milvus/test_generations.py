"""Whole generations from a Milvus in memory that shows every table as late as it is allowed to.

A real server shows its tables at nearly the same pace, so that a step that does not wait for the one
before hardly ever shows. Here each table has a pace of its own, and chance decides between any two
requests who of a reader and a writer goes on.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from boltzhash.collection.milvus.client import BOUNDED, SESSION, STRONG
from boltzhash.collection.milvus.generations import Generations
from boltzhash.collection.milvus.state import MilvusState, StateTable
from boltzhash.collection.store import Standing

N = 4  # documents, each of which the writer overwrites in every generation
VERSIONS = 6
HISTORIES = 60


class Turns:
    """Who may go on: one of some threads at a time, which chance chooses before each request."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self._changed = threading.Condition()
        self._waiting: set[str] = set()
        self._all = 0
        self._goes = ""
        self._failures: list[Exception] = []

    def run(self, *work: Callable[[], None]) -> None:
        self._all = len(work)
        threads = [
            threading.Thread(target=self._one, args=(one,), name=one.__name__) for one in work
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def _one(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as failure:
            self._failures.append(failure)
        finally:
            with self._changed:
                self._all -= 1
                self._choose()

    def pause(self) -> None:
        me = threading.current_thread().name
        with self._changed:
            self._waiting.add(me)
            self._choose()
            self._changed.wait_for(lambda: self._goes == me)
            self._goes = ""
        if self._failures:
            raise InterruptedError("the other one has failed")

    def _choose(self) -> None:
        """When all wait, in an order that does not depend on the system."""
        if self._waiting and len(self._waiting) == self._all:
            self._goes = self.chance.choice(sorted(self._waiting))
            self._waiting.remove(self._goes)
            self._changed.notify_all()


class Log:
    """A table as its log, and how much of it has been seen."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, Any]] = []
        self.n_seen = 0
        self.last_insert = 0

    def rows(self) -> list[dict[str, Any]]:
        rows: dict[int, dict[str, Any]] = {}
        for kind, what in self.entries[: self.n_seen]:
            if kind == "insert":
                rows[what.get("row", what.get("number"))] = what
            else:
                rows = {key: row for key, row in rows.items() if not eval(what, {}, dict(row))}
        return list(rows.values())


class LateMilvus:
    """What :class:`Generations` asks of Milvus; expressions happen to be Python's, too."""

    shown = "late"
    is_lite = True

    def __init__(self, turns: Turns, tables: dict[str, Log], reading: str) -> None:
        self._turns = turns
        self._tables = tables
        self.reading = reading

    def make_ready(self, table: str) -> None: ...

    def insert(self, table: str, rows: list[dict[str, Any]]) -> None:
        self._turns.pause()
        log = self._tables[table]
        log.entries += [("insert", row) for row in rows]
        log.last_insert = len(log.entries)

    def delete(self, table: str, expression: str) -> None:
        self._turns.pause()
        self._tables[table].entries.append(("delete", expression))

    def query(
        self, table: str, expression: str, fields: list[str], *, consistency: str = STRONG
    ) -> list[dict[str, Any]]:
        self._turns.pause()
        log = self._tables[table]
        at_least = {STRONG: len(log.entries), SESSION: log.last_insert, BOUNDED: 0}[consistency]
        ahead = self._turns.chance.choice([log.n_seen, len(log.entries)])
        log.n_seen = max(log.n_seen, at_least, ahead)
        return [dict(row) for row in log.rows() if eval(expression, {}, dict(row))]

    def count(self, table: str, expression: str, *, consistency: str = STRONG) -> int:
        return len(self.query(table, expression, [], consistency=consistency))


def opened(turns: Turns, tables: dict[str, Log], reading: str) -> Generations:
    milvus: Any = LateMilvus(turns, tables, reading)
    return Generations(milvus, StateTable(milvus, "state"))


def overwrite(generations: Generations, version: int) -> None:
    """As a store does it: the row of each document dies, and another is born."""

    def change(_: Standing) -> None:
        after = generations.after
        dead = [row["row"] for row in generations.query([], ["row"])]
        generations.new = {
            i: {"row": 100 * after.generation + i, "born": after.generation, "version": version,
                "text": "", "metadata": ""}
            for i in range(N)
        }  # fmt: skip
        generations.after = after._replace(dead=dead, n_documents=N)

    generations.write(change)


def history(seed: int, reading: str) -> list[int]:
    """The versions that a reader sees, each of which must be whole, while a writer overwrites all."""
    turns = Turns(seed)
    tables = {"state": Log(), "documents": Log()}
    seen: list[int] = []

    def write() -> None:
        writer = opened(turns, tables, BOUNDED)
        for version in range(1, VERSIONS):
            overwrite(writer, version)
            if turns.chance.random() < 0.5:
                writer.write(lambda _: None)  # a generation without rows, and nothing dies
            own = [row["version"] for row in writer.read(lambda _: writer.query([], []))]
            assert own == [version] * N  # what it has written itself it sees at once

    def read() -> None:
        reader = opened(turns, tables, reading)
        while not seen or seen[-1] < VERSIONS - 1:
            rows = reader.read(lambda _: reader.query([], []))
            versions = [row["version"] for row in rows]
            assert versions in [[], *([v] * N for v in range(VERSIONS))], versions
            seen.append(versions[0] if versions else 0)

    def begin() -> None:
        first = MilvusState(0, 0, 0, "model", 8, "documents", [], 0)
        opened(turns, tables, STRONG).states.append(first)
        tables["state"].n_seen = 1

    turns.run(begin)
    turns.run(write, read)
    assert seen == sorted(seen)
    return seen


@pytest.mark.parametrize("reading", [BOUNDED, STRONG])
def test_an_answer_is_of_one_generation(reading: str) -> None:
    for seed in range(HISTORIES):
        history(seed, reading)


def without_waiting_for_the_state(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateTable, "wait_until_seen", lambda _: None)


def without_waiting_for_the_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Generations, "_is_alone", lambda *_: True)


def without_waiting_for_what_was_deleted(patch: pytest.MonkeyPatch) -> None:
    is_alone = Generations._is_alone
    patch.setattr(Generations, "_is_alone", lambda g, before: is_alone(g, before._replace(dead=[])))


def without_asking_again(patch: pytest.MonkeyPatch) -> None:
    def read(self: Generations, answer: Callable[[Standing], Any]) -> Any:
        self.state = self.states.newest(self.milvus.reading)
        return answer(self.state.standing())

    patch.setattr(Generations, "read", read)


@pytest.mark.parametrize(
    "broken",
    [
        without_waiting_for_the_state,
        without_waiting_for_the_rows,
        without_waiting_for_what_was_deleted,
        without_asking_again,
    ],
)
def test_each_step_of_the_proof_is_needed(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        for seed in range(HISTORIES):
            history(seed, BOUNDED)
