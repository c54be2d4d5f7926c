"""Records, whatever they are read from, and the documents in them.

Each format gives its records one at a time, each with the place it came from, for error messages; what
a document must have is checked here, once for all formats.
"""

import json
import math
import reprlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from boltzhash.corpus.values import as_json

Record = Mapping[str, object]  # names of fields → values


class Unreadable(NamedTuple):
    """Stands for a record that a format could not read, so that those after it still can be."""

    problem: str
    content: str  # what is there


Records = Iterator[tuple[Record | Unreadable, str]]  # with the place of each, for messages

_ID_FIELDS = (
    "id",
    "_id",
)  # where an id is looked for unless a field is named; the second is BEIR's


class Document(NamedTuple):
    """A text, the name its owner knows it by and, if asked for, what else is known about it."""

    id: str | int
    text: str
    metadata: dict[str, object] | None = None


class CorpusError(ValueError):
    """A corpus cannot be read; the message says where, what was expected and what came."""


class BadRecord(NamedTuple):
    """A record that is not a document: where it is, what is wrong with it, and what is there."""

    where: str
    problem: str
    content: object

    @property
    def reason(self) -> str:
        """The problem without what is particular to this record.

        >>> BadRecord("a.jsonl, line 3", "field 'text' must be a string, got null", {}).reason
        "field 'text' must be a string"
        """
        return self.problem.partition(", got ")[0].partition(": ")[0]


OnBad = Callable[[BadRecord], object]


class Fields(NamedTuple):
    """Where in a record the document is."""

    text: str = "text"
    id: str | None = None
    metadata: bool | Sequence[str] = False
    id_as_string: bool = False

    def id_of(self, names: Mapping[str, object] | Sequence[str]) -> str | None:
        """Which of a record's fields has the id; None if none was named and none is there."""
        return self.id or next((name for name in _ID_FIELDS if name in names), None)


USUAL_FIELDS = Fields()


def documents(
    records: Records,
    fields: Fields,
    number: Callable[[int], int] = int,
    on_bad: OnBad | None = None,
) -> Iterator[Document]:
    """The documents in records, one by one.

    Parameters
    ----------
    records
        Each record with the place it came from, for error messages.
    fields
        Which fields of a record are what.
    number
        Makes the id of a document that has none from the number of records before it.
    on_bad
        Is told of a record that is not a document, which is then left out; without it, that is an error.

    >>> records = iter([({"id": "a", "text": "first"}, "line 1"), ({"text": "second"}, "line 2")])
    >>> [(document.id, document.text) for document in documents(records, Fields())]
    [('a', 'first'), (1, 'second')]
    """
    for count, (record, where) in enumerate(records):
        row = number(count)
        try:
            document = _document(checked_record(record, where), row, fields, where)
        except CorpusError as error:
            if on_bad is None:
                if isinstance(records, Generator):
                    records.close()  # and with it the file
                raise
            on_bad(bad_record(error, record, where))
        else:
            yield document


def checked_record(record: Record | Unreadable, where: str) -> Record:
    """The record, if it could be read."""
    if isinstance(record, Unreadable):
        raise CorpusError(f"{where}: {record.problem}")
    return record


def bad_record(error: CorpusError, record: Record | Unreadable, where: str) -> BadRecord:
    """What was refused, in a form that JSON can say."""
    problem = str(error).removeprefix(f"{where}: ")
    if isinstance(record, Unreadable):
        return BadRecord(where, problem, record.content)
    content = {str(name): _as_json_or_shown(value) for name, value in record.items()}
    return BadRecord(where, problem, content)


def _as_json_or_shown(value: object) -> object:
    try:
        return as_json(value)
    except ValueError:
        return repr(value)


def _document(record: Record, number: int, fields: Fields, where: str) -> Document:
    text = _field(record, fields.text, where, "text_field= (--text-field on the command line)")
    if not isinstance(text, str):
        raise CorpusError(f"{where}: field {fields.text!r} must be a string, got {shown(text)}")
    check_characters(text, f"{where}: field {fields.text!r}")
    id_ = _document_id(record, number, fields, where)
    return Document(id_, text, _metadata(record, fields, where))


