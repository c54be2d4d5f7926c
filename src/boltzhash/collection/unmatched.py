"""Why a filter let nothing through, where the filter itself is to blame: a name or a kind of value."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterator, Sequence

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection.filters import (
    AnyOf,
    Compared,
    Condition,
    Has,
    OneOf,
    OnField,
    Seen,
    conditions_on_fields,
    kind_of,
    look_up,
    seen_fields,
)
from boltzhash.collection.store import StoreSnapshot

_LOOKED_AT = 4  # conditions: each costs a search or two
_SAMPLE = 100  # documents whose fields are named
_NAMED = 20  # fields


class FilterWarning(UserWarning):
    """A filter that no document could match: none has such a field, or such a kind of value in it."""


def somewhere(code: Codes | None, n_bits: int) -> Codes:
    """A code to search near: that of a query if it has one, else any.

    >>> somewhere(None, 16)
    array([0, 0], dtype=uint8)
    """
    return np.zeros(n_bits // 8, dtype=np.uint8) if code is None else code


def why_empty(snapshot: StoreSnapshot, code: Codes, conditions: Sequence[Condition]) -> str | None:
    """What is wrong with a filter that lets nothing through, None if nothing is.

    Asked by searches near ``code``, so that it costs no more than those, on every engine.
    """
    on_fields = list(dict.fromkeys(conditions_on_fields(conditions)))[:_LOOKED_AT]
    return next((problem for c in on_fields for problem in _problem(snapshot, code, c)), None)


def no_such_field(snapshot: StoreSnapshot, code: Codes, field: str) -> str | None:
    """That no document has a field, and which one is meant perhaps; None if one has it."""
    if snapshot.top_k(code, 1, [Has(field)]):
        return None
    return f"no document has a field {_shown(field)}{_other_fields(snapshot, code, field)}"


def _problem(snapshot: StoreSnapshot, code: Codes, condition: OnField) -> Iterator[str]:
    field = condition.field
    missing = no_such_field(snapshot, code, field)
    if missing is not None:
        yield missing
        return
    asked = _asked_kinds(condition)
    of_these_kinds = AnyOf(tuple(_of_kind(field, kind) for kind in asked))
    if asked and not snapshot.top_k(code, 1, [of_these_kinds]):
        (having,) = snapshot.top_k(code, 1, [Has(field)])
        document = having.document
        metadata = {} if document is None else document.metadata or {}
        yield (
            f"no document has {' or '.join(asked)} in the field {_shown(field)}, as the filter asks "
            f"for; one has {_described(look_up(metadata, field))}"
        )


def _asked_kinds(condition: OnField) -> list[str]:
    if isinstance(condition, Has):
        return []
    if isinstance(condition, OneOf):
        return list(dict.fromkeys(kind_of(value) for value in condition.values))
    return [kind_of(condition.value)]


def _of_kind(field: str, kind: str) -> Condition:
    """The field has a value of that kind, whichever."""
    if kind == "a string":
        return Compared(field, ">=", "")
    if kind == "a number":
        return AnyOf((Compared(field, ">=", 0), Compared(field, "<", 0)))
    return OneOf(field, (True, False))


def _described(seen: Seen | None) -> str:
    if seen is None or isinstance(seen, list):
        return f"the list {reprlib.repr(seen)}" if seen else "an object or a list without values"
    return f"{kind_of(seen)}, {reprlib.repr(seen)}"


def _other_fields(snapshot: StoreSnapshot, code: Codes, field: str) -> str:
    nearest = snapshot.top_k(code, _SAMPLE, [])
    metadata = [hit.document.metadata or {} for hit in nearest if hit.document is not None]
    names = sorted({name for one in metadata for name in seen_fields(one)})
    if not names:
        return "; the documents have no metadata"
    close = difflib.get_close_matches(field, names, 1)
    meant = f" (is {_shown(close[0])} meant?)" if close else ""
    more = ", …" if len(names) > _NAMED or len(nearest) == _SAMPLE else ""
    return f"{meant}; fields are: {', '.join(map(_shown, names[:_NAMED]))}{more}"


def _shown(name: str) -> str:
    return repr(name if len(name) <= 60 else f"{name[:59]}…")
