"""Is the correlated posterior better than the factorised one, all else equal? By how much, how surely?

Only result files are read. A comparison is a pair of settings that differ in the posterior alone (under
the authors' schedule in the KL weight as well), and is made under each protocol. Positive is in favour
of the correlated posterior.
"""

from __future__ import annotations

import itertools
import statistics
from typing import NamedTuple

from experiments import paper
from experiments.results.files import Result, read_all
from experiments.runs.sweeps import LENGTHS, MAIN
from experiments.tables.cells import PROTOCOLS, cells, markdown, short, signed
from experiments.tables.intervals import CONFIDENCE, Interval, difference, weighted_sum


class Comparison(NamedTuple):
    """Two settings at one length: one recipe with the correlated and with another posterior."""

    recipe: str
    bits: int
    correlated: str
    other: str
    against: str
    seeds: range = range(5)  # the defaults are run with ten, what they are compared with has five


Pair = tuple[list[float], list[float]]
KINDS = {"authors": "authors' KL", "fixed": "KL to .1"}
MIXTURE, FACTORISED = "v = 0, k = 10", "v = 0, k = 1"
NO_NOISE = "as published, KL to .1, no noise"
NO_NOISE_PAIR = ("v10-k10-noise-0", "v0-k1-noise-0")
COMPARISONS = [
    *(
        Comparison(f"as published, {name}", 64, f"v10-k10-{kind}", f"v0-k{k}-{kind}", against)
        for kind, name in KINDS.items()
        for k, against in ((10, MIXTURE), (1, FACTORISED))
    ),
    *(Comparison(NO_NOISE, bits, *NO_NOISE_PAIR, FACTORISED) for bits in LENGTHS),
    Comparison(f"{NO_NOISE}, seeds 5–9", 32, *NO_NOISE_PAIR, FACTORISED, range(5, 10)),
    *(
        Comparison("SemanticHasher", bits, "SemanticHasher", "factorised", FACTORISED)
        for bits in (8, 32, 128)
    ),
]
ONE_COMPONENT = [
    Comparison(f"as published, {name}", 64, f"v10-k10-{kind}", f"v10-k1-{kind}", "v = 10, k = 1")
    for kind, name in KINDS.items()
]


def posterior_table() -> str:
    """Correlated minus factorised: difference of means over seeds, 95 % interval."""
    return _table(COMPARISONS)


def components_table() -> str:
    """Ten components minus one, both with the correlated posterior."""
    return _table(ONE_COMPONENT)


def rank_table() -> str:
    """SemanticHasher with rank 0 and 10: precision, and rank 0 minus rank 10 with its interval."""
    found: dict[tuple[str, int], dict[str, list[float]]] = {}
    for result in read_all("rank"):
        of_cell = found.setdefault((result["corpus"], result["bits"]), {})
        of_cell.setdefault(result["settings"], []).append(result["precision"]["label-free"])
    if not found:
        return ""
    rows, samples = [], []
    for (corpus, bits), by_rank in sorted(found.items()):
        independent, correlated = by_rank["rank-0"], by_rank["rank-10"]
        means = [short(statistics.fmean(values)) for values in (independent, correlated)]
        rows.append([corpus, str(bits), *means, str(difference(independent, correlated))])
        samples += [(1 / len(found), independent), (-1 / len(found), correlated)]
    rows.append(["mean of all", "", "", "", str(weighted_sum(samples))])
    return markdown(["corpus", "bits", "rank 0", "rank 10", "difference"], rows)


def _table(comparisons: list[Comparison]) -> str:
    results = _results()
    rows = []
    for one, protocol in itertools.product(comparisons, PROTOCOLS):
        pairs = _pairs(one, results, protocol)
        intervals = [*on_corpora(pairs), on_all_corpora(pairs)]
        if any(intervals):
            shown = ["" if interval is None else str(interval) for interval in intervals]
            rows.append([one.recipe, str(one.bits), one.against, protocol, *shown])
    return markdown(["recipe", "bits", "against", "protocol", *MAIN, "mean of the three"], rows)


