"""The two posteriors compared: which runs go in, under which protocol, and what is said of them."""

from __future__ import annotations

import pytest
from scipy import stats

from experiments.tables import posterior

from ..conftest import Record, rows

CORRELATED = [0.60, 0.62, 0.61, 0.63, 0.60]
FACTORISED = [0.50, 0.51, 0.53, 0.50, 0.52]


def both(record: Record, corpus: str, ours: list[float], theirs: list[float]) -> None:
    for settings, values in (("v10-k10-fixed", ours), ("v0-k1-fixed", theirs)):
        for seed, value in enumerate(values):
            more = {"published": value + 0.1 * (settings[1] == "0"), "label_free": value}
            record("ablations", settings, corpus, 64, seed=seed, **more)


def test_table_has_the_difference_and_its_interval_by_protocol(record: Record) -> None:
    both(record, "ng20", CORRELATED, FACTORISED)
    found = rows(posterior.posterior_table())
    ends = stats.ttest_ind(CORRELATED, FACTORISED, equal_var=False).confidence_interval(0.95)
    half = f"{(ends.high - ends.low) / 2:.3f}".removeprefix("0")
    recipe = ["as published, KL to .1", "64", "v = 0, k = 1"]
    assert found == [
        [*recipe, "published", f"+.000 ± {half}", "", "", ""],
        [*recipe, "label-free", f"**+.100 ± {half}**", "", "", ""],
    ]


def test_the_mean_of_the_corpora_has_an_interval_of_its_own(record: Record) -> None:
    for shift, corpus in enumerate(("ng20", "reuters", "tmc")):
        both(record, corpus, [v + shift / 100 for v in CORRELATED], FACTORISED)
    last = rows(posterior.posterior_table())[-1]
    assert [cell.strip("*").split(" ")[0] for cell in last[4:]] == [
        "+.100",
        "+.110",
        "+.120",
        "+.110",
    ]
    widths = [float(cell.strip("*").split(" ")[2]) for cell in last[4:]]
    assert widths[3] < min(widths[:3])


def test_only_the_seeds_that_both_have_are_compared(record: Record) -> None:
    for seed in range(10):
        value = 0.5 + seed % 2 / 100 if seed < 5 else 0.9
        record("ingredients", "SemanticHasher", "tmc", 8, seed=seed, label_free=value)
    for seed in range(5):
        record("ingredients", "factorised", "tmc", 8, seed=seed, label_free=0.5 + seed % 2 / 100)
    (found,) = rows(posterior.posterior_table())
    assert found[:4] == ["SemanticHasher", "8", "v = 0, k = 1", "label-free"]
    assert found[6].startswith("+.000 ±")


def test_other_seeds_are_a_comparison_of_their_own(record: Record) -> None:
    for seed in range(10):
        ours = 0.5 + seed % 2 / 100
        theirs = ours if seed < 5 else ours - 0.2
        record("noise", "v10-k10-noise-0", "tmc", 32, seed=seed, label_free=ours)
        record("noise", "v0-k1-noise-0", "tmc", 32, seed=seed, label_free=theirs)
    first, again = rows(posterior.posterior_table())
    assert again[0] == f"{first[0]}, seeds 5–9"
    assert first[6].startswith("+.000 ±")
    assert again[6].startswith("**+.200 ±")


def test_the_summary_counts_intervals_on_either_side(record: Record) -> None:
    both(record, "ng20", CORRELATED, FACTORISED)
    both(record, "reuters", FACTORISED, CORRELATED)
    both(record, "tmc", CORRELATED, CORRELATED)
    said = posterior.posterior_summary()
    assert "64 bits): +.065." in said
    assert "*label-free*, posterior alone differs: of 3 intervals, 1 lie above 0" in said
    assert "1 below, and 1 contain 0" in said
    assert "KL weight differs too" not in said


@pytest.mark.parametrize(("turned", "expected"), [(False, "+1.00"), (True, "−1.00")])
def test_pairing_is_the_correlation_about_the_means(
    record: Record, turned: bool, expected: str
) -> None:
    for corpus, offset in (("ng20", 0.0), ("tmc", 0.2)):
        theirs = [offset + (1 - v if turned else v) for v in CORRELATED]
        both(record, corpus, CORRELATED, theirs)
    assert f"correlation of {expected} over 10 pairs" in posterior.pairing()
