"""All values of one metadata field, with the places of the documents that have them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.collection.filters import kind_of
from boltzhash.corpus.documents import Scalar

_KINDS = ("a number", "a string", "true or false")  # in this order


class Column(NamedTuple):
    """All values of one field: ``values[numbers[i]]`` is one of the document at ``places[i]``.

    A document whose field is a list is there once for each member. Values are in order.
    """

    places: NDArray[np.int64]
    numbers: NDArray[np.int64]
    values: list[Scalar]

    @property
    def n_figures(self) -> int:
        """How many of the values are numbers; these come first."""
        return bisect_left(self.values, True, key=lambda value: isinstance(value, str | bool))

    def figure(self, number: int) -> int | float:
        """One of the values that are numbers."""
        value = self.values[number]
        assert not isinstance(value, str)  # nor a bool, which is an int to Python
        return value

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, Scalar]]) -> Column:
        """From places and values, in any order.

        >>> Column.of([(1, "b"), (2, "a"), (2, "b"), (3, 7)])
        Column(places=array([1, 2, 2, 3]), numbers=array([2, 1, 2, 0]), values=[7, 'a', 'b'])
        """
        listed = [(place, (_KINDS.index(kind_of(value)), value)) for place, value in pairs]
        distinct = sorted({key for _, key in listed})
        number_of = {key: number for number, key in enumerate(distinct)}
        return cls(
            np.array([place for place, _ in listed], dtype=np.int64),
            np.array([number_of[key] for _, key in listed], dtype=np.int64),
            [value for _, value in distinct],
        )
