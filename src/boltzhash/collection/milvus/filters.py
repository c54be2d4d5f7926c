"""``where=`` as an expression of Milvus over a JSON field.

Milvus has no parameters, compares numbers as it sees fit and has no word for code points. So names and
values are stored and asked for in hexadecimal: a kind (b, n, s; x for lists and objects) and digits that
sort as the values do. Nothing that a user gives reaches an expression in any other form.

A document has, for each field, ``p`` (it is there) and ``k`` (its value, or x); for the members of a
list ``e`` (one each), and for each kind of which there are any, ``t`` (there are), ``a`` and ``z`` (the
first and the last): if any is less than a value, the first is. milvus-lite knows ``not in`` and no other
``not``, so a negation goes down to the fields. Before 2.4 Milvus cannot look for a part of a string:
which rows have it is found out beforehand.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from boltzhash.collection.filters import (
    COMPARISONS,
    AllOf,
    AnyOf,
    Compared,
    Condition,
    Contains,
    Has,
    Not,
    OneOf,
    OnField,
    seen_fields,
)
from boltzhash.collection.store import FieldValue
from boltzhash.corpus.documents import Scalar

_NOTHING, _EVERYTHING = "row < 0", "row >= 0"  # no row has a number below 0
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_LONGEST_MEMBER = 64  # digits; a longer one is known by its digest

Find = Callable[[Contains], list[int]]  # the rows whose field is a string with that part


def fields_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """What a filter can see of metadata.

    >>> fields_of({"lang": "de", "nothing": None})
    {'p6c616e67': '1', 'k6c616e67': 's6465'}
    >>> fields_of({"l": ["de", "en"]})  # doctest: +NORMALIZE_WHITESPACE
    {'p6c': '1', 'k6c': 'x', 'e6c_s6465': '1', 'e6c_s656e': '1',
     't6c_s': '1', 'a6c_s': 's6465', 'z6c_s': 's656e'}
    """
    kept = {}
    for path, seen in seen_fields(metadata).items():
        name = path.encode().hex()
        kept[f"p{name}"] = "1"
        kept[f"k{name}"] = "x" if isinstance(seen, list) else _sortable(seen)
        if isinstance(seen, list):
            kept.update(_members(name, [_sortable(member) for member in seen]))
    return kept


def _members(name: str, members: list[str]) -> dict[str, str]:
    kept = {_member(name, member): "1" for member in members}
    for kind in ("n", "s"):
        if some := [member for member in members if member[0] == kind]:
            kept |= {
                f"t{name}_{kind}": "1",
                f"a{name}_{kind}": min(some),
                f"z{name}_{kind}": max(some),
            }
    return kept


def _member(name: str, value: str) -> str:
    if len(value) > _LONGEST_MEMBER:
        value = f"h{hashlib.sha256(value.encode()).hexdigest()}"
    return f"e{name}_{value}"


def expression_of(conditions: Sequence[Condition], find: Find) -> list[str]:
    """An expression a condition; all must hold.

    >>> expression_of([Has("lang")], find=lambda condition: [])
    ['fields["p6c616e67"] in ["1"]']
    """
    return [_expression(condition, find, holds=True) for condition in conditions]


def is_string(field: str) -> str:
    """An expression for the rows whose field is a string."""
    return _of_kind(field.encode().hex(), "s")


def _expression(condition: Condition, find: Find, *, holds: bool) -> str:
    """For the rows for which it holds, or does not."""
    if isinstance(condition, Not):
        return _expression(condition.condition, find, holds=not holds)
    if isinstance(condition, AllOf | AnyOf):
        terms = [_expression(each, find, holds=holds) for each in condition.conditions]
        return _all(terms) if isinstance(condition, AllOf) == holds else _any(terms)
    return _on_field(condition, find, holds=holds)


def _on_field(condition: OnField, find: Find, *, holds: bool) -> str:
    name = condition.field.encode().hex()
    if isinstance(condition, Has):
        return _is(f"p{name}", ["1"], holds=holds)
    if isinstance(condition, Compared):
        return _compared(name, condition, holds=holds)
    join = _any if holds else _all
    if isinstance(condition, OneOf):
        values = [_sortable(value) for value in condition.values]
        own = [_is(f"k{name}", values, holds=holds)]
        return join([*own, *(_is(_member(name, value), ["1"], holds=holds) for value in values)])
    terms = [_is(_member(name, _sortable(condition.value)), ["1"], holds=holds)]
    if isinstance(condition.value, str):
        terms.append(_is_row(find(condition), holds=holds))
    return join(terms)


def _compared(name: str, condition: Compared, *, holds: bool) -> str:
    operator, value = condition.operator, _sortable(condition.value)
    assert operator in COMPARISONS  # it becomes part of the expression
    kind, end = value[0], ("a" if operator in ("<", "<=") else "z")
    own, members = f'fields["k{name}"]', f'fields["{end}{name}_{value[0]}"]'
    if holds:
        own_holds = _all([_of_kind(name, kind), f'{own} {operator} "{value}"'])
        there = _is(f"t{name}_{kind}", ["1"], holds=True)
        return _any([own_holds, _all([there, f'{members} {operator} "{value}"'])])
    opposite = _OPPOSITE[operator]
    other_kind = [f'{own} < "{kind}"', f'{own} >= "{chr(ord(kind) + 1)}"']
    missing = _is(f"p{name}", ["1"], holds=False)
    no_members = _is(f"t{name}_{kind}", ["1"], holds=False)
    own_fails = _any([missing, *other_kind, f'{own} {opposite} "{value}"'])
    return _all([own_fails, _any([no_members, f'{members} {opposite} "{value}"'])])


def _of_kind(name: str, kind: str) -> str:
    own = f'fields["k{name}"]'  # of a kind: at least n, below o
    there = _is(f"p{name}", ["1"], holds=True)
    return _all([there, f'{own} >= "{kind}"', f'{own} < "{chr(ord(kind) + 1)}"'])


def _is(key: str, values: list[str], *, holds: bool) -> str:
    """Whether a key has one of the values; it has none if there is no such key."""
    if not values:
        return _NOTHING if holds else _EVERYTHING
    listed = ", ".join(f'"{value}"' for value in values)
    return f'fields["{key}"] {"in" if holds else "not in"} [{listed}]'


def _is_row(rows: list[int], *, holds: bool) -> str:
    if not rows:
        return _NOTHING if holds else _EVERYTHING
    return f"row {'in' if holds else 'not in'} [{', '.join(map(str, rows))}]"


def _all(terms: list[str]) -> str:
    return _joined(" and ", terms) if terms else _EVERYTHING


def _any(terms: list[str]) -> str:
    return _joined(" or ", terms) if terms else _NOTHING


def _joined(word: str, terms: list[str]) -> str:
    """In halves: Milvus follows each pair of brackets one call deeper."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return f"({_joined(word, terms[:middle])}{word}{_joined(word, terms[middle:])})"


