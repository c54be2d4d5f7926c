"""``where=`` as conditions on a jsonb column. Fields and values are parameters, never SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from boltzhash.collection.filters import Compared, Condition, OneOf
from boltzhash.corpus.documents import Scalar, is_scalar


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
    """What a filter can see of metadata: scalars, and of a list or an object only that it is there.

    >>> fields_json({"year": 2020.0, "tags": [1, 2], "nothing": None})
    '{"year": 2020, "tags": []}'
    """
    seen = {storable_text(n): _seen(v) for n, v in metadata.items() if v is not None}
    return json.dumps(seen, ensure_ascii=False)


def _seen(value: Any) -> Any:
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)  # exactly: decimal digits of large floats are rounded
    return value if is_scalar(value) else []


def original_value(value: str) -> Any:
    """A scalar of :func:`fields_json` as it was given, except that 2020.0 becomes 2020."""
    scalar = json.loads(value)
    return original_text(scalar) if isinstance(scalar, str) else scalar


def clause_of(conditions: list[Condition], column: str) -> Clause:
    """All conditions; ``TRUE`` if there are none."""
    clauses = [
        _one_of(condition, column) if isinstance(condition, OneOf) else _compared(condition, column)
        for condition in conditions
    ]
    sql = " AND ".join(f"({clause.sql})" for clause in clauses) or "TRUE"
    return Clause(sql, [parameter for clause in clauses for parameter in clause.parameters])


def _one_of(condition: OneOf, column: str) -> Clause:
    field = storable_text(condition.field)
    sql, parameters = f"{column} -> %s = ANY (%s::jsonb[])", [field, _jsonb(condition.values)]
    if condition.or_missing:
        sql, parameters = f"{sql} OR NOT {column} ? %s", [*parameters, field]
    return Clause(sql, parameters)


def _compared(condition: Compared, column: str) -> Clause:
    field = storable_text(condition.field)
    terms, parameters = [f"{column} ? %s"], [field]
    for operator, value in condition.comparisons:  # the operators were checked against a list
        if value is None:
            continue  # != None: any value will do
        operator = "<>" if operator == "!=" else operator
        if isinstance(value, str) and operator != "<>":
            # jsonb would compare by the collation of the database
            terms.append(f"jsonb_typeof({column} -> %s) = 'string'")
            terms.append(f'({column} ->> %s) COLLATE "C" {operator} %s')
            parameters += [field, field, storable_text(value)]
        else:
            if operator != "<>":
                terms.append(f"jsonb_typeof({column} -> %s) = 'number'")
                parameters.append(field)
            terms.append(f"{column} -> %s {operator} %s::jsonb")
            parameters += [field, *_jsonb((value,))]
    return Clause(" AND ".join(terms), parameters)


def _jsonb(values: tuple[Scalar, ...]) -> list[str]:
    return [json.dumps(_seen(value), ensure_ascii=False) for value in values]
