"""Going over to another model in Milvus: rows are copied with new codes into a table of their own."""

from __future__ import annotations

from collections.abc import Callable

from boltzhash.collection.milvus.generations import Generations
from boltzhash.collection.milvus.rows import DOCUMENT, coded_anew
from boltzhash.collection.milvus.state import NextTable
from boltzhash.collection.models import Coder
from boltzhash.collection.store import rehash_taken_over
from boltzhash.errors import CollectionError

_AT_ONCE = 4_096  # rows that a step copies, or a little more
_COPIED = [*DOCUMENT, "born", "key"]


class Rehash:
    """One rehash; ``name`` is that of the collection."""

    def __init__(self, generations: Generations, name: str, coder: Coder) -> None:
        self._generations = generations
        self._milvus = generations.milvus
        self._name = name
        self._coder = coder
        self._hasher = coder.hasher

    def run(self, batch: int, on_batch: Callable[[int, int], object] | None) -> None:
        """Copy all rows, generation by generation, and go over."""
        generations = self._generations
        if not generations.write(lambda _: self._start()):
            return
        while generations.write(lambda _: self._step(batch)):
            state = generations.state
            if on_batch is not None and state.next is not None:
                done = self._milvus.count(state.next.table, "row >= 0")
                on_batch(done, state.n_documents)
        old = generations.write(lambda _: self._switch())
        self._milvus.drop_table(old)

    def _start(self) -> bool:
        """Make the new table and note it; False where the rows are as this model's would be."""
        generations, fingerprint = self._generations, self._coder.model
        state = generations.state
        if state.model == fingerprint and state.looks_inside:
            return False
        if state.next is not None and state.next.model == fingerprint:
            return True
        if state.model != fingerprint:
            generations.states.save_model(self._coder)
        table = f"{self._name}_documents_{generations.after.generation}"
        self._milvus.drop_table(table)  # of one that died before it was noted
        self._milvus.make_documents_table(table, self._hasher.n_bits)
        following = NextTable(fingerprint, self._hasher.n_bits, table, 0)
        generations.after = generations.after._replace(next=following)
        return True

    def _step(self, batch: int) -> bool:
        """Copy the rows of some generations; False where none is left."""
        generations, following = self._generations, self._under_way()
        state = generations.state
        if following.copied == state.generation:
            return False
        if following.copied == 0:
            self._forget_earlier(following)
        upto = self._some_generations(following.copied)
        rows = generations.query([f"born > {following.copied}", f"born <= {upto}"], _COPIED)
        for start in range(0, len(rows), batch):
            some = [dict(row) for row in rows[start : start + batch]]
            self._milvus.upsert(following.table, coded_anew(self._hasher, some))
        # The generation that notes this has no rows of its own.
        copied = generations.after.generation if upto == state.generation else upto
        generations.after = generations.after._replace(next=following._replace(copied=copied))
        return True

    def _forget_earlier(self, following: NextTable) -> None:
        """Models and tables of rehashes that were given up: when the state names none of them."""
        state = self._generations.state
        self._generations.states.remove_models_but([state.model, following.model])
        for table in self._milvus.tables_numbered(f"{self._name}_documents_"):
            if table not in (state.table, following.table):
                self._milvus.drop_table(table)

    def _some_generations(self, copied: int) -> int:
        """Up to which one to copy, so that a step is neither one row nor all."""
        state, step = self._generations.state, 1
        while copied + step < state.generation:
            wider = f"born > {copied} and born <= {copied + 2 * step}"
            if self._milvus.count(state.table, wider) > _AT_ONCE:
                break
            step *= 2
        return min(copied + step, state.generation)

    def _switch(self) -> str:
        """Go over to the new table; the name of the old one."""
        generations, following = self._generations, self._under_way()
        state = generations.state
        n_there = self._milvus.count(following.table, "row >= 0")
        if n_there != state.n_documents:
            raise CollectionError(
                f"{self._milvus.shown}: the rehash has {n_there} codes of {state.n_documents} "
                "documents; the same call goes on"
            )
        generations.after = generations.after._replace(
            model=following.model,
            n_bits=following.n_bits,
            table=following.table,
            next=None,
            approximate=None,
            looks_inside=True,
            disturbed=generations.after.generation,
        )
        return state.table

    def _under_way(self) -> NextTable:
        following = self._generations.state.next
        if following is None or following.model != self._coder.model:
            raise rehash_taken_over(self._milvus.shown)
        return following
