"""Ask the same questions in several ways, and measure the answers by what people judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from boltzhash.arguments import Integer, check
from boltzhash.metrics.retrieval import (
    Grades,
    Id,
    average_precision,
    is_answerable,
    ndcg,
    recall,
    reciprocal_rank,
)
from boltzhash.metrics.retrieval_report import RetrievalReport, Values

if TYPE_CHECKING:
    from boltzhash.collection import Collection

Way = Callable[
    [str, int], Sequence[Id]
]  # a question, k → the ids of at most k documents, best first
Measure = Callable[[Sequence[Id], Grades], float]

HITS = 100  # how many are asked for


def ways_of_searching(collection: Collection) -> dict[str, Way]:
    """Every way in which a collection can be asked by a text, by its name.

    Where codes are made from features, a text has none: it is asked by words alone.
    """

    def way(by: str) -> Way:
        return lambda text, k: collection.search(text, k, by=by).ids

    if collection.hasher.n_feature_columns is not None:
        return {"words": way("words")}
    return {by: way(by) for by in ("words", "codes", "both")}


def measures_of(k: int) -> dict[str, Measure]:
    """What is measured of the first k hits: nDCG@10, recall@100, MRR and MAP, as far as k goes.

    >>> list(measures_of(100)), list(measures_of(20))[:2]
    (['nDCG@10', 'recall@100', 'MRR@100', 'MAP@100'], ['nDCG@10', 'recall@20'])
    """
    first, many = min(10, k), min(100, k)
    return {
        f"nDCG@{first}": partial(ndcg, k=first),
        f"recall@{many}": partial(recall, k=many),
        f"MRR@{k}": partial(reciprocal_rank, k=k),
        f"MAP@{k}": partial(average_precision, k=k),
    }


def evaluate_answers(
    ways: Mapping[str, Way],
    questions: Mapping[str, str],
    *,
    judgements: Mapping[str, Grades],
    k: int = HITS,
    resamples: int = 10_000,
    random_state: int = 0,
) -> RetrievalReport:
    """Ask the same questions in one or several ways, and measure the answers.

    Parameters
    ----------
    ways
        Name → function from a text and k to the ids of at most k documents, best first;
        :func:`ways_of_searching` gives those of a collection. The others are compared with the first.
    questions
        Id → text, as :func:`boltzhash.corpus.judgements.read_questions` gives them.
    judgements
        Id of a question → id of a document → grade, as
        :func:`boltzhash.corpus.judgements.read_judgements` gives them. Questions without a relevant
        document are left out, and so are judgements of questions that are not there; both are counted.
    k
        How many hits to ask for.
    resamples, random_state
        Of the bootstrap over questions, from which the intervals come.

    Examples
    --------
    >>> ways = {"good": lambda text, k: ["a", "b"][:k], "poor": lambda text, k: ["x", "a"][:k]}
    >>> judgements = {"1": {"a": 1}, "2": {"b": 1}, "7": {"a": 1}}
    >>> report = evaluate_answers(ways, {"1": "one", "2": "two", "3": "three"}, judgements=judgements)
    >>> report.mean("good", "MRR@100"), report.mean("poor", "MRR@100")
    (0.75, 0.25)
    >>> report.left_out, report.unknown_questions
    (1, 1)
    """
    check("k", k, Integer(1))
    asked = [id_ for id_ in questions if is_answerable(judgements.get(id_, {}))]
    if not asked:
        raise ValueError(_nothing_to_ask(questions, judgements))

    def measured(way: Way) -> dict[str, Values]:
        answers = [(way(questions[id_], k), judgements[id_]) for id_ in asked]
        return {
            name: np.array([measure(ranked, grades) for ranked, grades in answers])
            for name, measure in measures_of(k).items()
        }

    return RetrievalReport(
        {name: measured(way) for name, way in ways.items()},
        left_out=len(questions) - len(asked),
        unknown_questions=len(judgements.keys() - questions),
        resamples=resamples,
        random_state=random_state,
    )


def _nothing_to_ask(questions: Mapping[str, str], judgements: Mapping[str, Grades]) -> str:
    """
    >>> print(_nothing_to_ask({"1": "who?"}, {"q1": {"a": 1}}))
    no question has a relevant document: of 1 questions (such as '1') and 1 judged ones (such as 'q1') \
none is the same with a grade above 0; are the queries and the judgements of the same collection?
    """
    asked, judged = (
        f"such as {next(iter(ids))!r}" if ids else "none" for ids in (questions, judgements)
    )
    return (
        f"no question has a relevant document: of {len(questions)} questions ({asked}) and "
        f"{len(judgements)} judged ones ({judged}) none is the same with a grade above 0; are the "
        "queries and the judgements of the same collection?"
    )
