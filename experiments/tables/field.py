"""Methods after the paper, as published and with our recipe, beside SemanticHasher."""

from __future__ import annotations

from experiments.results.files import read_all
from experiments.runs.sweeps import LENGTHS, MAIN
from experiments.tables.cells import by_length, by_protocol, markdown, row, short

# Test precision of the authors' code with the settings that they searched for, on the files that we
# use, epoch chosen on val, measured by others; none of 8 bits. Of ng20 at 16 bits there is a val figure
# only, of a run that was cut off.
AUTHORS: dict[tuple[str, str], tuple[float | None, ...]] = {
    ("SNUH", "ng20"): (None, None, 0.6281, 0.6517, 0.6736),
    ("SNUH", "reuters"): (None, 0.6903, 0.7246, 0.7541, 0.7595),
    ("SNUH", "tmc"): (None, 0.7425, 0.7659, 0.7768, 0.7761),
}
# Settings, what they are called, and protocols.
ROWS = [
    ("-searched", "as published, searched", ("validation", "label-free")),
    ("-searched-spanning", "searched, spanning trees", ("validation", "label-free")),
    ("-searched-usual-start", "searched, spanning, our start", ("validation", "label-free")),
    ("-published", "as published", ("validation", "label-free")),
    ("-published-usual-start", "as published, spanning, our start", ("validation", "label-free")),
    ("", "defaults", ("label-free",)),
]
METHODS = ("SNUH", "PairRec", "WISH", "AMMI", "MISH")
LAST_EPOCH_ALONE = {"AMMI"}  # measured after the last epoch, so that there is none to choose


def field_table(corpus: str) -> str:
    """Every method of the field since at every length, and SemanticHasher."""
    rows = [row for method in METHODS for row in _rows(method, corpus)] + _rows(
        "SemanticHasher", corpus
    )
    return markdown(["method", "recipe", "protocol", "seeds", *map(str, LENGTHS)], rows)


def method_table(method: str) -> str:
    """One of them on all corpora, and SemanticHasher."""
    rows = [
        [corpus, f"{name}, {recipe}", *rest]
        for corpus in MAIN
        for name, recipe, *rest in (*_rows(method, corpus), *_rows("SemanticHasher", corpus))
    ]
    return markdown(["corpus", "", "protocol", "seeds", *map(str, LENGTHS)], rows)


def _rows(method: str, corpus: str) -> list[list[str]]:
    found = by_protocol(read_all("field", "field-later", "quality"))
    rows = []
    if (method, corpus) in AUTHORS:
        figures = map(short, AUTHORS[method, corpus])
        rows.append([method, "its authors' code", "validation", "", *figures])
    for suffix, recipe, protocols in ROWS:
        for protocol in protocols[-1:] if method in LAST_EPOCH_ALONE else protocols:
            values = by_length(found[protocol], method + suffix, corpus)
            rows += row([method, recipe, protocol], values)
    return rows
