"""Whether a collection has moved away from what its model was fitted on.

Two signs, both of the documents that were added last: words that the model does not know, and bits that
are on more or less often than in the documents of the fit. Unknown words decide whether a new fit is
worth it. Bits do not: they also move where documents are about fewer of the known topics, which no fit
can mend. experiments/runs/drift.py measured both, and docs/drift.md has the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from boltzhash.codes import unpack
from boltzhash.encoding.coding import Coded
from boltzhash.hashers import Hasher

LATEST = 1000  # documents that are looked at
ENOUGH = 100  # fewer say nothing
MORE_UNKNOWN = 0.03  # of the words, beyond what is expected: from here on a new fit is worth it


class Drift(NamedTuple):
    """What the latest documents of a collection show, beside what the model expects.

    ``unknown_words`` and ``unknown_words_expected`` are shares of their words, None if the model cannot
    tell; ``bit_shift`` is by how much the shares of documents that have a bit on differ, as a mean over
    the bits, and ``bit_shift_by_chance`` what so many documents would show without any drift; if
    documents are cut into passages, it is theirs. ``bit_balance`` is that of
    :func:`boltzhash.codes.bit_balance`. ``is_worth_fitting`` is None if it cannot be told: the documents
    are too few, or their codes are not made from words.
    """

    documents: int
    unknown_words: float | None
    unknown_words_expected: float | None
    bit_balance: float
    bit_balance_expected: float
    bit_shift: float
    bit_shift_by_chance: float
    is_worth_fitting: bool | None

    def as_json(self) -> dict[str, Any]:
        return {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in self._asdict().items()
        }


def measured_drift(hasher: Hasher, latest: Sequence[Coded]) -> Drift | None:
    """How far documents are from those of the fit; None if there are none."""
    fitted_on = hasher.fitted_on_
    if not latest:
        return None
    own = [part.code for one in latest for part in one.passages or (one,)]
    means = unpack(np.frombuffer(b"".join(own), np.uint8).reshape(len(own), -1)).mean(axis=0)
    shift = float(np.abs(means - fitted_on.bit_means).mean())
    by_chance = _shift_by_chance(fitted_on.bit_means, len(own), fitted_on.documents)
    unknown = hasher.unknown_word_share(c.document.text for c in latest)
    return Drift(
        len(latest),
        unknown,
        fitted_on.unknown_words,
        _balance(means),
        _balance(fitted_on.bit_means),
        shift,
        by_chance,
        _is_worth_it(hasher, len(latest), unknown),
    )


def _is_worth_it(hasher: Hasher, n_documents: int, unknown_words: float | None) -> bool | None:
    expected = hasher.fitted_on_.unknown_words
    if unknown_words is None or expected is None:
        return None
    if n_documents < ENOUGH or hasher.n_feature_columns is not None:
        return None
    return unknown_words - expected > MORE_UNKNOWN


def _balance(bit_means: Any) -> float:
    return float(np.mean(1 - np.abs(2 * bit_means - 1)))


def _shift_by_chance(bit_means: Any, n_latest: int, n_fitted: int) -> float:
    """E|p̂ − p̂'| of two samples of one kind of documents, as a mean over the bits.

    >>> round(_shift_by_chance(np.array([0.5]), 100, 10**9), 3)
    0.04
    """
    variance = bit_means * (1 - bit_means) * (1 / n_latest + 1 / n_fitted)
    return float(np.sqrt(2 * variance / math.pi).mean())
