"""What the paper says of its tables, asked of ours: is CorrSH ahead, and does length hurt the others?

Only result files are read. "As published" is each method's published recipe as far as it is known.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import spearmanr

from experiments import paper
from experiments.results.files import Result, read_all
from experiments.runs.sweeps import DEEP, LENGTHS, MAIN, SHALLOW
from experiments.tables.cells import PROTOCOLS, by_length, cells, markdown, mean, short, signed
from experiments.tables.paper_tables import WITHOUT_EPOCHS

METHODS = tuple(paper.TABLES["tmc"])  # the eight of the paper's tables
RECIPES = {  # of which codes were set against the Boltzmann machine
    "SemanticHasher": "SemanticHasher",
    "CorrSH-published": "as published",
    "v10-k10-printed-no-noise": "β = 1, as printed",
    "v10-k10-rearranged-noise": "as published, but β = 1",
}
Precision = Mapping[tuple[str, str, int], float]  # of a method, corpus and length


def the_papers() -> Precision:
    """The paper's tables, cells that it leaves out left out."""
    return {
        (method, corpus, bits): value
        for corpus, methods in paper.TABLES.items()
        for method, values in methods.items()
        for bits, value in zip(LENGTHS, values, strict=True)
        if value is not None
    }


def as_published(protocol: str) -> Precision:
    """Means over seeds of the published recipes, by the names of all twelve methods."""
    found = cells(read_all("tables", "baselines"), protocol)
    return {
        (settings.removesuffix("-published"), corpus, bits): statistics.fmean(values)
        for (settings, corpus, bits), values in found.items()
        if settings.endswith("-published") or settings in WITHOUT_EPOCHS
    }


def defaults() -> Precision:
    """Means over seeds of the defaults; SemanticHasher has CorrSH's place among the eight."""
    found = cells(read_all("tables", "quality"))
    places = {**dict(zip(METHODS, METHODS, strict=True)), "SemanticHasher": "CorrSH"}
    return {
        (places[settings], corpus, bits): statistics.fmean(values)
        for (settings, corpus, bits), values in found.items()
        if settings in places
    }


def others_with_defaults() -> Precision:
    """Means over seeds of all methods but SemanticHasher, with the defaults of this library."""
    return {
        (settings, corpus, bits): statistics.fmean(values)
        for (settings, corpus, bits), values in cells(read_all("tables", "baselines")).items()
        if settings in (*DEEP, *SHALLOW)
    }


def columns() -> dict[str, Precision]:
    """What is compared, by what it is called in a table."""
    return {
        "the paper's": the_papers(),
        **{f"as published, {protocol}": as_published(protocol) for protocol in PROTOCOLS},
        "defaults, SemanticHasher for CorrSH, label-free": defaults(),
    }


def best_table() -> str:
    """In how many of the cells of Tables 1 to 3 CorrSH has the highest precision of the eight."""
    rows = []
    for name, found in columns().items():
        whole = [
            (corpus, bits)
            for corpus in MAIN
            for bits in LENGTHS
            if len([m for m in METHODS if (m, corpus, bits) in found]) >= len(METHODS) - 1
        ]
        won = sum(_best(found, corpus, bits) == "CorrSH" for corpus, bits in whole)
        others = sorted({_best(found, corpus, bits) for corpus, bits in whole} - {"CorrSH"})
        if whole:
            rows.append([name, f"{won} of {len(whole)}", ", ".join(others)])
    return markdown(["", "CorrSH is the best of the eight", "elsewhere the best"], rows)


def _best(found: Precision, corpus: str, bits: int) -> str:
    present = [method for method in METHODS if (method, corpus, bits) in found]
    return max(present, key=lambda method: found[method, corpus, bits])


def best_published_table() -> str:
    """Our defaults, the best other method with its own, and the best as published, with its name."""
    ours = cells(read_all("quality"))
    compared = {
        "the best other with our defaults, label-free": others_with_defaults(),
        **{
            f"the best as published, {protocol}": as_published(protocol)
            for protocol in reversed(PROTOCOLS)
        },
    }
    rows = []
    for corpus in MAIN:
        shown = map(mean, by_length(ours, "SemanticHasher", corpus))
        rows.append([corpus, "**SemanticHasher**, label-free", *shown])
        for name, found in compared.items():
            best = [
                max(
                    ((v, m) for (m, c, b), v in found.items() if (c, b) == (corpus, bits)),
                    default=None,
                )
                for bits in LENGTHS
            ]
            named = [f"{short(top[0])} {top[1]}" if top else "" for top in best]
            rows.append([corpus, name, *named])
    return markdown(["corpus", "", *map(str, LENGTHS)], rows)


