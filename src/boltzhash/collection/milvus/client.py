"""What we ask of Milvus: tables with a binary vector, read strongly consistent; its errors as ours."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from boltzhash.codes import Codes
from boltzhash.collection.locations import Location
from boltzhash.errors import CollectionError, needs_extra

MOST_HITS = 16_384  # what Milvus gives at most in one answer
MOST_LISTS = 4_096  # of an approximate index; to look at so many is to look at all, exactly
LONGEST_TEXT = 65_535  # bytes of a VARCHAR
STRONG = "Strong"  # an answer has everything that was acknowledged before it was asked for
AT_ONCE = "Eventually"  # an answer may lack what is new
_INSERT_BYTES = 8 << 20  # in one message
# milvus-lite hangs up on a client that, as pymilvus does, asks every ten seconds whether it is there.
_WITHOUT_PINGS = {"grpc.keepalive_time_ms": 2**31 - 1, "grpc.keepalive_permit_without_calls": 0}


class Near(NamedTuple):
    """One row of a search, in the order in which answers are sorted."""

    distance: int
    place: int
    row: int


class Milvus:
    """A connection; ``shown`` names the collection in messages."""

    def __init__(self, location: Location, shown: str) -> None:
        try:
            self._pymilvus: Any = importlib.import_module("pymilvus")
        except ImportError:
            raise needs_extra("a collection in Milvus", "pymilvus", "milvus") from None
        self._location = location
        self.shown = shown
        self.is_lite = not urlsplit(location.url).hostname
        with self.plain_errors():
            self._client = self._pymilvus.MilvusClient(**_arguments(location))

    def close(self) -> None:
        self._client.close()

    @contextmanager
    def plain_errors(self) -> Iterator[None]:
        """Milvus's errors as ours, with the collection named and nothing of the URL in them."""
        try:
            yield
        except self._pymilvus.MilvusException as error:
            told = self._location.without_secrets(str(error)).strip()
            unreachable = isinstance(error, self._pymilvus.MilvusUnavailableException)
            kind = ConnectionError if unreachable else CollectionError
            raise kind(f"{self.shown}: {told}") from None

    # Tables

    def has_table(self, table: str) -> bool:
        with self.plain_errors():
            return bool(self._client.has_collection(table))

    def make_state_table(self, table: str) -> None:
        kinds = self._pymilvus.DataType
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("number", kinds.INT64, is_primary=True)
        schema.add_field("contents", kinds.VARCHAR, max_length=LONGEST_TEXT)
        schema.add_field("code", kinds.BINARY_VECTOR, dim=8)  # there must be one
        self._make(table, schema)

    def make_documents_table(self, table: str, n_bits: int) -> None:
        kinds = self._pymilvus.DataType
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("row", kinds.INT64, is_primary=True)
        for name in ("place", "born", "key"):
            schema.add_field(name, kinds.INT64)
        schema.add_field("known", kinds.BOOL)
        for name in ("id", "text", "metadata"):
            schema.add_field(name, kinds.VARCHAR, max_length=LONGEST_TEXT)
        schema.add_field("fields", kinds.JSON)
        schema.add_field("code", kinds.BINARY_VECTOR, dim=n_bits)
        self._make(table, schema)

    def _make(self, table: str, schema: Any) -> None:
        with self.plain_errors():
            self._client.create_collection(
                table,
                schema=schema,
                index_params=self._index("BIN_FLAT"),
                consistency_level=STRONG,
            )

    def _index(self, kind: str, **parameters: int) -> Any:
        index = self._client.prepare_index_params()
        index.add_index("code", index_type=kind, metric_type="HAMMING", params=parameters)
        return index

    def drop_table(self, table: str) -> None:
        """If there is one."""
        with self.plain_errors():
            if self._client.has_collection(table):
                self._client.drop_collection(table)

    def build_ivf(self, table: str, n_lists: int) -> None:
        """Put another index in the place of the flat one, and wait until it is complete."""
        with self.plain_errors():
            self._client.flush(table)
            self._client.release_collection(table)
            self._client.drop_index(table, "code")
            index = self._index("BIN_IVF_FLAT", nlist=n_lists)
            self._client.create_index(table, index, sync=True)  # returns when it is built
            self._client.load_collection(table)

    def make_ready(self, table: str) -> None:
        """Where a client died in :meth:`build_ivf`: an index, if there is none, and loaded."""
        if self.is_lite:
            return  # which has no other index
        with self.plain_errors():
            if not self._client.list_indexes(table):
                self._client.create_index(table, self._index("BIN_FLAT"), sync=True)
            if self._client.get_load_state(table)["state"].name != "Loaded":
                self._client.load_collection(table)

    def tables_numbered(self, prefix: str) -> list[str]:
        """The tables called ``prefix`` and a number."""
        with self.plain_errors():
            names = [str(name) for name in self._client.list_collections()]
        return [name for name in names if re.fullmatch(rf"{re.escape(prefix)}[0-9]+", name)]

    # Rows

    def insert(self, table: str, rows: list[dict[str, Any]]) -> None:
        with self.plain_errors():
            for some in _portions(rows):
                self._client.insert(table, some)

    def upsert(self, table: str, rows: list[dict[str, Any]]) -> None:
        with self.plain_errors():
            for some in _portions(rows):
                self._client.upsert(table, some)

    def delete(self, table: str, expression: str) -> None:
        with self.plain_errors():
            self._client.delete(table, filter=expression)

    def query(
        self, table: str, expression: str, fields: list[str], *, consistency: str = STRONG
    ) -> list[dict[str, Any]]:
        with self.plain_errors():
            found = self._client.query(
                table, filter=expression, output_fields=fields, consistency_level=consistency
            )
        return list(found)

    def count(self, table: str, expression: str) -> int:
        return int(self.query(table, expression, ["count(*)"])[0]["count(*)"])

    def search(
        self,
        table: str,
        code: Codes,
        expression: str,
        limit: int,
        *,
        radius: int | None = None,
        n_probe: int,
    ) -> list[Near]:
        """The nearest in any order among ties; with ``radius`` only those at most that far."""
        parameters = {"nprobe": n_probe}
        if radius is not None:
            parameters["radius"] = radius + 1  # Milvus means: nearer than
        with self.plain_errors():
            (hits,) = self._client.search(
                table,
                [code.tobytes()],
                anns_field="code",
                filter=expression,
                limit=limit,
                search_params={"metric_type": "HAMMING", "params": parameters},
                output_fields=["place"],
                consistency_level=STRONG,
            )
        return [Near(int(hit["distance"]), hit["entity"]["place"], hit["id"]) for hit in hits]


def _arguments(location: Location) -> dict[str, Any]:
    """How pymilvus names what the URL says; a token may come from MILVUS_TOKEN."""
    parts = urlsplit(location.url)
    if not parts.hostname:
        if not parts.path.endswith(".db"):
            raise ValueError("url: milvus-lite wants milvus:///path/to/file.db")
        folder = Path(unquote(parts.path)).parent
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder}: the folder of a milvus-lite file must be there")
        return {"uri": unquote(parts.path), "grpc_options": _WITHOUT_PINGS}
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    scheme = "https" if options.get("secure") == "true" else "http"
    arguments = {
        "uri": f"{scheme}://{parts.hostname}:{parts.port or 19530}",
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "token": options.get("token") or os.environ.get("MILVUS_TOKEN", ""),
        "db_name": parts.path.strip("/"),
    }
    return {name: value for name, value in arguments.items() if value}


def _portions(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The rows in messages that are not too long."""
    some: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        some.append(row)
        size += sum(len(value) for value in row.values() if isinstance(value, str | bytes))
        if size > _INSERT_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some
