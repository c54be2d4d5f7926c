"""The report: its figures are the measures', its marks the test's, its exports can be read back."""

from __future__ import annotations

import re

import numpy as np
import pytest

from boltzhash.metrics import (
    Report,
    average_precision,
    code_statistics,
    evaluate,
    ndcg,
    paired_permutation,
    precision,
    precision_within,
    recall,
)


@pytest.fixture(scope="module")
def corpus() -> dict[str, np.ndarray]:
    """Two classes; three methods that see the class with more and more noise."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 2, 260)
    data = {"labels": np.eye(2, dtype=bool)[classes]}
    for name, noise in (("clean", 0.2), ("same", 0.2), ("noisy", 0.4)):
        bits = (classes[:, None] == 1) ^ (rng.random((260, 16)) < noise)
        data[name] = np.packbits(bits, axis=1)
    return data


def run(corpus: dict[str, np.ndarray], **options: object) -> Report:
    methods = {name: (corpus[name][:60], corpus[name][60:]) for name in ("clean", "same", "noisy")}
    return evaluate(
        methods, query_labels=corpus["labels"][:60], labels=corpus["labels"][60:], **options
    )  # type: ignore[arg-type]


@pytest.mark.parametrize("ties", ["expected", "insertion"])
def test_figures_are_those_of_the_measures(corpus: dict[str, np.ndarray], ties: str) -> None:
    names = ["precision@20", "recall@30", "map", "map@10", "ndcg@15", "within@3"]
    report = run(corpus, measures=names, ties=ties)
    case = corpus["noisy"][:60], corpus["noisy"][60:]
    labels = {"query_labels": corpus["labels"][:60], "labels": corpus["labels"][60:]}
    expected = {
        "precision@20": precision(*case, **labels, k=20, ties=ties),
        "recall@30": recall(*case, **labels, k=30, ties=ties),
        "map": average_precision(*case, **labels, ties=ties),
        "map@10": average_precision(*case, **labels, k=10, ties=ties),
        "ndcg@15": ndcg(*case, **labels, k=15, ties=ties),
        "within@3": precision_within(*case, **labels, radius=3),
    }
    assert report.measures == names
    for name, values in expected.items():
        assert (report.per_query["noisy"][name] == values).all()
        assert report.mean("noisy", name) == values.mean()
    assert report.codes["noisy"] == code_statistics(case[1])


def test_marks_are_those_of_the_test(corpus: dict[str, np.ndarray]) -> None:
    report = run(corpus, measures=["precision@100"])
    values = {name: report.per_query[name]["precision@100"] for name in report.methods}
    raw = paired_permutation(
        np.stack(
            [
                values[a] - values[b]
                for a, b in (("clean", "same"), ("clean", "noisy"), ("same", "noisy"))
            ],
            axis=1,
        )
    )
    assert report.p_value("clean", "noisy", measure="precision@100") == pytest.approx(3 * raw[1])
    assert report.p_value("noisy", "clean", measure="precision@100") == pytest.approx(3 * raw[1])
    assert report.p_value("clean", "same", measure="precision@100") == pytest.approx(
        max(raw[0], 2 * raw[2])
    )
    assert report.better("clean", "precision@100") == ["noisy"]
    assert report.better("same", "precision@100") == ["noisy"]
    assert report.better("noisy", "precision@100") == []


def test_latex_escapes_and_balances(corpus: dict[str, np.ndarray]) -> None:
    pair = corpus["clean"][:60], corpus["clean"][60:]
    labels = {"query_labels": corpus["labels"][:60], "labels": corpus["labels"][60:]}
    latex = evaluate({"a_b & 10%": pair, "c": pair}, **labels, measures=["map"]).to_latex()
    assert r"a\_b \& 10\% &" in latex
    rows = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {6}
    assert "{llrrrrr}" in latex
    assert latex.count("{") == latex.count("}")
    assert latex.index(r"\begin{tabular}") < latex.index(r"\end{tabular}")


def test_frame(corpus: dict[str, np.ndarray]) -> None:
    report = run(corpus, measures=["map"])
    frame = report.to_frame()
    assert frame.index.tolist() == ["clean", "same", "noisy"]
    assert frame.loc["same", "map"] == report.mean("same", "map")
    assert frame.loc["noisy", "distinct"] == report.codes["noisy"].distinct
    assert frame.columns.tolist()[1:] == list(report.codes["noisy"]._fields)


def test_values_computed_before() -> None:
    """Without codes, and with methods that differ by luck alone on one measure."""
    rng = np.random.default_rng(3)
    base = rng.random(100)
    report = Report(
        {
            "one": {"x": base, "y": base},
            "two": {"x": base + rng.normal(0, 0.01, 100), "y": base + 0.05},
        }
    )
    assert report.better("two", "y") == ["one"]
    assert report.better("two", "x") == report.better("one", "x") == []
    assert "balance" not in str(report)


@pytest.mark.parametrize("measure", ["precision", "recall@", "map@x", "within", "f1@3", "ndcg@-1"])
def test_unknown_measures_are_named(corpus: dict[str, np.ndarray], measure: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"got {measure!r}")):
        run(corpus, measures=[measure])


def test_wrong_arguments_are_named(corpus: dict[str, np.ndarray]) -> None:
    with pytest.raises(ValueError, match="'recall@201': K must be between 1 and the 200 documents"):
        run(corpus, measures=["recall@201"])
    with pytest.raises(ValueError, match="methods must name at least one pair of codes, got none"):
        evaluate({}, query_labels=corpus["labels"], labels=corpus["labels"])
    with pytest.raises(ValueError, match="has no measure"):
        run(corpus, measures=[])
    with pytest.raises(ValueError, match="two has the measures y; one has x"):
        Report({"one": {"x": np.ones(3)}, "two": {"y": np.ones(3)}})
    with pytest.raises(ValueError, match="two, x: expected a finite value for each of 3 queries"):
        Report({"one": {"x": np.ones(3)}, "two": {"x": np.ones(4)}})
    with pytest.raises(ValueError, match="one, x: expected a finite value"):
        Report({"one": {"x": np.array([1, np.nan])}})
    with pytest.raises(ValueError, match="alpha must be a number above 0 and below 1, got 5"):
        Report({"one": {"x": np.ones(3)}}, alpha=5)
