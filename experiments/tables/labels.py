"""Codes that were taught labels, beside those that were not and beside other ways to use labels."""

from __future__ import annotations

from experiments.results.files import read_all
from experiments.runs.labels import METHODS, TEACHINGS
from experiments.runs.sweeps import MAIN
from experiments.tables.cells import markdown, seeds, spread

SHOWN = {"none": "none", "0.1": "a tenth", "1": "all", "random": "all, shuffled"}
BITS = 32


def labels_table() -> str:
    """Test precision at 32 bits by corpus, method and which labels were given."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for result in read_all("labels"):
        if result["bits"] == BITS:
            key = (result["corpus"], result["settings"], result["teaching"])
            found.setdefault(key, []).append(result["precision"]["label-free"])
    rows = []
    for corpus in MAIN:
        for method in METHODS:
            values = [found.get((corpus, method, teaching)) for teaching in TEACHINGS]
            if any(values):
                rows.append([corpus, method, seeds(values), *map(spread, values)])
    return markdown(["corpus", "codes", "seeds", *(SHOWN[t] for t in TEACHINGS)], rows)
