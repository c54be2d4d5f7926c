"""What drift costs, and what fits cost that mend it."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from experiments.results.files import Result, read_all
from experiments.tables.cells import markdown, signed, spread

SCENES = {
    "dates": "Reuters by date",
    "mix": "two known topics alone",
    "topics-0": "known topics",
    "topics-25": "a quarter from new topics",
    "topics-50": "half from new topics",
    "topics-100": "all from new topics",
}
MODELS = {
    "stale": "stale",
    "fresh": "fitted on all",
}


def drift_table() -> str:
    """Precision by scene and model, with the signs of drift that the stale one shows."""
    rows = []
    for scene, shown in SCENES.items():
        for model, called in MODELS.items():
            found = [r for r in read_all("drift") if (r["scene"], r["model"]) == (scene, model)]
            if found:
                rows.append([shown, called, *_cells(found)])
    signs = ["unknown words beyond the expected", "bits moved beyond chance"]
    return markdown(
        ["new documents", "model", "seeds", *signs, "precision", "steps", "CPU s"], rows
    )


def _cells(found: list[Result]) -> list[str]:
    def mean_of(figure: Callable[[Result], float]) -> float:
        return statistics.mean(map(figure, found))

    def beyond(sign: str, expected: str) -> str:
        if any("drift" not in result for result in found):
            return ""
        return signed(mean_of(lambda result: result["drift"][sign] - result["drift"][expected]))

    return [
        str(len(found)),
        beyond("unknown_words", "unknown_words_expected"),
        beyond("bit_shift", "bit_shift_by_chance"),
        spread([result["precision"] for result in found]),
        f"{mean_of(lambda result: result['steps']):,.0f}",
        f"{mean_of(lambda result: result['cpu_seconds']):.0f}",
    ]
