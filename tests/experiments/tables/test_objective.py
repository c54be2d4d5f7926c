"""Differences over seeds and queries, against what was made up."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from experiments.results.resamples import resampled
from experiments.tables import objective
from experiments.tables.intervals import Interval, difference

from ..conftest import Record, rows

CORRELATED, FACTORISED = "v10-k10-printed-no-noise", "v0-k1-printed-no-noise"
EASY = np.random.default_rng(0).random(400)  # mean quality of each query


def run(record: Record, settings: str, ahead: float, seed: int, **more: Any) -> None:
    """Record a run that is ``ahead`` on every query, with noise that depends on its arguments only."""
    noise = np.random.default_rng([seed, settings == CORRELATED]).normal(scale=0.05, size=400)
    queries = EASY / 2 + ahead + noise + seed / 100
    figures = {"label_free": float(queries.mean()), "resamples": resampled(queries)}
    record("objective", settings, "reuters", 32, seed=seed, **figures, **more)


def test_half_widths_over_seeds_and_queries_add_up_as_squares(record: Record) -> None:
    for seed in range(3):
        run(record, CORRELATED, 0.1, seed)
        run(record, FACTORISED, 0.0, seed)
    sides = [
        objective.runs(objective.read_all("objective"), s, "reuters", 32)
        for s in (CORRELATED, FACTORISED)
    ]
    over_seeds = difference(*(side.values for side in sides))
    queries = objective.over_queries(*sides)
    both = objective.over_both(*sides)
    assert over_seeds is not None
    assert queries is not None
    assert both is not None
    # The noise of 2 × 3 draws of each query, not the .14 by which queries themselves differ.
    assert queries == pytest.approx(1.96 * 0.05 * math.sqrt(2 / 3) / 20, rel=0.2)
    assert both.estimate == over_seeds.estimate == pytest.approx(0.1, abs=0.01)
    assert both.half_width == pytest.approx(math.hypot(over_seeds.half_width, queries))
    (found,) = rows(objective.differences_table())
    assert found[:3] == ["printed", "none", "32"]
    assert found[3:] == ["", str(both), "", ""]
    assert "Of 1 differences 1 are in favour of the correlated" in objective.differences_summary()
    assert "Of 1 intervals 1 lie above 0 and 0 below" in objective.differences_summary()


def test_with_one_seed_there_is_no_interval_over_seeds(record: Record) -> None:
    run(record, CORRELATED, 0.1, 0)
    run(record, FACTORISED, 0.0, 0)
    (found,) = rows(objective.differences_table())
    assert found[4].startswith("+.")
    assert found[4].endswith("(.007)")  # 1.96 · .05 √2 / 20
    assert "intervals" not in objective.differences_summary()


def test_pooled_over_corpora_and_lengths(record: Record) -> None:
    """Cells of one corpus share their queries: more lengths do not narrow the interval over queries."""
    easy = np.arange(300) / 300
    for corpus, settings, bits, seed in itertools.product(
        objective.MAIN, (CORRELATED, FACTORISED), objective.LENGTHS, range(2)
    ):
        # Half of the queries gain, the other half does not.
        values = easy / 2 + (0.2 * (easy >= 0.5) if settings == CORRELATED else 0.0) + seed / 1000
        figures = {"label_free": float(values.mean()), "resamples": resampled(values)}
        record("objective", settings, corpus, bits, seed=seed, **figures)
    (found,) = rows(objective.pooled_table())
    assert found[:2] == ["printed", "none"]
    over_queries = 1.96 * 0.1 / math.sqrt(900)
    assert float(found[3]) == pytest.approx(over_queries, rel=0.2)
    assert found[4].startswith("**+.100")


def test_results_without_resamples_have_an_interval_over_seeds_alone(record: Record) -> None:
    for seed in range(3):
        record("objective", CORRELATED, "ng20", 8, seed=seed, label_free=0.5 + seed / 100)
        record("objective", FACTORISED, "ng20", 8, seed=seed, label_free=0.4 + seed / 100)
    results = objective.read_all("objective")
    sides = [objective.runs(results, s, "ng20", 8) for s in (CORRELATED, FACTORISED)]
    assert objective.over_queries(*sides) is None
    assert objective.over_both(*sides) == difference(*(side.values for side in sides))


def test_the_mean_of_corpora_is_narrower_than_they_are() -> None:
    of_three = [Interval(0.3, 0.03), Interval(0.0, 0.03), Interval(0.0, 0.03)]
    found = objective.mean_of(of_three)
    assert found is not None
    assert found == pytest.approx((0.1, 0.03 / math.sqrt(3)))
    assert objective.mean_of([*of_three, None]) is None


def test_ranks_stand_beside_the_paper_s(record: Record) -> None:
    for experiment, settings, value in (
        ("objective", CORRELATED, 0.7),
        ("objective-rank", "v10-k3-printed-no-noise", 0.6),
        ("objective-rank", "v1-k10-printed-no-noise", 0.5),
        ("objective-rank", "v1-k1-printed-no-noise", 0.4),
    ):
        record(experiment, settings, "reuters", 64, label_free=value)
    assert rows(objective.ranks_table()) == [
        ["1", "1", "1", "", "", ".400", ""],
        ["1", "10", "1", ".835", "", ".500", ""],
        ["10", "3", "1", ".839", "", ".600", ""],
        ["10", "10", "1", ".847", "", ".700", ""],
    ]


def test_the_way_to_the_defaults_has_every_step(record: Record) -> None:
    record("tables", "CorrSH-published", "tmc", 32, label_free=0.5)
    record("path", "to-kl", "tmc", 32, label_free=0.6)
    record("path", "to-networks", "tmc", 128, label_free=0.7)
    record("quality", "SemanticHasher", "tmc", 128, label_free=0.8)
    found = {row[0]: row[1:] for row in rows(objective.path_table())}
    assert found["the authors' recipe"] == ["", "", ".500", "", "", ""]
    weighted = found["+ KL weight .3 falling to .1 in the first quarter"]
    assert weighted == ["", "", ".600", "", "", ""]
    assert found["+ two networks for codes of more than 32 bits"] == ["", "", "", "", "", ".700"]
    assert len(found) == 4
    assert set(objective.STEPS) == set(objective.CHANGES)


def test_half_is_set_against_one(record: Record) -> None:
    for seed in range(2):
        record(
            "half-gradient",
            "SemanticHasher-half",
            "tmc",
            32,
            seed=seed,
            label_free=0.5 + seed / 1000,
        )
        record("quality", "SemanticHasher", "tmc", 32, seed=seed, label_free=0.6 + seed / 1000)
    (found,) = rows(objective.half_table())
    assert found[:2] == ["SemanticHasher", "tmc"]
    assert found[4].startswith("**−.100 ±")
