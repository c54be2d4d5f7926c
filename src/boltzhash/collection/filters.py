"""``where=``: the small language that filters documents by their metadata; docs/filters.md shows it.

``{"year": 2020}`` equals, ``{"lang": ["de", "en"]}`` is one of, ``{"price": {">=": 3, "<": 5}}``
compares; ``None`` is a field that is missing or null. All conditions of a filter must hold;
``{"$or": [...]}``, ``{"$and": [...]}`` and ``{"$not": {...}}`` combine filters.

A field has a value, or the members of a list: a condition holds if it holds for one of them. Types are
kept apart: 1, "1" and true are three values (1 and 1.0 are one). ``<`` and the like compare numbers with
numbers and strings with strings, by code point. ``{"!=": 3}`` means "has a value, and none is 3", so
``{"!=": None}`` means "has a value". ``"author.name"`` is a field inside a field.

:func:`matches` is what a filter means; every engine is compared with it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple, TypeGuard

from boltzhash.corpus.documents import Scalar, check_scalar, is_scalar

Where = Mapping[str, Any]

COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
OPERATORS = ("=", "!=", *COMPARISONS, "in", "not in", "contains", "exists")
COMBINATIONS = ("$and", "$or", "$not")  # "$", since they stand where the name of a field stands
MOST_LEVELS = 32  # of filters in filters, and of fields in fields

# What others call our operators, so that an error can say what to write.
_KNOWN_ELSEWHERE = {
    **{"==": "=", "$eq": "=", "<>": "!=", "$ne": "!=", "=<": "<=", "=>": ">="},
    **{"$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">=", "$in": "in", "$nin": "not in"},
    **{
        "$contains": "contains",
        "$exists": "exists",
        "lt": "<",
        "lte": "<=",
        "gt": ">",
        "gte": ">=",
    },
}


class Has(NamedTuple):
    """The field is there and not null."""

    field: str


class OneOf(NamedTuple):
    """The field has one of these values."""

    field: str
    values: tuple[Scalar, ...]


class Compared(NamedTuple):
    """The field has a value of the same kind that compares so."""

    field: str
    operator: str
    value: str | int | float


class Contains(NamedTuple):
    """The field is a string that has this part, or a list that has this member."""

    field: str
    value: Scalar


class AllOf(NamedTuple):
    conditions: tuple[Condition, ...]


class AnyOf(NamedTuple):
    conditions: tuple[Condition, ...]


class Not(NamedTuple):
    condition: Condition


OnField = Has | OneOf | Compared | Contains
Condition = OnField | AllOf | AnyOf | Not


def parse_where(where: Where | None) -> list[Condition]:
    """The conditions of a filter, each checked; all must hold.

    >>> parse_where({"lang": ["de", "en"], "year": {">=": 2020}})  # doctest: +NORMALIZE_WHITESPACE
    [OneOf(field='lang', values=('de', 'en')),
     Compared(field='year', operator='>=', value=2020)]
    >>> parse_where({"year": {"=>": 2020}})
    Traceback (most recent call last):
    ...
    ValueError: where: field 'year' has the operator '=>' (here: >=); expected one of = != < <= > >= in \