def longer_table() -> str:
    """What 128 bits have more than 32: in the paper all but CorrSH lose."""
    rows = []
    compared = columns()
    for corpus in MAIN:
        for method in METHODS:
            row = [
                signed(found[method, corpus, 128] - found[method, corpus, 32])
                if {(method, corpus, 32), (method, corpus, 128)} <= found.keys()
                else ""
                for found in compared.values()
            ]
            rows.append([corpus, method, *row])
    return markdown(["corpus", "method", *compared], rows)


def order_table() -> str:
    """Whether the eight methods come in the paper's order: Spearman's rank correlation."""
    theirs, *ours = columns().items()
    rows = []
    for name, found in ours:
        for corpus in MAIN:
            row = [_rank_correlation(theirs[1], found, corpus, bits) for bits in LENGTHS]
            if any(row):
                rows.append([name, corpus, *row])
    return markdown(["", "corpus", *map(str, LENGTHS)], rows)


def _rank_correlation(ones: Precision, others: Precision, corpus: str, bits: int) -> str:
    both = [m for m in METHODS if (m, corpus, bits) in ones and (m, corpus, bits) in others]
    if len(both) < len(METHODS) - 1:
        return ""
    figures = [[found[m, corpus, bits] for m in both] for found in (ones, others)]
    return f"{spearmanr(*figures).statistic:.2f}"


def _by_recipe(result: Result) -> tuple[int, str]:
    return [*RECIPES].index(result["settings"]), result["corpus"]


def disagreement_table() -> str:
    """How often μ > 0 differs from what b(s) says, and whether that changes precision."""
    rows = []
    for result in sorted(read_all("disagreement"), key=_by_recipe):
        shares = ("bits_differ_conditional", "bits_differ_marginal", "documents_differ_marginal")
        rows.append(
            [
                result["corpus"],
                RECIPES[result["settings"]],
                *(f"{result[share]:.2%}" for share in shares),
                f"{result['mean_abs_location']:.1f}",
                f"{result['mean_deviation']:.2f}",
                short(result["val_precision_location"]),
                short(result["val_precision_marginal"]),
            ]
        )
    head = ["bits that differ, conditional", "bits, marginal", "documents, marginal"]
    sizes = ["mean \\|μ\\|", "mean √Σᵢᵢ", "val precision of μ > 0", "of b's marginal"]
    return markdown(["corpus", "recipe", *head, *sizes], rows)


NEAR_ON_A_MAP = 15  # as many as UMAP was told to keep together


def maps_table() -> str:
    """Figure 2: how far groups lie apart on the maps, and how good the codes are that were drawn."""
    rows = []
    found = {result["settings"]: result for result in read_all("codes")}
    for suffix, recipe in (("-published", "as published"), ("", "defaults")):
        for method in ("VDSH", "NASH", "CorrSH", "SemanticHasher"):
            if method + suffix in found:
                result = found[method + suffix]
                together = same_group_nearby(result["points"], result["groups"])
                figures = (together, result["precision"]["label-free"])
                rows.append([method, recipe, *map(short, figures)])
    head = ["neighbours on the map of the same newsgroup", "precision of the codes"]
    return markdown(["method", "recipe", *head], rows)


def same_group_nearby(points: list[list[int]], groups: list[int]) -> float:
    """Of the points nearest to a point, the share that is of its group: mean over all points.

    >>> apart = [[i, 0] for i in range(16)] + [[i, 900] for i in range(16)]
    >>> same_group_nearby(apart, [0] * 16 + [1] * 15 + [0])  # 16 points with all, 15 with 14 of 15
    0.9375
    """
    tree = cKDTree(points)
    _, near = tree.query(points, k=NEAR_ON_A_MAP + 1)  # the first is the point itself
    labels = np.asarray(groups)
    return float((labels[near[:, 1:]] == labels[:, None]).mean())


def couplings_table() -> str:
    """Whether the correlations that the posterior learns are those that the codes have."""
    rows = []
    for name, title in (
        ("CorrSH-published", "CorrSH as published"),
        ("SemanticHasher", "SemanticHasher"),
    ):
        for result in read_all("codes"):
            if result["settings"] == name:
                both = [result[f"{what}_correlation"] for what in ("learned", "code")]
                sizes = [short(statistics.fmean(map(abs, values)) / 1000) for values in both]
                r = f"{statistics.correlation(*both):+.2f}".replace("-", "−")
                rows.append([title, *sizes, r])
    head = ["", "mean size, learned", "mean size, codes", "r between the two"]
    return markdown(head, rows)
