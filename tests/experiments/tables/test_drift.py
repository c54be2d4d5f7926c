"""The table of drift from made-up results against hand-worked cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.results import files
from experiments.tables.drift import drift_table

from ..conftest import rows


def result(model: str, seed: int, precision: float, **signs: dict[str, float]) -> files.Result:
    named = {"run": f"dates-{model}-{seed}", "scene": "dates", "model": model, "seed": seed}
    return {**named, "precision": precision, "steps": 1500, "cpu_seconds": 9.6, **signs}


def signs(unknown: float) -> dict[str, float]:
    bits = {"bit_shift": 0.05, "bit_shift_by_chance": 0.01}
    return {"unknown_words": unknown, "unknown_words_expected": 0.1, **bits}


@pytest.mark.usefixtures("results_folder")
def test_a_row_has_the_mean_over_seeds(results_folder: Path) -> None:
    one, other = (result("stale", seed, 0.5 + seed / 10, drift=signs(0.12)) for seed in (0, 1))
    files.write("drift", one, {**other, "drift": signs(0.14)}, result("fresh", 0, 0.7))
    assert rows(drift_table()) == [
        ["Reuters by date", "stale", "2", "+.030", "+.040", ".550 (.500–.600)", "1,500", "10"],
        ["Reuters by date", "fitted on all", "1", "", "", ".700", "1,500", "10"],
    ]
