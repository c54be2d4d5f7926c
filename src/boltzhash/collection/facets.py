"""How often each value of a metadata field occurs among the documents that a question matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from boltzhash.collection.columns import Column
from boltzhash.collection.filters import Condition
from boltzhash.collection.store import FieldValue, Mask, StoreSnapshot
from boltzhash.collection.unmatched import no_such_field, somewhere
from boltzhash.search.hits import Answer

MOST_VALUES = 30  # that a facet lists


class Facet(NamedTuple):
    """The values of a field among some documents.

    Attributes
    ----------
    values : list of FieldValue
        The commonest, each with how many documents have it; of equals the lesser first.
    least, most : float or None
        Of the numbers among all values; None if there are none.
    """

    values: list[FieldValue]
    least: int | float | None
    most: int | float | None


def facet(column: Column, among: Mask | None) -> Facet:
    """What documents have in a field; ``among`` says which places count, None that all do.

    >>> column = Column.of([(1, 2020), (2, 2021), (3, 2021), (4, "unknown")])
    >>> facet(column, np.array([0, 1, 1, 1, 0], dtype=bool))
    Facet(values=[FieldValue(value=2021, n_documents=2), FieldValue(value=2020, n_documents=1)], \
least=2020, most=2021)
    """
    numbers = column.numbers if among is None else column.numbers[among[column.places]]
    counts = np.bincount(numbers, minlength=len(column.values))
    there = np.flatnonzero(counts)
    commonest = there[np.argsort(-counts[there], kind="stable")[:MOST_VALUES]]
    figures = there[: np.searchsorted(there, column.n_figures)]  # numbers come first
    return Facet(
        [FieldValue(column.values[number], int(counts[number])) for number in commonest.tolist()],
        column.figure(int(figures[0])) if len(figures) else None,
        column.figure(int(figures[-1])) if len(figures) else None,
    )


def with_counts(
    answer: Answer,
    snapshot: StoreSnapshot,
    conditions: list[Condition],
    matching: Mask | None,
    fields: Sequence[str],
) -> Answer:
    """An answer with how many documents match, and with the facets of some fields.

    ``matching`` None means all that the conditions let through.
    """
    state = snapshot.state
    if matching is None and conditions:
        matching = snapshot.passing(conditions)
    total = state.n_documents if matching is None else int(np.count_nonzero(matching))
    columns = {field: snapshot.column(field) for field in fields}
    facets = {field: facet(column, matching) for field, column in columns.items()}
    warning = answer.warning
    if warning is None and state.n_documents:
        code = somewhere(answer.code, state.n_bits)
        empty = (field for field, column in columns.items() if not column.values)
        problems = (no_such_field(snapshot, code, field) for field in empty)
        warning = next((problem for problem in problems if problem is not None), None)
    return replace(answer, total=total, facets=facets, warning=warning)
