"""Records, whatever they are read from, and the documents in them.

Each format gives its records one at a time, each with the place it came from, for error messages; what
a document must have is checked here, once for all formats.
"""

import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

Record = Mapping[str, object]  # names of fields → values
Records = Iterator[tuple[Record, str]]  # with the place of each, for messages


class Document(NamedTuple):
    """A text, the name its owner knows it by and, if asked for, what else is known about it."""

    id: str | int
    text: str
    metadata: dict[str, object] | None = None


class CorpusError(ValueError):
    """A corpus cannot be read; the message says where, what was expected and what came."""


class Fields(NamedTuple):
    """Where in a record the document is."""

    text: str
    id: str | None
    metadata: bool | Sequence[str]


def documents(
    records: Records, fields: Fields, number: Callable[[int], int] = int
) -> Iterator[Document]:
    """The documents in records, one by one.

    Parameters
    ----------
    records
        Each record with the place it came from, for error messages.
    fields
        Which fields of a record are what.
    number
        Makes the id of a document that has none from the number of documents before it.

    >>> records = iter([({"id": "a", "text": "first"}, "line 1"), ({"text": "second"}, "line 2")])
    >>> [(document.id, document.text) for document in documents(records, Fields("text", None, False))]
    [('a', 'first'), (1, 'second')]
    """
    for count, (record, where) in enumerate(records):
        yield _document(record, number(count), fields, where)


def _document(record: Record, number: int, fields: Fields, where: str) -> Document:
    text = _field(record, fields.text, where)
    if not isinstance(text, str):
        raise CorpusError(f"{where}: field {fields.text!r} must be a string, got {shown(text)}")
    check_characters(text, f"{where}: field {fields.text!r}")
    id_ = _document_id(record, number, fields.id, where)
    return Document(id_, text, _metadata(record, fields))


def _metadata(record: Record, fields: Fields) -> dict[str, object] | None:
    if fields.metadata is False:
        return None
    if fields.metadata is not True:
        return {name: record[name] for name in fields.metadata if name in record}
    others = {n: v for n, v in record.items() if n not in (fields.text, fields.id or "id")}
    nested = others.get("metadata")
    if isinstance(nested, dict):
        del others["metadata"]
        others.update(nested)
    return others


def _document_id(record: Record, number: int, field: str | None, where: str) -> str | int:
    value = record.get("id") if field is None else _field(record, field, where)
    if isinstance(value, str):
        check_characters(value, f"{where}: field {field or 'id'!r}")
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if field is None:
        return number
    raise CorpusError(
        f"{where}: field {field!r} must be a string or an integer, got {shown(value)}"
    )


def _field(record: Record, name: str, where: str) -> object:
    if name not in record:
        raise _missing_field(name, list(record), where)
    return record[name]


def _missing_field(name: str, present: Sequence[str], where: str) -> CorpusError:
    fields = ", ".join(map(repr, present)) or "none"
    return CorpusError(f"{where}: expected a field {name!r}, got the fields: {fields}")


def check_characters(text: str, what: str) -> None:
    """Refuse half a surrogate pair: JSON can spell it, but UTF-8 cannot store it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = ascii(text[error.start])
        raise CorpusError(f"{what} must be Unicode, got the unpaired surrogate {half}") from None


def check_columns(columns: Sequence[str], fields: Fields, where: str) -> None:
    """Refuse columns if one that ``fields`` names is missing or occurs more than once."""
    chosen = () if isinstance(fields.metadata, bool) else fields.metadata
    for name in filter(None, (fields.text, fields.id, *chosen)):
        count = columns.count(name)
        if count == 0:
            raise _missing_field(name, columns, where)
        if count > 1:
            raise CorpusError(f"{where}: expected one field {name!r}, got {count} of that name")


def shown(value: object) -> str:
    """A value in an error message.

    >>> shown(None), shown(1.5)
    ('null', 'float 1.5')
    """
    return "null" if value is None else f"{type(value).__name__} {reprlib.repr(value)}"
