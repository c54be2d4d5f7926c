"""Data frames of pandas and polars, and datasets of Hugging Face, as records.

They are told by what they offer; none of these libraries is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from boltzhash.corpus.records import CorpusError, Document, Fields, Record, Records, documents


class DataFrame(Protocol):
    """Of pandas or polars."""

    @property
    def columns(self) -> Any: ...


class Dataset(Protocol):
    """Of Hugging Face, streamed or not."""

    @property
    def column_names(self) -> Any: ...


Frame = DataFrame | Dataset


def column_names(source: Any) -> list[Any] | None:
    """The names of a frame's columns; None if it is no frame.

    A streamed dataset that does not know them has none.
    """
    if hasattr(source, "collect_schema") and not hasattr(source, "iter_rows"):
        raise TypeError(
            f"got a {type(source).__name__}, which is not computed yet: collect() it first"
        )
    if hasattr(source, "column_names") and isinstance(source, Mapping):
        raise TypeError(
            f"got a {type(source).__name__}, which has parts: choose one of "
            f"{', '.join(map(repr, source))}"
        )
    if hasattr(source, "column_names") and hasattr(source, "features"):
        return list(source.column_names or ())
    if hasattr(source, "columns") and (
        hasattr(source, "itertuples") or hasattr(source, "iter_rows")
    ):
        return list(source.columns)
    return None


def frame_documents(frame: Any, columns: Sequence[Any]) -> Iterator[Document]:
    """The documents of a frame with the columns id (or _id) and text; all others are metadata."""
    return documents(read_frame(frame, columns, fields := Fields(metadata=True)), fields)


def read_frame(frame: Any, columns: Sequence[Any], fields: Fields) -> Records:
    """The rows of a frame, each with its place, counted from 0 as the libraries do.

    Missing columns are an error at once.
    """
    kind = type(frame).__name__
    if columns or hasattr(frame, "columns"):
        _check_columns(columns, fields, kind)
    return ((row, f"{kind}, row {number}") for number, row in enumerate(_rows(frame, columns)))


def _rows(frame: Any, columns: Sequence[str]) -> Iterable[Record]:
    if hasattr(frame, "itertuples"):  # pandas
        values = zip(*(frame[name] for name in columns), strict=True)
        return (dict(zip(columns, row, strict=True)) for row in values)
    rows: Iterable[Record] = frame.iter_rows(named=True) if hasattr(frame, "iter_rows") else frame
    return rows  # of polars, or of a dataset


def _check_columns(columns: Sequence[Any], fields: Fields, kind: str) -> None:
    for name in columns:
        if not isinstance(name, str):
            raise CorpusError(f"{kind}: names of columns must be strings, got {name!r}")
        if columns.count(name) > 1:
            raise CorpusError(f"{kind}: expected one column {name!r}, got {columns.count(name)}")
    named = [(fields.text, "text_field=")]
    named += [(fields.id, "id_field=")] if fields.id is not None else []
    chosen = () if isinstance(fields.metadata, bool) else fields.metadata
    for name, option in [*named, *((name, "metadata=") for name in chosen)]:
        if name not in columns:
            raise CorpusError(
                f"{kind}: expected a column {name!r}, got the columns: "
                f"{', '.join(map(repr, columns)) or 'none'}; name another with {option} of read_corpus"
            )
