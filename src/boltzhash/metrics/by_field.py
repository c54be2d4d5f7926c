"""Precision by a field of metadata, of documents that are asked for what is near to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.hashers.shared.labels import Labels, read_labels
from boltzhash.metrics.codes_report import Labelled
from boltzhash.metrics.ranking import precision_at
from boltzhash.metrics.significance import Estimate, estimates
from boltzhash.metrics.ties import Pairs, by_distance, distances

RowNumbers = NDArray[np.int64]


class Asked(NamedTuple):
    """Documents with labels that are asked for what is near, and those among which it is looked for.

    ``queries`` and ``among`` are rows of the labels; with ``is_own`` a query is itself among them, and
    left out. The ``top`` nearest are looked at, or all if there are fewer.
    """

    field: str
    labels: Labels
    queries: RowNumbers
    among: RowNumbers
    top: int
    is_own: bool

    def precision(self, queries: Codes, codes: Codes) -> tuple[Labelled, Estimate]:
        """Of the nearest of those that have a label, from the codes of both, a row each."""
        known = self.labels.known
        asks, offers = known[self.queries], known[self.among]
        wanted = self.labels.shares[self.queries[asks]]
        offered = self.labels.shares[self.among[offers]].T.tocsr()
        n_offered = int(offers.sum()) - self.is_own
        if not asks.any() or n_offered < 1:
            raise ValueError(
                f"too few documents have a label in their field {self.field!r} to measure by: "
                f"{int(asks.sum())} of those that are asked, {int(offers.sum())} of those to be found"
            )
        k = min(self.top, n_offered)
        values, chance = [], []
        for rows, found in distances(queries[asks], codes[offers]):
            relevant = np.asarray((wanted[rows] @ offered).toarray() > 0)
            groups = by_distance(Pairs(found, relevant), 8 * codes.shape[1])
            if self.is_own:  # it is at distance 0, and shares its labels with itself
                groups.documents[:, 0] -= 1
                groups.relevant[:, 0] -= 1
            values.append(precision_at(groups, k))
            chance.append(groups.relevant.sum(axis=1) / n_offered)
        labelled = Labelled(
            self.field,
            k,
            int(asks.sum()),
            n_offered,
            int((~known).sum()),
            float(np.concatenate(chance).mean()),
        )
        return labelled, estimates(np.concatenate(values)[:, None])[0]


def given_labels(values: Sequence[Any], field: str) -> Labels:
    """What a field of each document holds, of which some must be labels."""
    found = read_labels(values, len(values))
    if found is None:
        raise ValueError(f"no document has a label in its field {field!r}")
    return found
