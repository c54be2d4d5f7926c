"""The paper's tables from our result files, its own figures beside ours, three protocols named."""

from __future__ import annotations

import statistics
from typing import Any

from experiments import paper
from experiments.results.files import read_all
from experiments.runs.sweeps import COMPONENTS, DEEP, LENGTHS, MAIN, RANKS, SHALLOW
from experiments.tables.cells import (
    PROTOCOLS,
    by_length,
    by_protocol,
    cells,
    markdown,
    mean,
    row,
    seeds,
    short,
    signed,
    spread,
)

# Nothing to choose an epoch from: one figure for all three protocols.
WITHOUT_EPOCHS = (*SHALLOW, "StackedRBM")
# Recipe and protocol of a row, where epochs are measured: the first is what the paper reports.
ROWS = [
    ("-published", "as published", "published"),
    ("-published", "as published", "label-free"),
    ("", "defaults", "label-free"),
]
# RBSH has a recipe of its own as well: its authors', with its word importance.
OWN_ROWS = [
    ("-own", "its own", "published"),
    ("-own", "its own", "label-free"),
]
APPENDIX_ROWS = [
    *ROWS[:2],
    ("-published-no-noise", "as published, no noise", "published"),
    ("-published-no-noise", "as published, no noise", "label-free"),
    *OWN_ROWS,
    *ROWS[2:],
]


def paper_table(corpus: str) -> str:
    """Tables 1 to 3: every method at every length, the paper's figure above ours."""
    found = by_protocol(read_all("tables", "baselines", "quality"))
    rows = []
    for method in (*SHALLOW, *DEEP, "CorrSH", "SemanticHasher"):
        printed = paper.TABLES[corpus].get(method)
        if printed is not None:
            rows.append([method, "the paper's", "published", "", *map(short, printed)])
        for suffix, recipe, protocol in _rows_of(method):
            values = by_length(found[protocol], method + suffix, corpus)
            named = "any" if method in WITHOUT_EPOCHS else protocol
            rows += row([method, recipe, named], values)
    return markdown(["method", "recipe", "protocol", "seeds", *map(str, LENGTHS)], rows)


def method_table(method: str, beside: tuple[str, ...] = ()) -> str:
    """One method, and others with their defaults, on all corpora; spreads are in Tables 1 to 3."""
    found = by_protocol(read_all("tables", "baselines", "quality", "combined", "estimators"))
    rows = []
    for corpus in MAIN:
        printed = paper.TABLES[corpus].get(method)
        if printed is not None:
            rows.append([corpus, f"{method}, as CorrSH's paper lists it", *map(short, printed)])
        for suffix, recipe, protocol in _rows_of(method):
            name = f"{method}, {recipe}" + ("" if recipe == "ours" else f", {protocol}")
            values = by_length(found[protocol], method + suffix, corpus)
            if any(values):
                rows.append([corpus, name, *map(mean, values)])
        for name in beside:
            values = by_length(found["label-free"], name, corpus)
            recipe = "earlier defaults" if name.startswith("SemanticHasher-") else "defaults"
            rows.append([corpus, f"{name}, {recipe}, label-free", *map(mean, values)])
    return markdown(["corpus", "", *map(str, LENGTHS)], rows)


def _rows_of(method: str) -> list[tuple[str, str, str]]:
    """Ending of the settings, recipe and protocol of the rows that a method can have."""
    if method in WITHOUT_EPOCHS:
        return [("", "ours", "label-free")]
    return [*ROWS[:2], *OWN_ROWS, *ROWS[2:]]


def protocols_table(corpus: str) -> str:
    """The same runs under the three protocols: what choosing an epoch by labels gives."""
    found = by_protocol(read_all("tables", "quality"))
    rows = []
    for method in (m for m in (*DEEP, "CorrSH", "SemanticHasher") if m not in WITHOUT_EPOCHS):
        for suffix, recipe in (("-published", "as published"), ("", "defaults")):
            for protocol in PROTOCOLS:
                values = by_length(found[protocol], method + suffix, corpus)
                rows += row([method, recipe, protocol], values)
    return markdown(["method", "recipe", "protocol", "seeds", *map(str, LENGTHS)], rows)


