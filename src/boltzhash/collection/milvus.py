"""A collection in Milvus: embedded (milvus-lite), a server or a cluster.

How writes become whole without transactions is told in ``milvus_state``. Milvus has no locks either:
one client may write at a time, and two that do so at once are refused where they notice each other.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection.addresses import Address
from boltzhash.collection.codes_file import Rows
from boltzhash.collection.documents import Id
from boltzhash.collection.filters import Condition
from boltzhash.collection.milvus_client import AT_ONCE, STRONG, Hit, Milvus
from boltzhash.collection.milvus_filters import expression_of
from boltzhash.collection.milvus_rows import coded_anew, document_of, key_of, row_of
from boltzhash.collection.milvus_search import Searcher
from boltzhash.collection.milvus_state import MilvusState, NextTable, StateTable
from boltzhash.collection.store import Found, Standing, T
from boltzhash.collection.writes import Coded
from boltzhash.corpus import Document
from boltzhash.errors import CollectionBusyError, CollectionError, DuplicateIdError
from boltzhash.hashers import Hasher

_ATTEMPTS = 20  # to read while others delete
_PAGE = 500  # documents fetched at a time
_CODES_PAGE = 10_000
_DELETES_AT_ONCE = 2_500  # rows that one state can name as dead
_COPY = 4_096  # rows that a step of a rehash copies, or a little more
_DOCUMENT = ["row", "place", "id", "text", "metadata"]
_COPIED = [*_DOCUMENT, "born", "key", "fields"]


class MilvusStore:
    """One client. ``hasher`` is given where the collection is to be made."""

    def __init__(self, address: Address, name: str, hasher: Hasher | None) -> None:
        self.shown = f"{address.shown()}, collection {name}"
        self._milvus = Milvus(address, self.shown)
        self._name = name
        self._states = StateTable(self._milvus, f"{name}_state")
        self._cleaned = -1  # the generation up to which nothing is left over
        self._state: MilvusState  # in use by read or write
        try:
            if hasher is not None:
                self._create(hasher)
            elif not self._states.exists():
                raise CollectionError(
                    f"{self.shown}: there is no such collection; create=True makes it"
                )
        except BaseException:
            self._milvus.close()
            raise

    def _create(self, hasher: Hasher) -> None:
        if self._states.exists():
            raise FileExistsError(
                f"{self.shown} is there already: connect without create, or drop it first"
            )
        table = f"{self._name}_documents_0"
        self._milvus.make_documents_table(table, hasher.n_bits)
        first = MilvusState(0, 0, 0, hasher.fingerprint(), hasher.n_bits, table, [], 0)
        self._states.create(first, hasher)

    def close(self) -> None:
        self._milvus.close()

    def load_model(self, fingerprint: str) -> Hasher:
        return self._states.load_model(fingerprint)

    # Generations

    def read(self, answer: Callable[[Standing], T]) -> T:
        """Begins with the generation seen last, without asking: it mostly is the newest still.

        What Milvus is asked strongly consistent takes a tick of its clock, so it is asked once, at the
        end. An answer of a generation that was the newest when it began also holds where others have
        added meanwhile; where they took rows away it may lack some.
        """
        state, is_new = self._states.last or self._states.newest(), False
        for _ in range(_ATTEMPTS):
            self._state = state
            failure: Exception | None = None
            try:
                found = answer(state.standing())
            except Exception as error:
                failure = error
            now = self._states.newest()
            undisturbed = now.disturbed == state.disturbed
            if now.generation == state.generation or (is_new and undisturbed):
                if failure is not None:
                    raise failure
                return found
            state, is_new = now, True
        raise CollectionBusyError(
            f"{self.shown}: documents were overwritten or deleted in each of {_ATTEMPTS} attempts to "
            "read; try again when less is written"
        )

    def write(self, change: Callable[[Standing], T]) -> T:
        state = self._state = self._states.newest()
        self._clean(state)
        self._new: list[dict[str, Any]] = []
        self._after = state._replace(generation=state.generation + 1, dead=[])
        done = change(state.standing())
        self._commit(self._state)
        return done

    def _commit(self, before: MilvusState) -> None:
        after = self._after
        self._milvus.insert(before.table, self._new)
        born = f"born == {after.generation}"
        n_there = self._milvus.count(before.table, born) if self._new else 0
        if n_there != len(self._new) or self._states.newest().generation != before.generation:
            self._delete_rows(before.table, [row["row"] for row in self._new])
            raise CollectionBusyError(
                f"{self.shown}: another client is writing; nothing was changed here. Milvus has no "
                "locks: let one write at a time"
            )
        if after.dead:
            after = after._replace(disturbed=after.generation)
        self._states.append(after)
        self._state = after
        self._purge(after)
        self._states.forget_before(after.generation)
        self._cleaned = after.generation

    def _purge(self, state: MilvusState) -> None:
        for table in state.tables():
            self._delete_rows(table, state.dead)

    def _delete_rows(self, table: str, rows: list[int]) -> None:
        if rows:
            self._milvus.delete(table, f"row in {json.dumps(rows)}")

    def _clean(self, state: MilvusState) -> None:
        """Remove what a client left that died: rows that never counted, and rows that no longer do."""
        if state.generation != self._cleaned:
            self._milvus.delete(state.table, f"born > {state.generation}")
            self._purge(state)
            self._cleaned = state.generation

    # Writing

    def add(self, batch: list[Coded]) -> None:
        taken = self._rows_of([coded.document.id for coded in batch])
        seen: set[Id] = set()
        for coded in batch:
            id_ = coded.document.id
            if id_ in taken or id_ in seen:
                raise DuplicateIdError(
                    f"the id {id_!r} is in the collection already; nothing of its batch was added"
                )
            seen.add(id_)
        self._put({coded.document.id: coded for coded in batch}, {})

    def upsert(self, batch: list[Coded]) -> None:
        last = {coded.document.id: coded for coded in batch}  # in the order of the first
        there = self._rows_of(list(last))
        self._after.dead.extend(row for row, _ in there.values())
        self._put(last, {id_: place for id_, (_, place) in there.items()})

    def delete(self, ids: list[Id]) -> int:
        """All at once, or 2,500 a generation where there are more."""
        n = 0
        for start in range(0, len(ids), _DELETES_AT_ONCE):
            if start:
                self._commit(self._state)
                self._after = self._state._replace(generation=self._state.generation + 1, dead=[])
            there = self._rows_of(ids[start : start + _DELETES_AT_ONCE])
            self._after.dead.extend(row for row, _ in there.values())
            count = self._after.n_documents - len(there)
            self._after = self._after._replace(n_documents=count)
            n += len(there)
        return n

    def _put(self, new: dict[Id, Coded], places: dict[Id, int]) -> None:
        """Rows of the coming generation; those without a place get the next ones."""
        last_place, generation = self._after.last_place, self._after.generation
        number = secrets.randbits(50) << 12  # so that two writers never have the same
        for id_, coded in new.items():
            place = places.get(id_)
            if place is None:
                last_place += 1
                place = last_place
            number += 1
            self._new.append({"row": number, "born": generation, **row_of(place, coded)})
        n_documents = self._after.n_documents + len(new) - len(places)
        self._after = self._after._replace(last_place=last_place, n_documents=n_documents)

    def _rows_of(self, ids: list[Id]) -> dict[Id, tuple[int, int]]:
        """The row and the place of each id that is there."""
        if not ids:
            return {}
        keys = json.dumps([key_of(id_) for id_ in ids])
        found = self._query([f"key in {keys}"], ["row", "place", "id"])
        wanted = set(ids)
        rows = {json.loads(row["id"]): (int(row["row"]), int(row["place"])) for row in found}
        return {id_: row for id_, row in rows.items() if id_ in wanted}

    def _query(self, terms: list[str], fields: list[str]) -> list[dict[str, Any]]:
        expression = " and ".join([*terms, *self._state.counts()])
        return self._milvus.query(self._state.table, expression, fields)

    # Reading

    def top_k(
        self, code: Codes, k: int, conditions: list[Condition], *, approximate: bool
    ) -> list[Found]:
        about = self._state.approximate
        n_probe = None
        if about is not None:
            n_probe = about["n_probe"] if approximate else about["n_lists"]
        searcher = self._searcher(code, conditions, n_probe)
        return self._found(searcher.nearest(k) if approximate else searcher.top_k(k))

    def within(self, code: Codes, radius: int, conditions: list[Condition]) -> list[Found]:
        return self._found(self._searcher(code, conditions, self._all_lists()).within(radius))

    def has_known_within(self, code: Codes, radius: int) -> bool:
        searcher = self._searcher(code, [], self._all_lists(), ["known == true"])
        return bool(searcher.any_within(radius))

    def _all_lists(self) -> int | None:
        about = self._state.approximate
        return about["n_lists"] if about is not None else None

    def _searcher(
        self,
        code: Codes,
        conditions: list[Condition],
        n_probe: int | None,
        terms: list[str] | None = None,
    ) -> Searcher:
        expressions = [*self._state.counts(), *expression_of(conditions), *(terms or [])]
        last_place = self._state.last_place
        return Searcher(self._milvus, self._state.table, code, expressions, last_place, n_probe)

    def _found(self, hits: list[Hit]) -> list[Found]:
        rows = self._rows_at([hit.row for hit in hits], AT_ONCE)  # they have been seen: no waiting
        unseen = [hit.row for hit in hits if hit.row not in rows]
        rows.update(self._rows_at(unseen, STRONG))
        for row in unseen:
            if row not in rows:  # deleted just now, so that this is asked again; or damage
                raise CollectionError(f"{self.shown} is damaged: row {row} is missing")
        return [Found(hit.distance, document_of(rows[hit.row])) for hit in hits]

    def _rows_at(self, wanted: list[int], consistency: str) -> dict[int, dict[str, Any]]:
        rows: dict[int, dict[str, Any]] = {}
        for start in range(0, len(wanted), _PAGE):
            expression = f"row in {json.dumps(wanted[start : start + _PAGE])}"
            table = self._state.table
            found = self._milvus.query(table, expression, _DOCUMENT, consistency=consistency)
            rows.update({int(row["row"]): row for row in found})
        return rows

    def rows(self) -> Rows:
        found = [
            (int(row["place"]), bytes(row["code"][0]), bool(row["known"]))
            for rows in self._pages(_CODES_PAGE, ["place", "code", "known"])
            for row in rows
        ]
        codes = b"".join(code for _, code, _ in found)
        return Rows(
            np.array([place for place, _, _ in found], dtype=np.int64),
            np.frombuffer(codes, np.uint8).reshape(len(found), self._state.n_bits // 8),
            np.array([known for _, _, known in found], dtype=np.bool_),
        )

    def ids(self) -> dict[int, Id]:
        pages = self._pages(_CODES_PAGE, ["place", "id"])
        return {int(row["place"]): json.loads(row["id"]) for rows in pages for row in rows}

    def find(self, id_: Id) -> Document | None:
        for row in self._query([f"key == {key_of(id_)}"], _DOCUMENT):
            if json.loads(row["id"]) == id_:
                return document_of(row)
        return None

    def documents(self) -> Iterator[Document]:
        """All, in the order of insertion; ends with an error where others take rows away meanwhile."""
        state = self._states.newest()
        for first in range(0, state.last_place, _PAGE):
            terms = [f"place > {first}", f"place <= {first + _PAGE}", *state.counts()]
            rows = self._milvus.query(state.table, " and ".join(terms), _DOCUMENT)
            if self._states.newest().disturbed != state.disturbed:
                raise CollectionBusyError(
                    f"{self.shown}: documents were overwritten or deleted while all were being read"
                )
            yield from map(document_of, sorted(rows, key=lambda row: int(row["place"])))

    def _pages(self, page: int, fields: list[str]) -> Iterator[list[dict[str, Any]]]:
        """Rows that count, in the order of places."""
        for first in range(0, self._state.last_place, page):
            rows = self._query([f"place > {first}", f"place <= {first + page}"], fields)
            yield sorted(rows, key=lambda row: int(row["place"]))

    def count(self) -> int:
        return self._milvus.count(self._state.table, " and ".join(self._state.counts()))

    def sizes(self) -> dict[str, int]:
        return {}  # Milvus does not tell

    # Another model

    def rehash(
        self, hasher: Hasher, batch: int, on_batch: Callable[[int, int], object] | None
    ) -> None:
        """Copy all rows with new codes into a new table, generation by generation, and go over."""
        if not self.write(lambda _: self._start_rehash(hasher)):
            return
        while self.write(lambda _: self._rehash_step(hasher, batch)):
            if on_batch is not None and self._state.next is not None:
                done = self._milvus.count(self._state.next.table, "row >= 0")
                on_batch(done, self._state.n_documents)
        old = self.write(lambda _: self._switch(hasher))
        if old is not None:
            self._milvus.drop_table(old)

    def _start_rehash(self, hasher: Hasher) -> bool:
        state, fingerprint = self._state, hasher.fingerprint()
        if state.model == fingerprint:
            return False
        if state.next is None or state.next.model != fingerprint:
            if state.next is not None and self._milvus.has_table(state.next.table):
                self._milvus.drop_table(state.next.table)
            self._states.remove_models_but(state.model)
            self._states.save_model(hasher)
            table = f"{self._name}_documents_{self._after.generation}"
            if self._milvus.has_table(table):  # of one that died before it was noted
                self._milvus.drop_table(table)
            self._milvus.make_documents_table(table, hasher.n_bits)
            following = NextTable(fingerprint, hasher.n_bits, table, 0)
            self._after = self._after._replace(next=following)
        return True

    def _rehash_step(self, hasher: Hasher, batch: int) -> bool:
        """Copy the rows of some generations; False where none is left."""
        state, following = self._state, self._rehash_under_way(hasher)
        if following.copied == state.generation:
            return False
        upto = self._some_generations(following.copied)
        rows = self._query([f"born > {following.copied}", f"born <= {upto}"], _COPIED)
        for start in range(0, len(rows), batch):
            some = [dict(row) for row in rows[start : start + batch]]
            self._milvus.upsert(following.table, coded_anew(hasher, some))
        # The generation that notes this has no rows of its own.
        copied = self._after.generation if upto == state.generation else upto
        self._after = self._after._replace(next=following._replace(copied=copied))
        return True

    def _some_generations(self, copied: int) -> int:
        """Up to which one to copy, so that a step is neither one row nor all."""
        step = 1
        while copied + step < self._state.generation:
            wider = f"born > {copied} and born <= {copied + 2 * step}"
            if self._milvus.count(self._state.table, wider) > _COPY:
                break
            step *= 2
        return min(copied + step, self._state.generation)

    def _rehash_under_way(self, hasher: Hasher) -> NextTable:
        following = self._state.next
        if following is None or following.model != hasher.fingerprint():
            raise CollectionError(f"{self.shown}: another rehash has taken over from this one")
        return following

    def _switch(self, hasher: Hasher) -> str:
        """Go over to the new table; the name of the old one."""
        state, following = self._state, self._rehash_under_way(hasher)
        n_there = self._milvus.count(following.table, "row >= 0")
        if n_there != state.n_documents:
            raise CollectionError(
                f"{self.shown}: the rehash has {n_there} codes of {state.n_documents} documents; the "
                "same call goes on"
            )
        self._after = self._after._replace(
            model=following.model,
            n_bits=following.n_bits,
            table=following.table,
            next=None,
            approximate=None,
            disturbed=self._after.generation,
        )
        return state.table

    # Approximate search

    def build_index(self) -> dict[str, Any]:
        if self._milvus.is_lite:
            raise ValueError(f"{self.shown}: milvus-lite has no approximate index, a server has")
        n = self.read(lambda standing: standing.n_documents)
        n_lists = max(1, min(4096, round(4 * math.sqrt(n))))
        self._milvus.build_ivf(self._states.newest().table, n_lists)
        about = {"index": "ivf", "n_lists": n_lists, "n_probe": max(1, n_lists // 16)}
        self.note_approximate(about)
        return about

    def note_approximate(self, about: dict[str, Any]) -> None:
        def note(_: Standing) -> None:
            self._after = self._after._replace(approximate=about)

        self.write(note)
