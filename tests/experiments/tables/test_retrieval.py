"""Tables of judged answers from made-up results against hand-worked cells."""

from __future__ import annotations

import pytest

from experiments.tables import retrieval

from ..conftest import Record, rows


def estimate(mean: float, low: float, high: float) -> dict[str, float]:
    return {"mean": mean, "low": low, "high": high}


def report(bm25: float, both: float, *, low: float) -> dict[str, object]:
    """All measures alike, and how far the difference may be below its mean."""

    def everywhere(*figures: float) -> dict[str, dict[str, float]]:
        return {measure: estimate(*figures) for measure in retrieval.MEASURES}

    return {
        "ways": {"BM25": everywhere(bm25, 0, 1), "both": everywhere(both, 0, 1)},
        "differences": {"both": everywhere(both - bm25, low, 1)},
    }


@pytest.fixture
def recorded(record: Record) -> None:
    run = ("retrieval", "SemanticHasher", "cran", 64)
    record(*run, seed=0, report=report(0.4, 0.42, low=0.01))
    record(*run, seed=1, report=report(0.4, 0.46, low=-0.01))
    record("retrieval", "SemanticHasher", "npl", 64, report=report(0.5, 0.4, low=-0.2))


@pytest.mark.usefixtures("recorded")
def test_figures_are_means_over_seeds_and_bm25_has_none() -> None:
    assert rows(retrieval.figures_table()) == [
        ["cran", "BM25", "1", *[".400"] * 4],
        ["cran", "both", "2", *[".440 (.420–.460)"] * 4],
        ["npl", "BM25", "1", *[".500"] * 4],
        ["npl", "both", "1", *[".400"] * 4],
    ]


@pytest.mark.usefixtures("recorded")
def test_a_mean_ratio_is_over_all_collections_or_none(record: Record) -> None:
    assert rows(retrieval.ratios_table()) == [
        ["nDCG@10", "both", "1.100", "", ".800", "", ""],
        ["recall@100", "both", "1.100", "", ".800", "", ""],
    ]
    for name in ("cisi", "scifact"):
        record("retrieval", "SemanticHasher", name, 64, report=report(0.5, 0.55, low=0.1))
    assert rows(retrieval.ratios_table())[0] == [
        "nDCG@10", "both", "1.100", "1.100", ".800", "1.100", "1.025",
    ]  # fmt: skip


@pytest.mark.usefixtures("recorded")
def test_differences_count_the_seeds_that_are_sure() -> None:
    assert rows(retrieval.differences_table()) == [
        ["both", "+.040, 1 of 2", "", "−.100, 0 of 1", ""]
    ]
