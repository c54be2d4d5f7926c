"""The report of answers: its means and intervals, what it shows and what it exports."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import bootstrap

from boltzhash.metrics import RetrievalReport


@pytest.fixture(scope="module")
def values() -> dict[str, np.ndarray]:
    """Questions that are hard in every way, of which one is a little better than the first."""
    rng = np.random.default_rng(0)
    hard = rng.random(120) ** 2
    return {
        "words": hard,
        "both": hard + rng.normal(0.02, 0.05, 120),
        "shuffled": rng.permutation(hard),
    }


@pytest.fixture(scope="module")
def report(values: dict[str, np.ndarray]) -> RetrievalReport:
    return RetrievalReport({way: {"nDCG@10": v, "other": 1 - v} for way, v in values.items()})


def test_means_and_intervals_are_those_of_a_bootstrap(
    report: RetrievalReport, values: dict[str, np.ndarray]
) -> None:
    for way, sample in values.items():
        expected = bootstrap((sample,), np.mean, method="percentile", rng=1).confidence_interval
        mean, low, high = report.means[way, "nDCG@10"]
        assert mean == pytest.approx(sample.mean())
        assert (low, high) == pytest.approx(tuple(expected), abs=0.005)


def test_differences_are_paired(report: RetrievalReport, values: dict[str, np.ndarray]) -> None:
    for way in ("both", "shuffled"):
        less = values[way] - values["words"]
        expected = bootstrap((less,), np.mean, method="percentile", rng=1).confidence_interval
        mean, low, high = report.differences[way, "nDCG@10"]
        assert mean == pytest.approx(less.mean())
        assert (low, high) == pytest.approx(tuple(expected), abs=0.005)
    assert report.differences["both", "nDCG@10"].excludes_zero
    assert report.differences["both", "other"].high < 0
    assert not report.differences["shuffled", "nDCG@10"].excludes_zero
    assert not any(way == "words" for way, _ in report.differences)


def test_the_same_seed_gives_the_same_intervals(values: dict[str, np.ndarray]) -> None:
    one, same, other = (
        RetrievalReport({"a": {"x": values["words"]}}, random_state=seed).means["a", "x"]
        for seed in (0, 0, 1)
    )
    assert one == same != other


def test_a_way_that_gives_the_same_does_not_differ(values: dict[str, np.ndarray]) -> None:
    report = RetrievalReport({way: {"x": values["both"]} for way in ("one", "other")})
    assert report.differences["other", "x"] == (0, 0, 0)
    assert str(report).endswith("* best; the interval of every difference has 0 in it")


def test_text(report: RetrievalReport) -> None:
    title, header, *rows, note = str(report).splitlines()
    assert title == "120 questions, 95 % bootstrap intervals over them in brackets"
    assert header.split() == ["nDCG@10", "other"]
    ways = ["words", "both", "shuffled", "both - words", "shuffled - words"]
    assert [row.split("  ")[0] for row in rows] == ways
    assert [row.count("*") for row in rows] == [1, 1, 1, 0, 0]  # words and shuffled: other
    assert [row.count("!") for row in rows] == [0, 0, 0, 2, 0]
    assert note == "* best; ! the interval of the difference is on one side of 0"


def test_markdown(report: RetrievalReport) -> None:
    table = [line for line in report.to_markdown().splitlines() if line.startswith("|")]
    assert {line.count("|") for line in table} == {4}
    assert len(table) == 2 + 3 + 2
    mean, low, high = report.means["words", "other"]
    assert f"{mean:.3f} ({low:.3f} to {high:.3f})" in table[2]
    assert "<sup>!</sup>" in table[5]
    assert "<sup>!</sup>" not in table[6]


def test_json_has_the_figures(report: RetrievalReport) -> None:
    shown = json.loads(json.dumps(report.as_json()))
    assert list(shown["ways"]) == report.ways
    assert tuple(shown["ways"]["both"]["other"].values()) == report.means["both", "other"]
    assert shown["differences_from"] == "words"
    assert list(shown["differences"]) == ["both", "shuffled"]
    difference = shown["differences"]["both"]["nDCG@10"]
    assert tuple(difference.values()) == report.differences["both", "nDCG@10"]
    assert (shown["questions"], shown["left_out"], shown["missing_documents"]) == (120, 0, 0)


def test_one_way_is_compared_with_none() -> None:
    report = RetrievalReport({"only": {"x": np.array([0.25, 0.75])}}, left_out=3)
    assert report.differences == {}
    assert "*" not in str(report)
    assert str(report).splitlines()[0].endswith("; left out: 3 without a relevant document")


def test_what_is_no_report_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one way of searching, got none"):
        RetrievalReport({})
    with pytest.raises(ValueError, match="b has the measures y; a has x"):
        RetrievalReport({"a": {"x": np.ones(2)}, "b": {"y": np.ones(2)}})
    with pytest.raises(ValueError, match="expected a finite value"):
        RetrievalReport({"a": {"x": np.array([])}})
