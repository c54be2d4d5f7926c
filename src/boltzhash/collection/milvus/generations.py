"""Reading one generation of a collection in Milvus, and writing the next one wholly or not at all.

How that is done without transactions is told in ``milvus/state.py``. Milvus has no locks either: one
client may write at a time, and two that do so at once are refused where they notice each other.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from boltzhash.collection.milvus.client import SESSION, STRONG, Milvus
from boltzhash.collection.milvus.state import MilvusState, StateTable
from boltzhash.collection.store import Standing, T, Write
from boltzhash.corpus.documents import Id
from boltzhash.errors import CollectionBusyError

_ATTEMPTS = 20  # to read while others delete
# A commit takes some ticks of Milvus' clock, however much it commits. So much is held back for one:
_ROWS_TOGETHER = 16_384
_BYTES_TOGETHER = 32 << 20
_DEAD_TOGETHER = 1_000  # and the next batch's, of the 2,500 that a state can name


class Generations:
    """``state`` is the generation that ``read`` or ``write`` is working on.

    Inside ``write``, ``after`` is the one to come, and ``new`` collects its rows.
    """

    state: MilvusState
    after: MilvusState
    new: dict[Id, dict[str, Any]]

    def __init__(self, milvus: Milvus, states: StateTable) -> None:
        self.milvus = milvus
        self.states = states
        self._lock = threading.RLock()
        self._before: MilvusState | None = None  # what ``after`` follows, until it is committed
        self._cleaned = -1  # the generation up to which nothing is left over
        self.written: int | None = None  # the generation that the last commit made

    # Reading

    def read(self, answer: Callable[[Standing], T]) -> T:
        """Begins with the generation seen last, without asking: it mostly is the newest still.

        It is asked for at the end. An answer of a generation that was the newest when it began also
        holds where others have added meanwhile; where they took rows away it may lack some.
        """
        with self._lock:
            state, is_new = self.states.last or self.states.newest(), False
            for _ in range(_ATTEMPTS):
                self.state = state
                failure: Exception | None = None
                try:
                    found = answer(state.standing())
                except Exception as error:
                    failure = error
                now = self.states.newest(self.milvus.reading if failure is None else STRONG)
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

    def query(self, terms: list[str], fields: list[str]) -> list[dict[str, Any]]:
        """Rows of the generation for which all terms hold."""
        expression = " and ".join([*terms, *self.state.counts()])
        return self.milvus.query(
            self.state.table, expression, fields, consistency=self.milvus.reading
        )

    # Writing

    def write(self, change: Callable[[Standing], T]) -> T:
        with self._lock:
            self._commit()  # what another thread holds back
            self._begin(self.states.newest())
            done = self._apply(change)
            self._commit()
            return done

    @contextmanager
    def together(self) -> Iterator[Write]:
        """Gives another ``write``: it may hold a change back, until the end at the latest.

        A change that raises is left out; those before it are committed all the same.
        """
        is_first = True

        def write(change: Callable[[Standing], T]) -> T:
            nonlocal is_first
            with self._lock:
                if self._before is None:
                    self._begin(self.states.newest() if is_first else self._own_or_newest())
                done = self._apply(change)
                is_first = False
                if self._holds_enough():
                    self._commit()
                return done

        try:
            yield write
        finally:
            with self._lock:
                self._commit()

    def _own_or_newest(self) -> MilvusState:
        """What this client has committed, without asking: who wrote since is noticed by ``_commit``."""
        last = self.states.last
        if last is not None and last.generation == self._cleaned:
            return last
        return self.states.newest()

    def commit_and_go_on(self) -> None:
        """For a change that is too large for one generation."""
        self._commit()
        self._begin(self.state)

    def _begin(self, state: MilvusState) -> None:
        self._clean(state)
        self._before = state
        self.new = {}
        self.after = state._replace(generation=state.generation + 1, dead=[])

    def _apply(self, change: Callable[[Standing], T]) -> T:
        """Do it, or leave what is held back as it was; with nothing held back there is no next one."""
        assert self._before is not None
        self.state = self._before
        after, new = self.after, dict(self.new)
        try:
            return change(self.state.standing())
        except BaseException:
            self.after, self.new = after, new
            if not new:
                self._before = None
            raise

    def _holds_enough(self) -> bool:
        return (
            len(self.new) >= _ROWS_TOGETHER
            or len(self.after.dead) >= _DEAD_TOGETHER
            or sum(len(row["text"]) + len(row["metadata"]) for row in self.new.values())
            >= _BYTES_TOGETHER
        )

    def _commit(self) -> None:
        """The steps of which ``milvus/state.py`` tells; nothing where nothing is held back."""
        before, self._before = self._before, None
        if before is None:
            return
        after, self._cleaned = self.after, -1
        self.milvus.insert(before.table, list(self.new.values()))
        if not self._is_alone(before):
            self._delete_rows(before.table, [row["row"] for row in self.new.values()])
            raise CollectionBusyError(
                f"{self.milvus.shown}: another client is writing; nothing was changed here. Milvus "
                "has no locks: let one write at a time"
            )
        if after.dead:
            after = after._replace(disturbed=after.generation)
        self.states.append(after)
        self.state = after
        self.written = after.generation
        if after.disturbed == after.generation:
            self.states.wait_until_seen()
            self._purge(after)
        self.states.forget_before(before.generation)
        self._cleaned = after.generation

    def _is_alone(self, before: MilvusState) -> bool:
        """Whether nobody else has written; when this is told, all can see what was done so far.

        Of two who insert rows of the same generation, the later one sees those of the earlier one.
        """
        if self.states.newest().generation != before.generation:
            return False
        if not self.new and not before.dead:
            return True
        # What was deleted earlier has been seen when what was inserted later has.
        consistency = SESSION if self.new else STRONG
        born = f"born == {before.generation + 1}"
        return self.milvus.count(before.table, born, consistency=consistency) == len(self.new)

    def _purge(self, state: MilvusState) -> None:
        for table in state.tables():
            self._delete_rows(table, state.dead)

    def _delete_rows(self, table: str, rows: list[int]) -> None:
        if rows:
            self.milvus.delete(table, f"row in {json.dumps(rows)}")

    def _clean(self, state: MilvusState) -> None:
        """Mend what a client left that died: an index half exchanged, rows that do not count."""
        if state.generation == self._cleaned:
            return
        self.milvus.make_ready(state.table)
        lost = f"born > {state.generation}"
        if rows := self.milvus.query(state.table, lost, ["row"]):
            self._delete_rows(state.table, [int(row["row"]) for row in rows])
            self.milvus.count(state.table, lost)  # wait: their number will be that of others
        self._purge(state)
        self._cleaned = state.generation
