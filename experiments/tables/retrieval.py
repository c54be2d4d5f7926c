"""Questions with judged answers: every way of searching beside BM25."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from experiments.results.files import Result, read_all
from experiments.runs.retrieval import COLLECTIONS, RIVAL, STEMS
from experiments.runs.sweeps import DEFAULT
from experiments.tables.cells import markdown, mean, seeds, short, signed, spread

FOR_QUESTIONS = ", for questions"
MEASURES = ("nDCG@10", "recall@100", "MRR@100", "MAP@100")


def figures_table() -> str:
    """All measures by collection and way: mean (lowest–highest) over seeds."""
    results = _results()
    rows = []
    for name in COLLECTIONS:
        for way in _ways(results):
            values = [_means(results, name, way, measure) for measure in MEASURES]
            if any(values):
                rows.append([name, way, seeds(values), *map(spread, values)])
    return markdown(["collection", "search by", "seeds", *MEASURES], rows)


def ratios_table() -> str:
    """nDCG@10 and recall@100 over those of BM25, by collection and in the mean of them."""
    results = _results()
    rows = []
    for measure in MEASURES[:2]:
        for way in filter(RIVAL.__ne__, _ways(results)):
            ratios = [_ratio(results, name, way, measure) for name in COLLECTIONS]
            known = [ratio for ratio in ratios if ratio is not None]
            whole = mean(known) if len(known) == len(COLLECTIONS) else ""
            rows.append([measure, way, *map(short, ratios), whole])
    return markdown(["", "search by", *COLLECTIONS, "mean"], rows)


def differences_table() -> str:
    """nDCG@10 less that of BM25, and in how many seeds the interval over questions is beside 0."""
    results = _results()
    rows = []
    for way in filter(RIVAL.__ne__, _ways(results)):
        shown = []
        for name in COLLECTIONS:
            found = [
                result["report"]["differences"][way][MEASURES[0]]
                for result in _of(results, name)
                if way in result["report"]["differences"]
            ]
            sure = sum(one["low"] > 0 or one["high"] < 0 for one in found)
            less = [one["mean"] for one in found]
            shown.append(f"{signed(statistics.fmean(less))}, {sure} of {len(less)}" if less else "")
        rows.append([way, *shown])
    return markdown(["search by", *COLLECTIONS], rows)


def _results() -> list[Result]:
    """All runs; what a model with stems takes part in is a way of its own, the rest is said once."""
    shown = (DEFAULT.name, STEMS.name)
    found = [result for result in read_all("retrieval") if result["settings"] in shown]
    for result in found:
        if result["settings"] == STEMS.name:
            for told in ("ways", "differences"):
                result["report"][told] = {
                    way + FOR_QUESTIONS: figures
                    for way, figures in result["report"][told].items()
                    if way in ("codes", "both")
                }
    return found


def _ways(results: Iterable[Result]) -> list[str]:
    """All that were measured, BM25 first."""
    found = {way for result in results for way in result["report"]["ways"]}
    return sorted(found, key=lambda way: (way != RIVAL, way))


def _of(results: Iterable[Result], collection: str) -> list[Result]:
    return [result for result in results if result["corpus"] == collection]


def _means(results: Iterable[Result], collection: str, way: str, measure: str) -> list[float]:
    """One for each seed; words have none, so they are all the same, and one is enough."""
    found = [
        result["report"]["ways"][way][measure]["mean"]
        for result in _of(results, collection)
        if way in result["report"]["ways"]
    ]
    return found[:1] if way in (RIVAL, "words") else found


def _ratio(results: list[Result], collection: str, way: str, measure: str) -> float | None:
    ours, rival = (_means(results, collection, one, measure) for one in (way, RIVAL))
    return statistics.fmean(ours) / statistics.fmean(rival) if ours and rival else None