def commonest_values(
    documents: Iterable[Mapping[str, Any]], most: int
) -> dict[str, list[FieldValue]]:
    """The commonest values of each field in the metadata of documents, at most so many.

    >>> commonest_values([{"lang": "de"}, {"lang": "en"}, {"lang": "en", "x": {"y": []}}], most=1)
    {'lang': [FieldValue(value='en', n_documents=2)]}
    """
    counts: dict[str, Counter[str]] = {}
    shown: dict[str, Scalar] = {}  # by what sorts them: 1 and 1.0 are one value, 1 and true are two
    for metadata in documents:
        for field, seen in seen_fields(metadata).items():
            for value in seen if isinstance(seen, list) else [seen]:
                counts.setdefault(field, Counter())[_sortable(value)] += 1
                shown.setdefault(_sortable(value), value)
    return {
        field: [
            FieldValue(shown[value], n)
            for value, n in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:most]
        ]
        for field, counted in sorted(counts.items())
    }


def _sortable(value: Scalar) -> str:
    if isinstance(value, bool):
        return f"b{int(value)}"
    if isinstance(value, str):
        return f"s{value.encode().hex()}"  # bytes of UTF-8 sort as code points do
    return f"n{_sortable_number(value)}"


def _sortable_number(value: int | float) -> str:
    """Digits that sort as integers of 64 bits and floats do among each other, exactly.

    The float that is nearest, and how far an integer is from that: 2⁵³ + 1 is not 2⁵³.

    >>> _sortable_number(-1.5) < _sortable_number(0) == _sortable_number(-0.0) < _sortable_number(2)
    True
    >>> _sortable_number(2**53) == _sortable_number(2.0**53) < _sortable_number(2**53 + 1)
    True
    """
    near = float(value) or 0.0  # -0.0 is 0
    (bits,) = struct.unpack(">Q", struct.pack(">d", near))
    ordered = bits ^ (2**64 - 1) if bits >> 63 else bits | 1 << 63
    beyond = value - int(near) if isinstance(value, int) else 0
    return f"{ordered:016x}{beyond + 2048:04x}"
