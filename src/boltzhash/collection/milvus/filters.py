"""``where=`` as an expression of Milvus over a JSON field.

Milvus has no parameters, compares numbers as it sees fit and has no word for code points. So names and
values are stored and asked for in hexadecimal: a kind (b, n, s; x for lists and objects) and digits that
sort as the values do. Nothing that a user gives reaches an expression in any other form.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from boltzhash.collection.filters import Compared, Condition, OneOf
from boltzhash.collection.store import FieldValue
from boltzhash.corpus.documents import Scalar, is_scalar

_NOTHING = "row < 0"  # no row has such a number


def fields_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """What a filter can see of metadata: the value of a field, and that there is one.

    >>> fields_of({"lang": "de", "nothing": None})
    {'k6c616e67': 's6465', 'p6c616e67': '1'}
    """
    seen = {}
    for name, value in metadata.items():
        if value is not None:
            seen[f"k{name.encode().hex()}"] = _sortable(value)
            seen[f"p{name.encode().hex()}"] = "1"
    return seen


def expression_of(conditions: list[Condition]) -> list[str]:
    """An expression a condition; all must hold.

    >>> expression_of([OneOf("lang", ("de",), or_missing=False)])
    ['fields["k6c616e67"] in ["s6465"]']
    """
    return [
        _one_of(condition) if isinstance(condition, OneOf) else _compared(condition)
        for condition in conditions
    ]


def commonest_values(
    documents: Iterable[Mapping[str, Any]], most: int
) -> dict[str, list[FieldValue]]:
    """The commonest values of each field in the metadata of documents, at most so many.

    >>> commonest_values([{"lang": "de"}, {"lang": "en"}, {"lang": "en", "tags": []}], most=1)
    {'lang': [FieldValue(value='en', n_documents=2)]}
    """
    counts: dict[str, Counter[str]] = {}
    shown: dict[str, Scalar] = {}  # by what sorts them: 1 and 1.0 are one value, 1 and true are two
    for metadata in documents:
        for field, value in metadata.items():
            if is_scalar(value):
                counts.setdefault(field, Counter())[_sortable(value)] += 1
                shown.setdefault(_sortable(value), value)
    return {
        field: [
            FieldValue(shown[value], n)
            for value, n in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:most]
        ]
        for field, counted in sorted(counts.items())
    }


def _one_of(condition: OneOf) -> str:
    name = condition.field.encode().hex()
    values = ", ".join(f'"{_sortable(value)}"' for value in condition.values)
    is_one = f'fields["k{name}"] in [{values}]' if values else _NOTHING
    # milvus-lite knows "not in" and no other "not"; it holds where there is no such field
    return f'({is_one} or fields["p{name}"] not in ["1"])' if condition.or_missing else is_one


def _compared(condition: Compared) -> str:
    name = condition.field.encode().hex()
    field = f'fields["k{name}"]'
    terms = [f'fields["p{name}"] in ["1"]']
    for operator, value in condition.comparisons:  # the operators were checked against a list
        if value is None:
            continue  # != None: any value will do
        sought = _sortable(value)
        terms.append(f'{field} {operator} "{sought}"')
        if operator != "!=":  # of the same kind: at least n, below o
            terms += [f'{field} >= "{sought[0]}"', f'{field} < "{chr(ord(sought[0]) + 1)}"']
    return f"({' and '.join(terms)})"


def _sortable(value: Any) -> str:
    if isinstance(value, bool):
        return f"b{int(value)}"
    if isinstance(value, str):
        return f"s{value.encode().hex()}"  # bytes of UTF-8 sort as code points do
    return f"n{_sortable_number(value)}" if isinstance(value, int | float) else "x"


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
