"""Reading one generation of a collection in Milvus, and writing the next one wholly or not at all.

How that is done without transactions is told in ``milvus_state``. Milvus has no locks either: one client
may write at a time, and two that do so at once are refused where they notice each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from boltzhash.collection.milvus.client import Milvus
from boltzhash.collection.milvus.state import MilvusState, StateTable
from boltzhash.collection.store import Standing, T
from boltzhash.errors import CollectionBusyError

_ATTEMPTS = 20  # to read while others delete


class Generations:
    """``state`` is the generation that ``read`` or ``write`` is working on.

    Inside ``write``, ``after`` is the one to come, and ``new`` collects its rows.
    """

    state: MilvusState
    after: MilvusState
    new: list[dict[str, Any]]

    def __init__(self, milvus: Milvus, states: StateTable) -> None:
        self.milvus = milvus
        self.states = states
        self._cleaned = -1  # the generation up to which nothing is left over

    def read(self, answer: Callable[[Standing], T]) -> T:
        """Begins with the generation seen last, without asking: it mostly is the newest still.

        What Milvus is asked strongly consistent takes a tick of its clock, so it is asked once, at the
        end. An answer of a generation that was the newest when it began also holds where others have
        added meanwhile; where they took rows away it may lack some.
        """
        state, is_new = self.states.last or self.states.newest(), False
        for _ in range(_ATTEMPTS):
            self.state = state
            failure: Exception | None = None
            try:
                found = answer(state.standing())
            except Exception as error:
                failure = error
            now = self.states.newest()
            undisturbed = now.disturbed == state.disturbed
            if now.generation == state.generation or (is_new and undisturbed):
                if failure is not None:
                    raise failure
                return found
            state, is_new = now, True
        raise CollectionBusyError(
            f"{self.milvus.shown}: documents were overwritten or deleted in each of {_ATTEMPTS} "
            "attempts to read; try again when less is written"
        )

    def write(self, change: Callable[[Standing], T]) -> T:
        self.state = self.states.newest()
        self._clean(self.state)
        self._begin_next()
        done = change(self.state.standing())
        self._commit()
        return done

    def commit_and_go_on(self) -> None:
        """For a change that is too large for one generation."""
        self._commit()
        self._begin_next()

    def query(self, terms: list[str], fields: list[str]) -> list[dict[str, Any]]:
        """Rows of the generation for which all terms hold."""
        expression = " and ".join([*terms, *self.state.counts()])
        return self.milvus.query(self.state.table, expression, fields)

    def _begin_next(self) -> None:
        self.new = []
        self.after = self.state._replace(generation=self.state.generation + 1, dead=[])

    def _commit(self) -> None:
        before, after = self.state, self.after
        self.milvus.insert(before.table, self.new)
        born = f"born == {after.generation}"
        n_there = self.milvus.count(before.table, born) if self.new else 0
        if n_there != len(self.new) or self.states.newest().generation != before.generation:
            self._delete_rows(before.table, [row["row"] for row in self.new])
            raise CollectionBusyError(
                f"{self.milvus.shown}: another client is writing; nothing was changed here. Milvus "
                "has no locks: let one write at a time"
            )
        if after.dead:
            after = after._replace(disturbed=after.generation)
        self.states.append(after)
        self.state = after
        self._purge(after)
        self.states.forget_before(after.generation)
        self._cleaned = after.generation

    def _purge(self, state: MilvusState) -> None:
        for table in state.tables():
            self._delete_rows(table, state.dead)

    def _delete_rows(self, table: str, rows: list[int]) -> None:
        if rows:
            self.milvus.delete(table, f"row in {json.dumps(rows)}")

    def _clean(self, state: MilvusState) -> None:
        """Mend what a client left that died: an index half exchanged, rows that do not count."""
        if state.generation != self._cleaned:
            self.milvus.make_ready(state.table)
            self.milvus.delete(state.table, f"born > {state.generation}")
            self._purge(state)
            self._cleaned = state.generation