def ablation_table(which: str) -> str:
    """Precision by rank v (k = 10, and k = 1 at v = 0) or by components k (v = 10), at 64 bits."""
    results = read_all("ablations")
    found = by_protocol(results)
    weights = {r["settings"]: r["params"]["kl_weight"][1] for r in results}
    if which == "rank":
        points = [(0, 1, None), *((v, 10, paper.RANK[v]) for v in RANKS)]
    else:
        points = [(10, k, paper.COMPONENTS[k]) for k in COMPONENTS]
    rows = []
    for v, k, printed in points:
        for kind in ("authors", "fixed"):
            name = f"v{v}-k{k}-{kind}"
            for protocol in PROTOCOLS:
                ours = [found[protocol].get((name, corpus, 64)) for corpus in MAIN]
                if any(ours):
                    theirs = printed if (kind, protocol) == ("authors", "published") else None
                    more = [f"{weights[name]:.3g}", protocol, seeds(ours), short(theirs)]
                    rows.append([str(v), str(k), kind, *more, *map(spread, ours)])
    columns = ["KL schedule", "ends at", "protocol", "seeds", "the paper's (reuters)"]
    return markdown(["v", "k", *columns, *MAIN], rows)


def combined_table() -> str:
    """The earlier defaults with BMSH's prior and with RBSH's ranking, beside those two methods."""
    found = cells(read_all("combined", "ingredients", "tables"))
    names = (
        "SemanticHasher",
        "SemanticHasher-mixture-prior",
        "SemanticHasher-ranking",
        "BMSH",
        "RBSH",
        "NASH",
    )
    rows = []
    for corpus in MAIN:
        for name in names:
            rows += row([corpus, name], by_length(found, name, corpus))
    return markdown(["corpus", "settings", "seeds", *map(str, LENGTHS)], rows)


def appendix_table() -> str:
    """The appendix: RBSH's preprocessing."""
    found = by_protocol(read_all("appendix"))
    rows = []
    for corpus, printed in paper.APPENDIX.items():
        for method in (*printed, "SemanticHasher"):
            if method in printed:
                figures = map(short, printed[method])
                rows.append([corpus, method, "the paper's", "published", "", *figures])
            for suffix, recipe, protocol in APPENDIX_ROWS:
                values = by_length(found[protocol], method + suffix, corpus)
                rows += row([corpus, method, recipe, protocol], values)
    return markdown(["corpus", "method", "recipe", "protocol", "seeds", *map(str, LENGTHS)], rows)


def seconds_table() -> str:
    """Seconds per epoch, and how much longer than NASH."""
    results = read_all("timings")
    timings = {r["settings"]: r["seconds_an_epoch"] for r in results}
    nash = timings.get("NASH")
    rows = [["NASH", "", f"{paper.NASH_SECONDS}", "1", _seconds(nash), "1" if nash else ""]]
    for (v, k), printed in paper.SECONDS.items():
        ours = timings.get(f"v{v}-k{k}")
        ratio = f"{ours / nash:.2f}" if ours and nash else ""
        theirs = f"{printed / paper.NASH_SECONDS:.2f}"
        rows.append([f"v = {v}", f"k = {k}", f"{printed}", theirs, _seconds(ours), ratio])
    hardware = ", ".join(sorted({r["hardware"] for r in results}))
    ours_on = f"ours, s ({hardware})" if hardware else "ours, s"
    return markdown(["", "", "the paper's, s", "ratio", ours_on, "ratio"], rows)


def seconds_summary() -> str:
    """The ratio of the largest model to NASH, in theirs and ours."""
    timings = {r["settings"]: r["seconds_an_epoch"] for r in read_all("timings")}
    if not {"NASH", "v10-k10"} <= timings.keys():
        return ""
    theirs = paper.SECONDS[10, 10] / paper.NASH_SECONDS
    ours = timings["v10-k10"] / timings["NASH"]
    return (
        f"An epoch with v = k = 10 takes {ours:.2f} times as long as one of NASH; "
        f"in the paper it takes {theirs:.2f} times as long.\n"
    )


def agreement_table() -> str:
    """How far ours as published is from the paper's, best epoch on test in both, at each length."""
    found = cells(read_all("tables"), "published")
    rows = []
    for method in (*SHALLOW, *DEEP, "CorrSH"):
        name = method if method in WITHOUT_EPOCHS else f"{method}-published"
        for corpus in MAIN:
            printed = paper.TABLES[corpus].get(method)
            values = by_length(found, name, corpus)
            if printed is not None and any(values):
                shown = [
                    "" if theirs is None or not ours else _difference(ours, theirs)
                    for ours, theirs in zip(values, printed, strict=True)
                ]
                rows.append([method, corpus, *shown])
    return markdown(["method", "corpus", *map(str, LENGTHS)], rows)


def _difference(ours: list[float], theirs: float) -> str:
    return signed(statistics.fmean(ours) - theirs)


def _seconds(value: Any) -> str:
    return f"{value:.4f}" if value else ""
