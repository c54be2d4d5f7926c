"""A collection in Milvus: embedded (milvus-lite), a server or a cluster."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection.columns import Column
from boltzhash.collection.filters import Condition, Contains, look_up, matches
from boltzhash.collection.keeping import check_coded, copy_to_folder
from boltzhash.collection.locations import Location
from boltzhash.collection.milvus.client import AT_ONCE, MOST_HITS, MOST_LISTS, STRONG, Milvus, Near
from boltzhash.collection.milvus.filters import commonest_values, expression_of, is_string
from boltzhash.collection.milvus.generations import Generations
from boltzhash.collection.milvus.rehash import Rehash
from boltzhash.collection.milvus.rows import (
    CODED,
    DOCUMENT,
    code_of,
    coded_of,
    document_of,
    key_of,
    row_of,
)
from boltzhash.collection.milvus.search import Searcher
from boltzhash.collection.milvus.state import BESIDE, MilvusState, StateTable
from boltzhash.collection.models import Coder
from boltzhash.collection.store import (
    FORMAT_VERSION,
    Counts,
    FieldValue,
    Found,
    Mask,
    OnBatch,
    Places,
    Rows,
    Standing,
    T,
    Write,
    exists_already,
    keeps_no_words,
    last_of_each,
    no_such_collection,
    refuse_taken,
    with_nearest_codes,
)
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id, Scalar, is_scalar
from boltzhash.encoding.coding import Coded, CodedQuery
from boltzhash.encoding.model_files import ModelFile
from boltzhash.errors import CollectionBusyError, CollectionError
from boltzhash.hashers import Hasher
from boltzhash.search.hits import Hit
from boltzhash.text.words import WordQuery, Words

_PAGE = 500  # documents fetched at a time
_CODES_PAGE = 10_000
_DELETES_AT_ONCE = 2_500  # rows that one state can name as dead


class MilvusStore:
    """One client. ``coder`` is given if the collection is to be made.

    Milvus has no locks, so there is nothing to ``wait`` for: a second writer is refused at once.
    """

    format_version = FORMAT_VERSION
    passages: int | None = None
    keeps_words = False

    def __init__(self, location: Location, wait: float, coder: Coder | None = None) -> None:
        self.shown = location.shown()
        self._name = location.name
        self._milvus = Milvus(location, self.shown)
        self._states = StateTable(self._milvus, f"{location.name}_state")
        self._generations = Generations(self._milvus, self._states)
        try:
            if coder is not None:
                self._create(coder)
            elif not self._states.exists():
                raise no_such_collection(self.shown)
        except BaseException:
            self._milvus.close()
            raise

    def _create(self, coder: Coder) -> None:
        if self._states.exists():
            raise exists_already(self.shown)
        table = f"{self._name}_documents_0"
        self._milvus.drop_table(table)  # of a client that died while it made one
        self._milvus.make_documents_table(table, coder.hasher.n_bits)
        first = MilvusState(
            0, 0, 0, coder.model, coder.hasher.n_bits, table, [], 0, looks_inside=True
        )
        self._states.create(first, coder)

    def close(self) -> None:
        self._milvus.close()

    def load_model(self, fingerprint: str) -> Hasher:
        return self._states.load_model(fingerprint)

    def read(self, answer: Callable[[Standing], T]) -> T:
        return self._generations.read(answer)

    def write(self, change: Callable[[Standing], T]) -> T:
        return self._generations.write(change)

    @property
    def written_generation(self) -> int | None:
        return self._generations.written

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

    def note_unfinished(self, note: dict[str, Any] | None) -> None:
        self._generations.after = self._generations.after._replace(unfinished=note)

    # Searching

    def top_k(
        self,
        code: Codes,
        k: int,
        conditions: list[Condition],
        *,
        effort: int | None = None,
        whole: bool = False,
    ) -> list[Hit]:
        if effort is None:
            return self._hits(self._searcher(code, conditions).top_k(k))
        if k > MOST_HITS:
            raise ValueError(
                f"approximate search in Milvus finds up to {MOST_HITS}, got k={k}: search exactly"
            )
        return self._hits(self._searcher(code, conditions, effort).nearest(k))

    def within(self, code: Codes, radius: int, conditions: list[Condition]) -> list[Hit]:
        return self._hits(self._searcher(code, conditions).within(radius))

    def ranked(
        self,
        query: CodedQuery,
        wanted: WordQuery,
        words: Words,
        k: int,
        conditions: list[Condition],
        *,
        by: str,
        whole: bool = False,
    ) -> Found:
        raise keeps_no_words(self.shown)

    def n_passing(self, conditions: list[Condition]) -> int:
        terms = [*self._state.counts(), *expression_of(conditions, self._rows_with)]
        return self._milvus.count(self._state.table, " and ".join(terms))

    def passing(self, conditions: list[Condition]) -> Mask:
        """Counted here: Milvus gives at most 16,384 rows at once, and does not say where to go on."""
        mask = np.zeros(self._state.last_place + 1, dtype=np.bool_)
        for place, metadata in self._metadata():
            mask[place] = matches(conditions, metadata)
        return mask

    def may_be_near(
        self, query: CodedQuery, words: Words, min_similarity: float
    ) -> Iterable[Document]:
        return with_nearest_codes(self, query)

    def _searcher(
        self,
        code: Codes,
        conditions: list[Condition],
        n_probe: int = MOST_LISTS,
    ) -> Searcher:
        """Looks at all lists where it is not told otherwise: exact, whatever index there is."""
        if conditions and not self._state.looks_inside:
            raise CollectionError(
                f"{self.shown} was made before filters looked into lists and objects: write its rows "
                "anew with collection.rehash(collection.hasher)"
            )
        asked = expression_of(conditions, self._rows_with)
        expressions = [*self._state.counts(), *asked]
        last_place = self._state.last_place
        return Searcher(self._milvus, self._state.table, code, expressions, last_place, n_probe)

    def _rows_with(self, condition: Contains) -> list[int]:
        """The rows whose field is a string with that part: all strings are read and looked into."""
        strings = [is_string(condition.field)]
        return [
            int(row["row"])
            for rows in self._pages(_CODES_PAGE, ["place", "row", "metadata"], strings)
            for row in rows
            if matches([condition], json.loads(row["metadata"]))
        ]

    def _hits(self, near: list[Near]) -> list[Hit]:
        rows = {one.row: one.fields for one in near if one.fields is not None}
        for consistency in (AT_ONCE, STRONG):  # they have been seen, so that none has to wait
            unseen = [one.row for one in near if one.row not in rows]
            rows.update(self._rows_at(unseen, consistency))
        for row in unseen:
            if row not in rows:  # deleted just now, so that this is asked again; or damage
                raise CollectionError(f"{self.shown} is damaged: row {row} is missing")
        found = ((one.distance, coded_of(rows[one.row])) for one in near)
        return [
            Hit(coded.document.id, distance, coded.document, coded.known, coded.code)
            for distance, coded in found
        ]

    def _rows_at(self, wanted: list[int], consistency: str) -> dict[int, dict[str, Any]]:
        rows: dict[int, dict[str, Any]] = {}
        for start in range(0, len(wanted), _PAGE):
            expression = f"row in {json.dumps(wanted[start : start + _PAGE])}"
            table = self._state.table
            found = self._milvus.query(table, expression, CODED, consistency=consistency)
            rows.update({int(row["row"]): row for row in found})
        return rows

    # Reading

    def find(self, ids: Sequence[Id]) -> dict[Id, Coded]:
        if not ids:
            return {}
        keys = json.dumps([key_of(id_) for id_ in ids])
        found = map(coded_of, self._generations.query([f"key in {keys}"], CODED))
        wanted = set(ids)
        return {coded.document.id: coded for coded in found if coded.document.id in wanted}

    def documents_at(self, places: Places) -> list[Document]:
        found = self._at(places, DOCUMENT)
        if missing := set(places.tolist()) - found.keys():
            raise CollectionError(
                f"{self.shown} is damaged: document number {min(missing)} is missing"
            )
        return [document_of(found[place]) for place in places.tolist()]

    def ids_at(self, places: Places) -> list[Id | None]:
        found = self._at(places, ["place", "id"])
        ids = {place: json.loads(row["id"]) for place, row in found.items()}
        return [ids.get(place) for place in places.tolist()]

    def _at(self, places: Places, fields: list[str]) -> dict[int, dict[str, Any]]:
        found: dict[int, dict[str, Any]] = {}
        for start in range(0, len(places), _PAGE):
            some = json.dumps(places[start : start + _PAGE].tolist())
            rows = self._generations.query([f"place in {some}"], fields)
            found.update({int(row["place"]): row for row in rows})
        return found

    def rows(self) -> Rows:
        found = [
            (int(row["place"]), code_of(row), bool(row["known"]))
            for rows in self._pages(_CODES_PAGE, ["place", "code", "known"])
            for row in rows
        ]
        codes = b"".join(code for _, code, _ in found)
        return Rows(
            np.array([place for place, _, _ in found], dtype=np.int64),
            np.frombuffer(codes, np.uint8).reshape(len(found), self._state.n_bits // 8),
            np.array([known for _, _, known in found], dtype=np.bool_),
        )

    def page(self, after: int, n: int) -> list[tuple[int, Coded]]:
        found: list[tuple[int, Coded]] = []
        while len(found) < n and after < self._state.last_place:
            places = [f"place > {after}", f"place <= {after + _PAGE}"]
            rows = sorted(self._generations.query(places, CODED), key=lambda row: int(row["place"]))
            found += [(int(row["place"]), coded_of(row)) for row in rows]
            after += _PAGE
        return found[:n]

    def latest(self, n: int) -> list[Coded]:
        found: list[Coded] = []
        last = self._state.last_place
        while len(found) < n and last > 0:
            places = [f"place > {last - _PAGE}", f"place <= {last}"]
            rows = sorted(self._generations.query(places, CODED), key=lambda row: int(row["place"]))
            found = [*map(coded_of, rows), *found]
            last -= _PAGE
        return found[-n:]

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

    def coded_here(self) -> Iterator[Coded]:
        for rows in self._pages(_PAGE, CODED):
            yield from map(coded_of, rows)

    def field_values(self, most: int) -> dict[str, list[FieldValue]]:
        """Counted here, as Milvus cannot."""
        metadata = (metadata for _, metadata in self._metadata())
        return commonest_values(metadata, most)

    def values_of(self, field: str) -> dict[int, Scalar]:
        found = ((place, look_up(metadata, field)) for place, metadata in self._metadata())
        return {place: value for place, value in found if is_scalar(value)}

    def column(self, field: str) -> Column:
        found = ((place, look_up(metadata, field)) for place, metadata in self._metadata())
        return Column.of(
            (place, value)
            for place, seen in found
            if seen is not None
            for value in (seen if isinstance(seen, list) else [seen])
        )

    def _metadata(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for rows in self._pages(_CODES_PAGE, ["place", "metadata"]):
            for row in rows:
                yield int(row["place"]), json.loads(row["metadata"])

    def _pages(
        self, page: int, fields: list[str], terms: Sequence[str] = ()
    ) -> Iterator[list[dict[str, Any]]]:
        """Rows that count and for which all terms hold, in the order of places."""
        for first in range(0, self._state.last_place, page):
            places = [f"place > {first}", f"place <= {first + page}"]
            rows = self._generations.query([*places, *terms], fields)
            yield sorted(rows, key=lambda row: int(row["place"]))

    # Keeping

    def counts(self) -> Counts:
        terms = ["known == false", *self._state.counts()]
        unknown = self._milvus.count(self._state.table, " and ".join(terms))
        following = self._state.next
        rehashed = self._milvus.count(following.table, "row >= 0") if following is not None else 0
        return Counts(unknown, rehashed)

    def sizes(self) -> dict[str, int]:
        return {}  # Milvus does not tell

    def check(self, hasher: Hasher) -> None:
        check_coded(self, self._state.standing(), hasher)

    def backup(self, target: Path) -> None:
        copy_to_folder(self, target)

    def save_files(self, name: str, files: Sequence[ModelFile]) -> None:
        self._states.save_files(BESIDE + name, files)

    def load_files(self, name: str) -> list[ModelFile]:
        return self._states.load_files(BESIDE + name)

    def files_version(self, name: str) -> str | None:
        digests = [file.sha256 for file in self.load_files(name)]
        return " ".join(digests) if digests else None

    def rehash(self, coder: Coder, batch: int, on_batch: OnBatch | None) -> None:
        Rehash(self._generations, self._name, coder).run(batch, on_batch)

    # Approximate search

    def build_index(self) -> tuple[dict[str, Any], list[int]]:
        if self._milvus.is_lite:
            raise ValueError(f"{self.shown}: milvus-lite has no approximate index, a server has")
        n = self.read(lambda standing: standing.n_documents)
        n_lists = max(1, min(MOST_LISTS, round(4 * math.sqrt(n))))
        about = {"index": "ivf", "n_lists": n_lists}
        self.note_approximate(about)  # without a recall: not to be searched until that is measured
        self._milvus.build_ivf(self._states.newest().table, n_lists)
        return about, [max(1, n_lists // part) for part in (16, 8, 4, 2)]

    def note_approximate(self, about: dict[str, Any]) -> None:
        def note(_: Standing) -> None:
            self._generations.after = self._generations.after._replace(approximate=about)

        self.write(note)
