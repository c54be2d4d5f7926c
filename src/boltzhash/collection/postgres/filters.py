"""``where=`` as conditions on a jsonb column. Fields and values are parameters, never SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from boltzhash.collection.filters import (
    COMPARISONS,
    AllOf,
    AnyOf,
    Compared,
    Condition,
    Has,
    Not,
    OneOf,
    OnField,
    Seen,
    seen_fields,
)
from boltzhash.corpus.documents import Scalar


class Clause(NamedTuple):
    """SQL with %s for each parameter."""

    sql: str
    parameters: list[Any]


def storable_text(text: str) -> str:
    """Text without NUL, which PostgreSQL cannot hold; the order by code point stays the same.

    >>> storable_text("a" + chr(0) + "b").encode().hex(), storable_text("plain")
    ('61010162', 'plain')
    """
    return text.replace("\x01", "\x01\x02").replace("\0", "\x01\x01") if _is_odd(text) else text


def original_text(text: str) -> str:
    """What :func:`storable_text` was given."""
    return text.replace("\x01\x01", "\0").replace("\x01\x02", "\x01") if _is_odd(text) else text


def _is_odd(text: str) -> bool:
    return "\0" in text or "\x01" in text


def fields_json(metadata: Mapping[str, Any]) -> str:
    """What a filter can see of metadata, by its paths: values, and lists of members.

    >>> fields_json({"year": 2020.0, "tags": [1, 2], "author": {"name": "Ann"}, "nothing": None})
    '{"author": [], "author.name": "Ann", "year": 2020, "tags": [1, 2]}'
    """
    seen = {storable_text(path): _stored(seen) for path, seen in seen_fields(metadata).items()}
    return json.dumps(seen, ensure_ascii=False)


def _stored(seen: Seen) -> Any:
    if isinstance(seen, list):
        return [_stored(member) for member in seen]
    if isinstance(seen, str):
        return storable_text(seen)
    if isinstance(seen, float) and seen.is_integer():
        return int(seen)  # exactly: decimal digits of large floats are rounded
    return seen


def original_value(value: str) -> Any:
    """A scalar of :func:`fields_json` as it was given, except that 2020.0 becomes 2020."""
    scalar = json.loads(value)
    return original_text(scalar) if isinstance(scalar, str) else scalar


def clause_of(conditions: Sequence[Condition], column: str) -> Clause:
    """All conditions; ``TRUE`` if there are none."""
    return _joined("AND", [_clause(condition, column) for condition in conditions], "TRUE")


def _clause(condition: Condition, column: str) -> Clause:
    if isinstance(condition, Not):
        sql, parameters = _clause(condition.condition, column)
        return Clause(f"NOT {sql}", parameters)
    if isinstance(condition, AllOf):
        return clause_of(condition.conditions, column)
    if isinstance(condition, AnyOf):
        return _joined("OR", [_clause(each, column) for each in condition.conditions], "FALSE")
    sql, parameters = _on_field(condition, column)
    return Clause(f"coalesce({sql}, FALSE)", parameters)  # NULL if there is no such field


def _joined(word: str, clauses: list[Clause], without_any: str) -> Clause:
    sql = f" {word} ".join(clause.sql for clause in clauses)
    parameters = [parameter for clause in clauses for parameter in clause.parameters]
    return Clause(f"({sql})" if clauses else without_any, parameters)


def _on_field(condition: OnField, column: str) -> Clause:
    field = storable_text(condition.field)
    if isinstance(condition, Has):
        return Clause(f"{column} ? %s", [field])
    if isinstance(condition, OneOf):  # an array contains its members, and a value itself
        values = [_jsonb(value) for value in condition.values]
        return Clause(f"{column} -> %s @> ANY (%s::jsonb[])", [field, values])
    if isinstance(condition, Compared):
        # A path in jsonb compares only what is of one kind, and strings by code point.
        assert condition.operator in COMPARISONS  # it becomes SQL
        path = f"'$[*] ? (@ {condition.operator} $v)'"
        variables = "jsonb_build_object('v', %s::jsonb)"
        value = _jsonb(condition.value)
        return Clause(f"jsonb_path_exists({column} -> %s, {path}, {variables})", [field, value])
    return _contains(field, condition.value, column)


def _contains(field: str, value: Scalar, column: str) -> Clause:
    is_member = f"jsonb_typeof({column} -> %s) = 'array' AND {column} -> %s @> %s::jsonb"
    parameters = [field, field, _jsonb(value)]
    if not isinstance(value, str):
        return Clause(is_member, parameters)
    part = storable_text(value)
    has_part = f"strpos({column} ->> %s, %s) > 0"
    if part[:1] in ("\x01", "\x02"):  # it must not begin inside of two that stand for one
        part, has_part = f"^([^\x01]|\x01.)*{_literally(part)}", f"({column} ->> %s) ~ %s"
    is_string = f"jsonb_typeof({column} -> %s) = 'string'"
    sql = f"({is_member} OR {is_string} AND {has_part})"
    return Clause(sql, [*parameters, field, field, part])


def _literally(text: str) -> str:
    """A regular expression for the text itself."""
    return re.sub(r"([][\\^$.|?*+(){}])", r"\\\1", text)


def _jsonb(value: Scalar) -> str:
    return json.dumps(_stored(value), ensure_ascii=False)
