"""How many steps and documents a fit wants."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from experiments.results.files import Result, read_all
from experiments.tables.cells import markdown, signed, spread

REAL = ("newsgroups", "reuters", "tmc", "debian")
MADE_UP = "made-up"
MOST = 1000  # steps of a small corpus, before there was a rule
BATCH = 200


def steps_table() -> str:
    """Small corpora: what fewer steps and one training cost, against 1,000 steps and two."""
    found = [result for result in read_all("schedule") if result["corpus"] in REAL]
    rows = []
    for n, bits in sorted({(r["documents"], r["bits"]) for r in found}):
        of_size = [r for r in found if (r["documents"], r["bits"]) == (n, bits)]
        twice = any(r["twice"] for r in of_size)
        usual = {_cell(r): r for r in of_size if (r["steps"], r["twice"]) == (MOST, twice)}
        for steps, again in sorted({(r["steps"], r["twice"]) for r in of_size}, reverse=True):
            own = [r for r in of_size if (r["steps"], r["twice"]) == (steps, again)]
            how = "two trainings if worth it" if again else "one training"
            cells = [_against(own, usual, corpus) for corpus in REAL]
            rows.append([f"{n:,}", str(bits), f"{steps:,}", how, *cells])
    return markdown(["documents", "bits", "steps", "", *REAL], rows)


def _cell(result: Result) -> tuple[str, int]:
    return result["corpus"], result["seed"]


def _against(own: list[Result], usual: dict[tuple[str, int], Result], corpus: str) -> str:
    """The mean difference to the usual fit with the same seed; that fit's own precision."""
    pairs = [
        (result["precision"], usual[_cell(result)]["precision"])
        for result in own
        if result["corpus"] == corpus and _cell(result) in usual
    ]
    if not pairs:
        return ""
    if all(mine == theirs for mine, theirs in pairs):
        return f"**{_mean(mine for mine, _ in pairs):.3f}**".replace("0.", ".", 1)
    return signed(_mean(mine - theirs for mine, theirs in pairs))


def _mean(figures: Iterable[float]) -> float:
    return statistics.mean(list(figures))


def documents_table() -> str:
    """Made-up corpora: precision by documents and steps; the last column is 25 epochs."""
    found = [result for result in read_all("schedule") if result["corpus"] == MADE_UP]
    sizes = sorted({r["documents"] for r in found})
    asked = sorted({r["steps"] for r in found if r["epochs"] != 25})
    rows = []
    for n in sizes:
        own = [r for r in found if r["documents"] == n]
        full = [r for r in own if r["epochs"] == 25]
        cells = [_shown([r for r in own if r["steps"] == s and r not in full]) for s in asked]
        rows.append([f"{n:,}", *cells, _shown(full)])
    return markdown(["documents", *(f"{s:,} steps" for s in asked), "25 epochs"], rows)


def _shown(found: list[Result]) -> str:
    if not found:
        return ""
    steps = found[0]["epochs"] * math.ceil(found[0]["documents"] / BATCH)
    precision = spread([result["precision"] for result in found])
    return precision if steps == found[0]["steps"] else f"{precision}, {steps:,}"
