"""The paper's tables from our result files, its own figures beside ours, three protocols named."""

from __future__ import annotations

import statistics
from typing import Any

import paper
from cells import cells, markdown, short, spread
from results import read_all
from runs import COMPONENTS, DEEP, LENGTHS, MAIN, RANKS, SHALLOW

PROTOCOLS = ("published", "validation", "label-free")


def paper_table(corpus: str) -> str:
    """Tables 1 to 3: every method at every length; ours is the mean over seeds, label-free."""
    results = read_all("tables") + read_all("quality")
    found = cells(results)
    rows = []
    for method in (*SHALLOW, *DEEP, "CorrSH"):
        printed = paper.TABLES[corpus].get(method)
        if printed is not None:
            rows.append([method, "the paper's", *(short(value) for value in printed)])
        for settings, name in ((f"{method}-published", "as published"), (method, "defaults")):
            values = [found.get((settings, corpus, bits)) for bits in LENGTHS]
            if any(values):
                rows.append([method, name, *(_mean(v) for v in values)])
    return markdown(["method", "", *map(str, LENGTHS)], rows)


def protocols_table() -> str:
    """The same runs under the three protocols: what choosing an epoch by labels gives."""
    results = read_all("tables") + read_all("quality")
    by_protocol = {kind: cells(results, kind) for kind in PROTOCOLS}
    rows = []
    for settings in ("NASH-published", "CorrSH-published", "NASH", "CorrSH"):
        for corpus in MAIN:
            for kind in PROTOCOLS:
                values = [by_protocol[kind].get((settings, corpus, bits)) for bits in LENGTHS]
                if any(values):
                    rows.append([settings, corpus, kind, *(_mean(v) for v in values)])
    return markdown(["settings", "corpus", "protocol", *map(str, LENGTHS)], rows)


def ablation_table(which: str) -> str:
    """Table 4: precision by rank v (k = 10) or by components k (v = 10), at 64 bits."""
    found = cells(read_all("ablations"))
    by_rank = which == "rank"
    printed = paper.RANK if by_rank else paper.COMPONENTS
    rows = []
    for value in RANKS if by_rank else COMPONENTS:
        v, k = (value, 10) if by_rank else (10, value)
        for kind, name in (("authors", "authors' KL"), ("fixed", "KL to .1")):
            ours = [found.get((f"v{v}-k{k}-{kind}", corpus, 64)) for corpus in MAIN]
            if any(ours):
                rows.append([str(value), name, short(printed[value]), *(spread(o) for o in ours)])
    symbol = "v" if by_rank else "k"
    return markdown([symbol, "", "the paper's (reuters)", *MAIN], rows)


def combined_table() -> str:
    """CorrSH with BMSH's prior and with RBSH's ranking, at every length."""
    found = cells(read_all("combined") + read_all("quality") + read_all("tables"))
    names = ("CorrSH", "CorrSH-mixture-prior", "CorrSH-ranking", "BMSH", "RBSH", "NASH")
    rows = [
        [corpus, name, *(_mean(found.get((name, corpus, bits))) for bits in LENGTHS)]
        for corpus in MAIN
        for name in names
    ]
    return markdown(["corpus", "settings", *map(str, LENGTHS)], rows)


def appendix_table() -> str:
    """The appendix: RBSH's preprocessing."""
    found = cells(read_all("appendix"))
    rows = []
    for corpus, printed in paper.APPENDIX.items():
        for method, values in printed.items():
            rows.append([corpus, method, "the paper's", *(short(v) for v in values)])
            for settings, name in ((f"{method}-published", "as published"), (method, "defaults")):
                ours = [found.get((settings, corpus, bits)) for bits in LENGTHS]
                rows.append([corpus, method, name, *(_mean(o) for o in ours)])
    return markdown(["corpus", "method", "", *map(str, LENGTHS)], rows)


def seconds_table() -> str:
    """Table 5: seconds an epoch, and how much longer than NASH."""
    timings = {r["settings"]: r["seconds_an_epoch"] for r in read_all("timings")}
    nash = timings.get("NASH")
    rows = [["NASH", "", f"{paper.NASH_SECONDS}", "1", _seconds(nash), "1" if nash else ""]]
    for (v, k), printed in paper.SECONDS.items():
        ours = timings.get(f"v{v}-k{k}")
        ratio = f"{ours / nash:.2f}" if ours and nash else ""
        theirs = f"{printed / paper.NASH_SECONDS:.2f}"
        rows.append([f"v = {v}", f"k = {k}", f"{printed}", theirs, _seconds(ours), ratio])
    return markdown(["", "", "the paper's, s", "ratio", "ours, s", "ratio"], rows)


def _mean(values: list[float] | None) -> str:
    return short(statistics.mean(values)) if values else ""


def _seconds(value: Any) -> str:
    return f"{value:.4f}" if value else ""
