"""A collection in Milvus: embedded (milvus-lite), a server or a cluster."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection.addresses import Address
from boltzhash.collection.documents import Id
from boltzhash.collection.filters import Condition
from boltzhash.collection.milvus.client import AT_ONCE, MOST_HITS, MOST_LISTS, STRONG, Hit, Milvus
from boltzhash.collection.milvus.filters import expression_of
from boltzhash.collection.milvus.generations import Generations
from boltzhash.collection.milvus.rehash import Rehash
from boltzhash.collection.milvus.rows import DOCUMENT, document_of, key_of, row_of
from boltzhash.collection.milvus.search import Searcher
from boltzhash.collection.milvus.state import MilvusState, StateTable
from boltzhash.collection.sqlite.codes_file import Rows
from boltzhash.collection.store import (
    Found,
    Standing,
    T,
    Write,
    last_of_each,
    no_such_collection,
    refuse_taken,
)
from boltzhash.corpus import Document
from boltzhash.encoding.coding import Coded
from boltzhash.errors import CollectionBusyError, CollectionError
from boltzhash.hashers import Hasher

_PAGE = 500  # documents fetched at a time
_CODES_PAGE = 10_000
_DELETES_AT_ONCE = 2_500  # rows that one state can name as dead


class MilvusStore:
    """One client. ``hasher`` is given where the collection is to be made."""

    def __init__(self, address: Address, name: str, hasher: Hasher | None) -> None:
        self.shown = f"{address.shown()}, collection {name}"
        self._name = name
        self._milvus = Milvus(address, self.shown)
        self._states = StateTable(self._milvus, f"{name}_state")
        self._generations = Generations(self._milvus, self._states)
        try:
            if hasher is not None:
                self._create(hasher)
            elif not self._states.exists():
                raise no_such_collection(self.shown)
        except BaseException:
            self._milvus.close()
            raise

    def _create(self, hasher: Hasher) -> None:
        if self._states.exists():
            raise FileExistsError(
                f"{self.shown} is there already: connect without create, or drop it first"
            )
        table = f"{self._name}_documents_0"
        self._milvus.drop_table(table)  # of a client that died while it made one
        self._milvus.make_documents_table(table, hasher.n_bits)
        first = MilvusState(0, 0, 0, hasher.fingerprint(), hasher.n_bits, table, [], 0)
        self._states.create(first, hasher)

    def close(self) -> None:
        self._milvus.close()

    def load_model(self, fingerprint: str) -> Hasher:
        return self._states.load_model(fingerprint)

    def read(self, answer: Callable[[Standing], T]) -> T:
        return self._generations.read(answer)

    def write(self, change: Callable[[Standing], T]) -> T:
        return self._generations.write(change)

    def together(self) -> AbstractContextManager[Write]:
        return self._generations.together()

    @property
    def _state(self) -> MilvusState:
        return self._generations.state

    # Writing

    def add(self, batch: list[Coded]) -> None:
        ids = [coded.document.id for coded in batch]
        refuse_taken(batch, self._rows_of(ids).keys() | self._generations.new.keys())
        self._put({coded.document.id: coded for coded in batch}, {})

    def upsert(self, batch: list[Coded]) -> None:
        last, new = last_of_each(batch), self._generations.new
        held = {id_: int(new[id_]["place"]) for id_ in last if id_ in new}
        there = self._rows_of([id_ for id_ in last if id_ not in held])
        self._die(there)
        self._put(last, held | {id_: place for id_, (_, place) in there.items()})

    def delete(self, ids: list[Id]) -> int:
        """All at once, or 2,500 a generation where there are more."""
        n = 0
        for start in range(0, len(ids), _DELETES_AT_ONCE):
            if start:
                self._generations.commit_and_go_on()
            there = self._rows_of(ids[start : start + _DELETES_AT_ONCE])
            self._die(there)
            after = self._generations.after
            self._generations.after = after._replace(n_documents=after.n_documents - len(there))
            n += len(there)
        return n

    def _die(self, there: dict[Id, tuple[int, int]]) -> None:
        after = self._generations.after
        dead = [*after.dead, *(row for row, _ in there.values())]
        self._generations.after = after._replace(dead=dead)

    def _put(self, new: dict[Id, Coded], places: dict[Id, int]) -> None:
        """Rows of the coming generation; those without a place get the next ones."""
        after = self._generations.after
        last_place = after.last_place
        number = secrets.randbits(50) << 12  # so that two writers never have the same
        for id_, coded in new.items():
            place = places.get(id_)
            if place is None:
                last_place += 1
                place = last_place
            number += 1
            row = {"row": number, "born": after.generation, **row_of(place, coded)}
            self._generations.new[id_] = row
        n_documents = after.n_documents + len(new) - len(places)
        self._generations.after = after._replace(last_place=last_place, n_documents=n_documents)

    def _rows_of(self, ids: list[Id]) -> dict[Id, tuple[int, int]]:
        """The row and the place of each id that is there."""
        if not ids:
            return {}
        keys = json.dumps([key_of(id_) for id_ in ids])
        found = self._generations.query([f"key in {keys}"], ["row", "place", "id"])
        wanted = set(ids)
        rows = {json.loads(row["id"]): (int(row["row"]), int(row["place"])) for row in found}
        return {id_: row for id_, row in rows.items() if id_ in wanted}

    # Reading

    def top_k(
        self, code: Codes, k: int, conditions: list[Condition], *, approximate: bool
    ) -> list[Found]:
        if not approximate:
            return self._found(self._searcher(code, conditions).top_k(k))
        if k > MOST_HITS:
            raise ValueError(
                f"approximate search in Milvus finds up to {MOST_HITS}, got k={k}: search exactly"
            )
        about = self._state.approximate
        n_probe = about["n_probe"] if about is not None else MOST_LISTS
        return self._found(self._searcher(code, conditions, n_probe).nearest(k))

    def within(self, code: Codes, radius: int, conditions: list[Condition]) -> list[Found]:
        return self._found(self._searcher(code, conditions).within(radius))

    def has_known_within(self, code: Codes, radius: int) -> bool:
        return bool(self._searcher(code, [], terms=["known == true"]).any_within(radius))

    def _searcher(
        self,
        code: Codes,
        conditions: list[Condition],
        n_probe: int = MOST_LISTS,
        terms: list[str] | None = None,
    ) -> Searcher:
        """Looks at all lists where it is not told otherwise: exact, whatever index there is."""
        expressions = [*self._state.counts(), *expression_of(conditions), *(terms or [])]
        last_place = self._state.last_place
        return Searcher(self._milvus, self._state.table, code, expressions, last_place, n_probe)

    def _found(self, hits: list[Hit]) -> list[Found]:
        rows = {hit.row: hit.fields for hit in hits if hit.fields is not None}
        for consistency in (AT_ONCE, STRONG):  # they have been seen, so that none has to wait
            unseen = [hit.row for hit in hits if hit.row not in rows]
            rows.update(self._rows_at(unseen, consistency))
        for row in unseen:
            if row not in rows:  # deleted just now, so that this is asked again; or damage
                raise CollectionError(f"{self.shown} is damaged: row {row} is missing")
        return [Found(hit.distance, document_of(rows[hit.row])) for hit in hits]

    def _rows_at(self, wanted: list[int], consistency: str) -> dict[int, dict[str, Any]]:
        rows: dict[int, dict[str, Any]] = {}
        for start in range(0, len(wanted), _PAGE):
            expression = f"row in {json.dumps(wanted[start : start + _PAGE])}"
            table = self._state.table
            found = self._milvus.query(table, expression, DOCUMENT, consistency=consistency)
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
        for row in self._generations.query([f"key == {key_of(id_)}"], DOCUMENT):
            if json.loads(row["id"]) == id_:
                return document_of(row)
        return None

    def documents(self) -> Iterator[Document]:
        """All, in the order of insertion; ends with an error where others take rows away meanwhile."""
        reading = self._milvus.reading
        state = self._states.newest(reading)
        for first in range(0, state.last_place, _PAGE):
            terms = [f"place > {first}", f"place <= {first + _PAGE}", *state.counts()]
            expression = " and ".join(terms)
            rows = self._milvus.query(state.table, expression, DOCUMENT, consistency=reading)
            if self._states.newest(reading).disturbed != state.disturbed:
                raise CollectionBusyError(
                    f"{self.shown}: documents were overwritten or deleted while all were being read"
                )
            yield from map(document_of, sorted(rows, key=lambda row: int(row["place"])))

    def documents_here(self) -> Iterator[Document]:
        for rows in self._pages(_PAGE, DOCUMENT):
            yield from map(document_of, rows)

    def _pages(self, page: int, fields: list[str]) -> Iterator[list[dict[str, Any]]]:
        """Rows that count, in the order of places."""
        for first in range(0, self._state.last_place, page):
            terms = [f"place > {first}", f"place <= {first + page}"]
            rows = self._generations.query(terms, fields)
            yield sorted(rows, key=lambda row: int(row["place"]))

    def count(self) -> int:
        expression = " and ".join(self._state.counts())
        return self._milvus.count(self._state.table, expression, consistency=self._milvus.reading)

    def sizes(self) -> dict[str, int]:
        return {}  # Milvus does not tell

    def rehash(
        self, hasher: Hasher, batch: int, on_batch: Callable[[int, int], object] | None
    ) -> None:
        Rehash(self._generations, self._name, hasher).run(batch, on_batch)

    # Approximate search

    def build_index(self) -> dict[str, Any]:
        if self._milvus.is_lite:
            raise ValueError(f"{self.shown}: milvus-lite has no approximate index, a server has")
        n = self.read(lambda standing: standing.n_documents)
        n_lists = max(1, min(MOST_LISTS, round(4 * math.sqrt(n))))
        about = {"index": "ivf", "n_lists": n_lists, "n_probe": max(1, n_lists // 16)}
        self.note_approximate(about)  # without a recall: not to be searched until that is measured
        self._milvus.build_ivf(self._states.newest().table, n_lists)
        return about

    def note_approximate(self, about: dict[str, Any]) -> None:
        def note(_: Standing) -> None:
            self._generations.after = self._generations.after._replace(approximate=about)

        self.write(note)