"not in" contains exists
    """
    return [] if where is None else list(_filter(where, "where", MOST_LEVELS))


def _filter(where: object, what: str, levels: int) -> Iterator[Condition]:
    if not isinstance(where, Mapping):
        raise TypeError(f"{what} must be a dict from fields to values, got {where!r}")
    for name, wanted in where.items():
        if not isinstance(name, str):
            raise TypeError(f"where: the name of a field must be a string, got {name!r}")
        if name in COMBINATIONS:
            yield _combination(name, wanted, levels)
        else:
            yield from _conditions(name, wanted)


def _combination(name: str, wanted: object, levels: int) -> Condition:
    what = f"where: {name}"
    if not levels:
        raise ValueError(f"{what}: filters may be nested at most {MOST_LEVELS} levels deep")
    if name == "$not":
        return Not(AllOf(tuple(_filter(wanted, what, levels - 1))))
    if not isinstance(wanted, list | tuple):
        raise TypeError(f"{what} takes a list of filters, got {wanted!r}")
    filters = tuple(AllOf(tuple(_filter(each, f"{what}: each", levels - 1))) for each in wanted)
    return AllOf(filters) if name == "$and" else AnyOf(filters)


def _conditions(field: str, wanted: object) -> Iterator[Condition]:
    what = f"where: field {field!r}"
    if not isinstance(wanted, Mapping):
        yield _one_of(field, wanted, what)
        return
    if not wanted:
        raise ValueError(f"{what} has no operator; expected {_allowed()}")
    for name, value in wanted.items():
        if name not in OPERATORS:
            hint = f" (here: {_KNOWN_ELSEWHERE[name]})" if name in _KNOWN_ELSEWHERE else ""
            raise ValueError(f"{what} has the operator {name!r}{hint}; expected {_allowed()}")
        yield _condition(field, name, value, what)


def _condition(field: str, name: str, value: object, what: str) -> Condition:
    value = _without_dates(value)
    if name in ("=", "in"):
        _check_list(name, value, what)
        return _one_of(field, value, what)
    if name in ("!=", "not in"):
        _check_list(name, value, what)
        return AllOf((Has(field), Not(_one_of(field, value, what))))
    if name == "exists":
        if not isinstance(value, bool):
            raise TypeError(f"{what}: exists takes true or false, got {value!r}")
        return Has(field) if value else Not(Has(field))
    if name == "contains":
        if not is_scalar(value):
            raise TypeError(
                f"{what}: contains takes a string or another single value, got {value!r}"
            )
        check_scalar(value, what)
        return Contains(field, value)
    if not is_scalar(value) or isinstance(value, bool):
        raise TypeError(f"{what}: {name} takes a number or a string, got {value!r}")
    check_scalar(value, what)
    return Compared(field, name, value)


def _check_list(name: str, value: object, what: str) -> None:
    if name in ("in", "not in") and not _is_list(value):
        raise TypeError(f"{what}: {name} takes a list of values, got {value!r}")
    if name in ("=", "!=") and _is_list(value):
        other = {"=": "in", "!=": "not in"}[name]
        raise TypeError(f"{what}: {name} takes one value, got {value!r}: {other} takes a list")


def _one_of(field: str, wanted: object, what: str) -> Condition:
    values = [_without_dates(value) for value in _listed(wanted)]
    for value in values:
        _check_value(value, what)
    is_one = OneOf(field, tuple(value for value in values if is_scalar(value)))
    if None not in values:
        return is_one
    return AnyOf((is_one, Not(Has(field)))) if is_one.values else Not(Has(field))


def _is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...] | set[Any] | frozenset[Any]]:
    return isinstance(value, list | tuple | set | frozenset)


def _listed(value: object) -> list[Any]:
    return list(value) if _is_list(value) else [value]


def _without_dates(value: object) -> object:
    """A date or a datetime in its ISO form, as metadata must have it too: JSON has no dates."""
    return value.isoformat() if isinstance(value, date) else value


def _allowed() -> str:
    shown = " ".join(f'"{name}"' if " " in name else name for name in OPERATORS)
    return f"one of {shown}"


def _check_value(value: object, what: str) -> None:
    if value is None:
        return
    if not is_scalar(value):
        raise TypeError(
            f"{what} must be compared with a string, a number, true, false or None, got "
            f"{type(value).__name__} {value!r}"
        )
    check_scalar(value, what)


def conditions_on_fields(conditions: Sequence[Condition]) -> Iterator[OnField]:
    """Those on fields, out of all combinations."""
    for condition in conditions:
        if isinstance(condition, Not):
            yield from conditions_on_fields([condition.condition])
        elif isinstance(condition, AllOf | AnyOf):
            yield from conditions_on_fields(condition.conditions)
        else:
            yield condition


# What a filter sees of metadata

Seen = Scalar | list[Scalar]  # a value, or the members of a list; an object has none


def seen_fields(metadata: Mapping[str, Any], levels: int = MOST_LEVELS) -> dict[str, Seen]:
    """All fields that a filter can name, those inside others by their paths.

    >>> seen_fields({"year": 2020, "tags": ["a", "b", None], "author": {"name": "Ann"}, "x": None})
    {'author': [], 'author.name': 'Ann', 'year': 2020, 'tags': ['a', 'b']}
    >>> seen_fields({"authors": [{"name": "Ann"}, {"name": "Bob"}]})
    {'authors': [], 'authors.name': ['Ann', 'Bob']}
    """
    if all(value is None or is_scalar(value) for value in metadata.values()):  # most often
        return {name: value for name, value in metadata.items() if value is not None}
    seen: dict[str, Seen] = {}
    # The longest names first: where a name has a dot itself, "a.b" goes before b inside a.
    for name, value in sorted(metadata.items(), key=lambda item: -len(item[0])):
        if value is None:
            continue
        seen.setdefault(name, _seen(value))
        if levels and isinstance(value, Mapping | list | tuple):
            for path, inner in _seen_inside(value, levels - 1).items():
                seen.setdefault(f"{name}.{path}", inner)
    return seen


def _seen(value: Any) -> Seen:
    if is_scalar(value):
        return value
    if isinstance(value, Mapping):
        return []
    distinct = {(kind_of(member), member): member for member in value if is_scalar(member)}
    return list(distinct.values())


def _seen_inside(value: Any, levels: int) -> dict[str, Seen]:
    if isinstance(value, Mapping):
        return seen_fields(value, levels)
    collected: dict[str, list[Scalar]] = {}
    for member in value:
        if isinstance(member, Mapping):
            for path, seen in seen_fields(member, levels).items():
                collected.setdefault(path, []).extend(seen if isinstance(seen, list) else [seen])
    return {path: _seen(members) for path, members in collected.items()}


# What a filter means


def matches(conditions: Sequence[Condition], metadata: Mapping[str, Any]) -> bool:
    """Whether all conditions hold for the metadata of a document.

    >>> matches(parse_where({"tags": "a", "author.name": {"contains": "nn"}}),
    ...         {"tags": ["a", "b"], "author": {"name": "Ann"}})
    True
    """
    return all(_holds(condition, metadata) for condition in conditions)


def _holds(condition: Condition, metadata: Mapping[str, Any]) -> bool:
    if isinstance(condition, Not):
        return not _holds(condition.condition, metadata)
    if isinstance(condition, AllOf):
        return all(_holds(each, metadata) for each in condition.conditions)
    if isinstance(condition, AnyOf):
        return any(_holds(each, metadata) for each in condition.conditions)
    seen = look_up(metadata, condition.field)
    return seen is not None and _holds_for(condition, seen)


def _holds_for(condition: OnField, seen: Seen) -> bool:
    values = seen if isinstance(seen, list) else [seen]
    if isinstance(condition, Has):
        return True
    if isinstance(condition, OneOf):
        return any(_same(one, other) for one in values for other in condition.values)
    if isinstance(condition, Compared):
        compare, value = COMPARISONS[condition.operator], condition.value
        return any(kind_of(one) == kind_of(value) and compare(one, value) for one in values)
    if isinstance(seen, list):
        return any(_same(one, condition.value) for one in seen)
    return isinstance(seen, str) and isinstance(condition.value, str) and condition.value in seen


def look_up(metadata: Mapping[str, Any], path: str, levels: int = MOST_LEVELS) -> Seen | None:
    """What a filter sees at a path, None if there is nothing: the exact name goes before any path.

    >>> look_up({"a.b": 1, "a": {"b": 2, "c": 3}}, "a.b"), look_up({"a": {"c": 3}}, "a.c")
    (1, 3)
    """
    if metadata.get(path) is not None:
        return _seen(metadata[path])
    end = path.rfind(".")
    while levels and end >= 0:
        found = _look_inside(metadata.get(path[:end]), path[end + 1 :], levels - 1)
        if found is not None:
            return found
        end = path.rfind(".", 0, end)
    return None


def _look_inside(value: Any, path: str, levels: int) -> Seen | None:
    if isinstance(value, Mapping):
        return look_up(value, path, levels)
    if not isinstance(value, list | tuple):
        return None
    found = [look_up(member, path, levels) for member in value if isinstance(member, Mapping)]
    there = [seen for seen in found if seen is not None]
    return [one for seen in there for one in _listed(seen)] if there else None


def kind_of(value: Scalar) -> str:
    """Values of different kinds are never equal, and none is less than another."""
    if isinstance(value, bool):
        return "true or false"
    return "a string" if isinstance(value, str) else "a number"


def _same(one: Scalar, other: Scalar) -> bool:
    return kind_of(one) == kind_of(other) and one == other
