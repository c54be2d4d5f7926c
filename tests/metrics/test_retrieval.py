"""Measures of answers against hand-worked cases and trec_eval, and questions asked in several ways."""

from __future__ import annotations

import math
import random

import pytest
import pytrec_eval

from boltzhash.metrics import evaluate_answers, retrieval
from boltzhash.metrics.asking import Measure

Case = tuple[list[str], dict[str, int]]


def random_case(seed: int) -> Case:
    """An answer of 0 to 60 documents and grades from -1 to 3, of which one at least is above 0."""
    rng = random.Random(seed)
    documents = [f"d{number}" for number in range(80)]
    judged = rng.sample(documents, rng.randint(1, 40))
    grades = {document: rng.choice([-1, 0, 0, 1, 2, 3]) for document in judged}
    grades[judged[0]] = rng.randint(1, 3)
    return rng.sample(documents, rng.choice([0, 1, 5, 60])), grades


CASES = [random_case(seed) for seed in range(200)]


def trec_eval(measure: str, cases: list[Case]) -> list[float]:
    """trec_eval's values; it scores only answers that it is given, so an empty one is 0."""
    judged = {str(number): grades for number, (_, grades) in enumerate(cases)}
    runs = {
        str(number): {document: float(-place) for place, document in enumerate(ranked)}
        for number, (ranked, _) in enumerate(cases)
    }
    found = pytrec_eval.RelevanceEvaluator(judged, {measure}).evaluate(runs)
    name = measure.replace(".", "_")
    return [found[number][name] if runs[number] else 0.0 for number in judged]


@pytest.mark.parametrize("k", [1, 10, 100])
def test_recall_is_trec_evals(k: int) -> None:
    found = [retrieval.recall(*case, k=k) for case in CASES]
    assert found == pytest.approx(trec_eval(f"recall.{k}", CASES))


@pytest.mark.parametrize("k", [1, 10, 100])
def test_average_precision_is_trec_evals(k: int) -> None:
    found = [retrieval.average_precision(*case, k=k) for case in CASES]
    assert found == pytest.approx(trec_eval(f"map_cut.{k}", CASES))


def test_measures_of_the_whole_answer_are_trec_evals() -> None:
    found = [retrieval.average_precision(*case) for case in CASES]
    assert found == pytest.approx(trec_eval("map", CASES))
    found = [retrieval.reciprocal_rank(*case) for case in CASES]
    assert found == pytest.approx(trec_eval("recip_rank", CASES))


@pytest.mark.parametrize("k", [1, 10, 100])
def test_ndcg_is_trec_evals_of_the_gains(k: int) -> None:
    """trec_eval takes the grade itself for the gain, so it is given 2^grade - 1."""
    gains = [
        (ranked, {document: 2 ** max(grade, 0) - 1 for document, grade in grades.items()})
        for ranked, grades in CASES
    ]
    found = [retrieval.ndcg(*case, k=k) for case in CASES]
    assert found == pytest.approx(trec_eval(f"ndcg_cut.{k}", gains))


def test_by_hand() -> None:
    ranked, grades = ["x", "a", "y", "b"], {"a": 1, "b": 3, "c": 2, "y": 0}
    gained = 1 / math.log2(3) + 7 / math.log2(5)
    best = 7 + 3 / math.log2(3) + 1 / math.log2(4)
    assert retrieval.ndcg(ranked, grades) == pytest.approx(gained / best)
    assert retrieval.recall(ranked, grades, k=3) == pytest.approx(1 / 3)
    assert retrieval.reciprocal_rank(ranked, grades) == 1 / 2
    assert retrieval.reciprocal_rank(ranked, grades, k=1) == 0
    assert retrieval.average_precision(ranked, grades) == pytest.approx((1 / 2 + 2 / 4) / 3)


ALL = [retrieval.ndcg, retrieval.recall, retrieval.reciprocal_rank, retrieval.average_precision]


@pytest.mark.parametrize("measure", ALL)
def test_the_best_answer_has_1_and_an_empty_one_0(measure: Measure) -> None:
    grades = {"a": 1, "b": 3, "c": 2, "d": 0}
    assert measure(["b", "c", "a", "d"], grades) == 1
    assert measure([], grades) == 0
    assert measure(["d", "x"], grades) == 0


@pytest.mark.parametrize("measure", ALL)
def test_ids_are_compared_as_strings(measure: Measure) -> None:
    assert measure([7, "8"], {"7": 1, "8": 1}) == 1


@pytest.mark.parametrize("measure", ALL)
def test_what_has_no_value_is_refused(measure: Measure) -> None:
    with pytest.raises(ValueError, match="once, got 'a' twice"):
        measure(["x", "a", "b", "a"], {"a": 1})
    with pytest.raises(ValueError, match="once, got '7' twice"):
        measure([7, "7"], {"a": 1})
    for grades in ({}, {"a": 0, "b": -1}):
        with pytest.raises(ValueError, match="grades must have a relevant document"):
            measure(["a"], grades)


def test_each_way_is_asked_what_can_be_answered() -> None:
    asked: list[tuple[str, int]] = []

    def search(text: str, k: int) -> list[int]:
        asked.append((text, k))
        return [1, 2, 3][:k]

    questions = {"a": "first", "b": "second", "c": "third", "d": "fourth"}
    judgements = {"b": {"3": 1}, "a": {"1": 2, "9": 1}, "c": {"1": 0}, "z": {"1": 1}}
    report = evaluate_answers({"only": search}, questions, judgements=judgements, k=2)
    assert asked == [("first", 2), ("second", 2)]
    assert (report.n_questions, report.left_out, report.unknown_questions) == (2, 2, 1)
    assert report.measures == ["nDCG@2", "recall@2", "MRR@2", "MAP@2"]
    assert report.per_question["only"]["recall@2"].tolist() == [0.5, 0]
    assert report.per_question["only"]["MRR@2"].tolist() == [1, 0]


def test_more_hits_do_not_move_the_cut_offs() -> None:
    def search(text: str, k: int) -> list[int]:
        return list(range(k))

    report = evaluate_answers(
        {"only": search}, {"q": "?"}, judgements={"q": {"50": 1, "150": 1}}, k=200
    )
    assert report.measures == ["nDCG@10", "recall@100", "MRR@200", "MAP@200"]
    assert report.mean("only", "recall@100") == 0.5
    assert report.mean("only", "MAP@200") == pytest.approx((1 / 51 + 2 / 151) / 2)


def test_nothing_to_ask_is_an_error() -> None:
    ways = {"only": lambda text, k: ["a"]}
    with pytest.raises(
        ValueError, match=r"1 questions \(such as '1'\) and 2 judged ones \(such as 'q1'\)"
    ):
        evaluate_answers(ways, {"1": "?"}, judgements={"q1": {"a": 1}, "1": {"a": 0}})
    with pytest.raises(ValueError, match=r"0 questions \(none\)"):
        evaluate_answers(ways, {}, judgements={"q1": {"a": 1}})
    with pytest.raises(ValueError, match="at least one way of searching, got none"):
        evaluate_answers({}, {"1": "?"}, judgements={"1": {"a": 1}})
    with pytest.raises(ValueError, match="k must be a positive integer, got 0"):
        evaluate_answers(ways, {"1": "?"}, judgements={"1": {"a": 1}}, k=0)
