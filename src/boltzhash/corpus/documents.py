"""What users hand in, checked before anything is written: ids, texts, metadata."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard, cast

import numpy as np

from boltzhash.corpus import Document
from boltzhash.corpus.frames import Frame, column_names, frame_documents
from boltzhash.corpus.records import check_characters

Id = str | int
Scalar = str | int | float | bool

_LARGEST = 2**63 - 1


Documents = Iterable[Document | Mapping[str, Any]] | Frame


def checked_documents(documents: Documents) -> Iterator[Document]:
    """Documents from dicts or :class:`Document`s, one by one; raises at the first that is not one.

    Or the rows of a data frame or dataset: :func:`boltzhash.corpus.frames.frame_documents`.

    >>> next(checked_documents([{"id": 7, "text": "a", "metadata": {"year": 2020}}]))
    Document(id=7, text='a', metadata={'year': 2020})
    """
    columns = column_names(documents)
    if isinstance(documents, str | bytes | Mapping | Document):
        raise TypeError(
            f"documents must be a list or another iterable of documents, got one "
            f"{type(documents).__name__}: put it into a list"
        )
    if hasattr(documents, "to_frame"):  # a Series
        raise TypeError(
            f"documents must be a list or another iterable of documents, got a "
            f"{type(documents).__name__}, one column: pass a data frame with the columns 'id' and 'text'"
        )
    rows = documents if columns is None else frame_documents(documents, columns)
    for number, document in enumerate(cast(Iterable[object], rows)):
        yield _checked(document, number)


def _checked(document: object, number: int) -> Document:
    if isinstance(document, Document):
        given: Mapping[str, Any] = document._asdict()
    elif isinstance(document, Mapping):
        given = document
    else:
        raise TypeError(
            f"document {number} must be a Document or a dict with 'id' and 'text', got "
            f"{_shown(document)}"
        )
    for name in ("id", "text"):
        if name not in given:
            raise ValueError(f"document {number} has no {name!r}, only {sorted(map(str, given))}")
    for name in given:
        if name not in Document._fields:
            raise ValueError(
                f"document {number} has the field {name!r}; besides 'id' and 'text' there is only "
                "'metadata', a dict for everything else"
            )
    id_ = check_id(given["id"], f"the id of document {number}")
    text = given["text"]
    if not isinstance(text, str):
        decode = ": decode it first, such as with text.decode('utf-8')"
        raise TypeError(
            f"the text of document {id_!r} must be a string, got {_shown(text)}"
            f"{decode if isinstance(text, bytes) else ''}"
        )
    check_characters(text, f"the text of document {id_!r}")
    metadata = given.get("metadata")
    return Document(id_, text, check_metadata({} if metadata is None else metadata, id_))


def check_id(value: object, what: str = "id") -> Id:
    """
    >>> check_id(1.5)
    Traceback (most recent call last):
    ...
    TypeError: id must be a string or an integer, got float 1.5
    """
    if isinstance(value, str):
        check_characters(value, what)
        return str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        number = int(value)
        if not -_LARGEST - 1 <= number <= _LARGEST:
            raise ValueError(f"{what} must fit into 64 bits, got {number}")
        return number
    raise TypeError(f"{what} must be a string or an integer, got {_shown(value)}")


def check_metadata(metadata: object, id_: Id) -> dict[str, Any]:
    """A copy of the metadata; it must be JSON, its names strings, its numbers within 64 bits."""
    if not isinstance(metadata, Mapping):
        raise TypeError(f"the metadata of document {id_!r} must be a dict, got {_shown(metadata)}")
    for name, value in metadata.items():
        what = f"metadata field {name!r} of document {id_!r}"
        if not isinstance(name, str):
            raise TypeError(f"{what}: the name must be a string, got {_shown(name)}")
        check_characters(name, what)
        if is_scalar(value):
            check_scalar(value, what)
        elif value is not None:
            _check_json(value, what)
    return dict(metadata)


def is_scalar(value: object) -> TypeGuard[Scalar]:
    """Whether a value can be compared in a filter."""
    return isinstance(value, str | int | float)  # and bool, an int


def check_scalar(value: Scalar, what: str) -> None:
    """Refuse text that is not Unicode, NaN and infinities, and integers over 64 bits."""
    if isinstance(value, str):
        check_characters(value, what)
    elif isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"{what} must be a finite number, got {value}")
    elif isinstance(value, int) and not -_LARGEST - 1 <= value <= _LARGEST:
        raise ValueError(f"{what} must fit into 64 bits, got {value}")


def _check_json(value: object, what: str) -> None:
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise type(error)(f"{what} must be JSON, got {_shown(value)}: {error}") from None


def _shown(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {reprlib.repr(value)}"