def _metadata(record: Record, fields: Fields, where: str) -> dict[str, object] | None:
    if fields.metadata is False:
        return None
    if fields.metadata is not True:
        chosen = {name: record[name] for name in fields.metadata if name in record}
        return {name: _metadata_value(name, value, where) for name, value in chosen.items()}
    others = {n: v for n, v in record.items() if n not in (fields.text, fields.id_of(record))}
    nested = others.get("metadata")
    if isinstance(nested, dict):
        del others["metadata"]
        others.update(nested)
    return {name: _metadata_value(name, value, where) for name, value in others.items()}


def _metadata_value(name: str, value: object, where: str) -> object:
    try:
        plain = as_json(value)
        if isinstance(plain, int) and not -(2**63) <= plain < 2**63:
            raise ValueError("a collection keeps integers of 64 bits")
        return plain
    except ValueError as error:
        raise CorpusError(
            f"{where}: field {name!r} cannot become metadata, got {shown(value)}: {error}; name the "
            "fields to keep with metadata= (--metadata on the command line)"
        ) from None


def _document_id(record: Record, number: int, fields: Fields, where: str) -> str | int:
    field = fields.id_of(record)
    if field is None:
        return str(number) if fields.id_as_string else number
    value = _field(record, field, where, "id_field= (--id-field on the command line)")
    if isinstance(value, str):
        check_characters(value, f"{where}: field {field!r}")
        return value
    if fields.id_as_string:
        return _as_string(value, f"{where}: field {field!r}")
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise CorpusError(
        f"{where}: field {field!r} must be a string or an integer, got {shown(value)}"
        f"{_how_to_make_it_an_id(value)}"
    )


def _how_to_make_it_an_id(value: object) -> str:
    """What to do about a value that is no id."""
    if value is None or value != value:  # NaN
        return "; give each document an id, or leave the field out, then the row number is the id"
    as_string = "id_as_string=True (--id-as-string on the command line)"
    if isinstance(value, float) and value.is_integer():
        return (
            ": a whole number kept as a float, as pandas does where a value of the column is missing; "
            f"make the column integers (in pandas, dtype 'Int64'), or take {int(value)} as a string "
            f"with {as_string}"
        )
    return f"; to take its text as the id, pass {as_string}"


def _as_string(value: object, what: str) -> str:
    """An id of any type as a string; whole numbers without a decimal point.

    >>> _as_string(12.0, "id"), _as_string(1.5, "id"), _as_string(True, "id"), _as_string([1], "id")
    ('12', '1.5', 'true', '[1]')
    """
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)  # with all its digits
    try:
        plain = value.decode() if isinstance(value, bytes) else as_json(value)
    except ValueError as error:
        raise CorpusError(f"{what} cannot be a string, got {shown(value)}: {error}") from None
    if plain is None:
        raise CorpusError(
            f"{what} must be a string, got {shown(value)}{_how_to_make_it_an_id(None)}"
        )
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _field(record: Record, name: str, where: str, option: str) -> object:
    if name not in record:
        raise _missing_field(name, list(record), where, option)
    return record[name]


def _missing_field(name: str, present: Sequence[str], where: str, option: str) -> CorpusError:
    fields = ", ".join(map(repr, present)) or "none"
    return CorpusError(
        f"{where}: expected a field {name!r}, got the fields: {fields}; name another with {option}"
    )


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
    named = [(fields.text, "text_field= (--text-field on the command line)")]
    if fields.id is not None:
        named.append((fields.id, "id_field= (--id-field on the command line)"))
    named += [(name, "metadata= (--metadata on the command line)") for name in chosen]
    for name, option in named:
        count = columns.count(name)
        if count == 0:
            raise _missing_field(name, columns, where, option)
        if count > 1:
            raise CorpusError(f"{where}: expected one field {name!r}, got {count} of that name")


def shown(value: object) -> str:
    """A value in an error message.

    >>> shown(None), shown(1.5)
    ('null', 'float 1.5')
    """
    return "null" if value is None else f"{type(value).__name__} {reprlib.repr(value)}"