def posterior_summary() -> str:
    """How often each of the two is better beyond its interval, and the paper's own difference."""
    authors = [one for one in COMPARISONS if one.correlated.endswith("authors")]
    equal = [one for one in COMPARISONS if one not in authors]
    lines = [
        f"- The paper's difference between v = 10 and v = 0 (reuters, 64 bits): "
        f"{signed(paper.RANK[10] - paper.RANK[0])}.\n"
    ]
    results = _results()
    for protocol in PROTOCOLS:
        for what, comparisons in (
            ("posterior alone differs", equal),
            ("KL weight differs too (authors' schedule)", authors),
        ):
            pairs = [_pairs(one, results, protocol) for one in comparisons]
            made = [i for several in pairs for i in on_corpora(several) if i is not None]
            if made:
                lines.append(f"- *{protocol}*, {what}: {_counted(made)}\n")
    return "".join(lines)


def _counted(made: list[Interval]) -> str:
    better = sum(interval.excludes_zero and interval.estimate > 0 for interval in made)
    worse = sum(interval.excludes_zero and interval.estimate < 0 for interval in made)
    by_chance = (1 - CONFIDENCE) * len(made)
    largest = max(made, key=lambda interval: abs(interval.estimate))
    return (
        f"of {len(made)} intervals, {better} lie above 0, in favour of the correlated posterior, "
        f"{worse} below, and {len(made) - better - worse} contain 0 (without any difference "
        f"{by_chance:.1f} would miss it by chance). The largest difference is {str(largest).strip('*')}."
    )


def pairing() -> str:
    """What pairing by seed would change: do results of a seed go together, do intervals get narrower?"""
    results = _results()
    pairs = [_by_seed(one, corpus, results) for one in COMPARISONS for corpus in MAIN]
    pairs = [several for several in pairs if len(several) > 1]
    if not pairs:
        return ""
    ones, others = zip(
        *(about for several in pairs for about in _about_means(several)), strict=True
    )
    unpaired = [difference(*zip(*several, strict=True)) for several in pairs]
    paired = [weighted_sum([(1.0, [a - b for a, b in several])]) for several in pairs]
    count = [sum(i is not None and i.excludes_zero for i in kind) for kind in (unpaired, paired)]
    r = f"{statistics.correlation(ones, others):+.2f}".replace("-", "−")
    return (
        f"Results of the two posteriors at the same seed, each about its mean (*label-free*), have a "
        f"correlation of {r} over {len(ones)} pairs. Of {len(pairs)} intervals {count[0]} exclude 0; "
        f"paired by seed, {count[1]} would.\n"
    )


def _by_seed(one: Comparison, corpus: str, results: list[Result]) -> list[tuple[float, float]]:
    """Correlated and other posterior, for every seed that both have."""
    runs = {
        (r["settings"], r["seed"]): r["precision"]["label-free"]
        for r in results
        if (r["corpus"], r["bits"]) == (corpus, one.bits)
    }
    return [
        (runs[one.correlated, seed], runs[one.other, seed])
        for seed in one.seeds
        if {(one.correlated, seed), (one.other, seed)} <= runs.keys()
    ]


def _about_means(pairs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    first, second = (statistics.fmean(values) for values in zip(*pairs, strict=True))
    return [(a - first, b - second) for a, b in pairs]


def on_corpora(pairs: list[Pair]) -> list[Interval | None]:
    """The difference on each corpus, None where runs are missing."""
    return [difference(*pair) for pair in pairs]


def on_all_corpora(pairs: list[Pair]) -> Interval | None:
    """The mean over corpora of the difference."""
    share = 1 / len(MAIN)
    return weighted_sum(
        [sample for ours, theirs in pairs for sample in ((share, ours), (-share, theirs))]
    )


def _pairs(one: Comparison, results: list[Result], protocol: str) -> list[Pair]:
    """On each corpus the precision of every seed, correlated and other posterior."""
    found = cells((result for result in results if result["seed"] in one.seeds), protocol)
    return [
        (
            found.get((one.correlated, corpus, one.bits), []),
            found.get((one.other, corpus, one.bits), []),
        )
        for corpus in MAIN
    ]


def _results() -> list[Result]:
    return read_all("ablations", "noise", "ingredients")
