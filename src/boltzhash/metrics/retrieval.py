"""How good the answers to questions are, by documents that people judged.

Here a document is relevant because someone said so: a question's *grades* are a dict id → grade, where 0
or less is not relevant and more is better. A measure takes the ids that a search gave, best first, and
these grades, and gives one number for one question. Ids are compared as strings, since files of
judgements have no others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

Id = str | int
Grades = Mapping[str, int]


def ndcg(ranked: Sequence[Id], grades: Grades, *, k: int = 10) -> float:
    """Normalised discounted cumulative gain: gains 2^grade − 1, discounted by log2(place + 1).

    1 if the first k places hold the best documents in the best order.

    >>> round(ndcg(["b", "a"], {"a": 2, "b": 1}), 4)  # (1 + 3/log2 3) / (3 + 1/log2 3)
    0.7967
    """
    best = sorted(grades.values(), reverse=True)[:k]
    found = [grades.get(id_, 0) for id_ in _checked(ranked, grades)[:k]]
    return _discounted(found) / _discounted(best)


def _discounted(grades: Iterable[int]) -> float:
    return sum(
        (2.0 ** max(grade, 0) - 1) / math.log2(place + 1) for place, grade in enumerate(grades, 1)
    )


def recall(ranked: Sequence[Id], grades: Grades, *, k: int = 100) -> float:
    """The share of the relevant documents that are among the first k.

    >>> recall(["a", "x", "b"], {"a": 1, "b": 1}, k=2)
    0.5
    """
    return len(_places(ranked, grades, k)) / _n_relevant(grades)


def reciprocal_rank(ranked: Sequence[Id], grades: Grades, *, k: int | None = None) -> float:
    """1 / the place of the first relevant document, 0 if there is none; its mean is MRR.

    >>> reciprocal_rank(["x", "b", "a"], {"a": 1, "b": 1})
    0.5
    """
    places = _places(ranked, grades, k)
    return 1 / places[0] if places else 0.0


def average_precision(ranked: Sequence[Id], grades: Grades, *, k: int | None = None) -> float:
    """The mean over *all* relevant documents of the precision at their places; its mean is MAP.

    A document that is not among the first k counts 0, as in trec_eval.

    >>> average_precision(["x", "a", "b"], {"a": 1, "b": 1, "c": 1})  # (1/2 + 2/3 + 0) / 3
    0.38888888888888884
    """
    places = _places(ranked, grades, k)
    return sum(found / place for found, place in enumerate(places, 1)) / _n_relevant(grades)


def is_answerable(grades: Grades) -> bool:
    """Whether any document is relevant; without one no measure has a value."""
    return any(grade > 0 for grade in grades.values())


def _n_relevant(grades: Grades) -> int:
    return sum(grade > 0 for grade in grades.values())


def _places(ranked: Sequence[Id], grades: Grades, k: int | None) -> list[int]:
    """The places of the relevant documents among the first k, counted from 1."""
    ids = _checked(ranked, grades)[:k]
    return [place for place, id_ in enumerate(ids, 1) if grades.get(id_, 0) > 0]


def _checked(ranked: Sequence[Id], grades: Grades) -> list[str]:
    """The ids as strings; an answer that names a document twice would count it twice."""
    if not is_answerable(grades):
        raise ValueError(
            "grades must have a relevant document (a grade above 0): leave such questions out"
        )
    ids = [str(id_) for id_ in ranked]
    if len(set(ids)) < len(ids):
        twice = next(id_ for place, id_ in enumerate(ids) if id_ in ids[:place])
        raise ValueError(f"ranked must name a document once, got {twice!r} twice")
    return ids
