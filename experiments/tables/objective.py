"""The objective as the paper prints it: what it reaches, and whether correlated bits are better then.

Only result files are read. Differences have an interval over seeds and queries: the half-width over
seeds (Welch's) and that over queries (a paired bootstrap of the mean over seeds) are independent and
add up as squares. Results that were written before queries were resampled have the first alone.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from experiments import paper
from experiments.results.files import Result, read_all
from experiments.results.resamples import Floats, deviations
from experiments.runs.sweeps import CHANGES, COMPONENTS, CORRELATED, INDEPENDENT, LENGTHS, MAIN
from experiments.tables.cells import (
    by_length,
    cells,
    markdown,
    mean,
    row,
    seeds,
    short,
    signed,
    spread,
)
from experiments.tables.intervals import CONFIDENCE, Interval, difference, weighted_sum

BOUNDS = ("printed", "rearranged")
NOISES = {"no-noise": "none", "noise": "1 to .9"}
POSTERIORS = {CORRELATED: "v = k = 10", INDEPENDENT: "v = 0, k = 1"}
PARTS = {
    "plain": "fair bits, no ranking",
    "mixture-prior": "BMSH's mixture prior",
    "ranking": "RBSH's ranking",
}
STEPS = {
    "kl": "KL weight .3 falling to .1 in the first quarter",
    "optimiser": "Adam at 5e-3 along a cosine, batches of 200, 25 epochs",
    "start": "the decoder's bias starts at the words' frequencies",
    "noise": "decoder noise .2",
    "target": "√tf-idf as the target",
    "input": "rows of length 16 as input",
    "neighbour-words": "a fifth of the words from one of 20 neighbours",
    "contrast": "contrast with that neighbour",
    "networks": "two networks for codes of more than 32 bits",
}


class Runs(NamedTuple):
    """The seeds of one cell: precision at the last epoch, and the resamples of those that have them."""

    values: list[float]
    resamples: list[Floats]


def runs(results: Iterable[Result], settings: str, corpus: str, bits: int) -> Runs:
    """Those of a cell."""
    found = [
        r for r in results if (r["settings"], r["corpus"], r["bits"]) == (settings, corpus, bits)
    ]
    return Runs(
        [r["precision"]["label-free"] for r in found],
        [deviations(r["resamples"]) for r in found if "resamples" in r],
    )


def over_queries(ones: Runs, others: Runs) -> float | None:
    """Half of the interval of the difference over queries; None where a run has no resamples."""
    if any(len(side.resamples) < len(side.values) or not side.values for side in (ones, others)):
        return None
    apart = np.mean(ones.resamples, axis=0) - np.mean(others.resamples, axis=0)
    return float(norm.ppf((1 + CONFIDENCE) / 2) * apart.std(ddof=1))


class OverQueries(Interval):
    """An interval over queries alone, where there is one seed: nothing is said of other seeds."""

    __slots__ = ()

    @property
    def excludes_zero(self) -> bool:
        return False

    def __str__(self) -> str:
        """The half-width in brackets, never bold; none where queries were not resampled either.

        >>> print(OverQueries(0.012, 0.004), OverQueries(-0.012, math.nan))
        +.012 (.004) −.012
        """
        known = f" ({short(self.half_width)})" if self.half_width >= 0 else ""
        return f"{signed(self.estimate)}{known}"


def over_both(ones: Runs, others: Runs) -> Interval | None:
    """The difference, with its interval over seeds and, as far as results tell, over queries."""
    found = difference(ones.values, others.values)
    queries = over_queries(ones, others)
    if found is not None:
        return Interval(found.estimate, math.hypot(found.half_width, queries or 0.0))
    if not ones.values or not others.values:
        return None
    estimate = statistics.fmean(ones.values) - statistics.fmean(others.values)
    return OverQueries(estimate, math.nan if queries is None else queries)


def mean_of(intervals: Sequence[Interval | None]) -> Interval | None:
    """The mean over corpora, whose seeds and queries are independent of each other."""
    made = [interval for interval in intervals if interval is not None]
    if len(made) < len(intervals):
        return None
    estimate = sum(interval.estimate for interval in made) / len(made)
    width = math.hypot(*(interval.half_width for interval in made)) / len(made)
    one_seed = any(isinstance(interval, OverQueries) for interval in made)
    return OverQueries(estimate, width) if one_seed else Interval(estimate, width)


def shown(interval: Interval | None) -> str:
    return "" if interval is None else str(interval)


def name(posterior: tuple[int, int], bound: str, noise: str) -> str:
    return "v{}-k{}-{}-{}".format(*posterior, bound, noise)


def objective_table() -> str:
    """β = 1: every bound, amount of noise and posterior at every length."""
    found = cells(read_all("objective"))
    rows = []
    for corpus in MAIN:
        for bound in BOUNDS:
            for noise, amount in NOISES.items():
                for posterior, named in POSTERIORS.items():
                    values = by_length(found, name(posterior, bound, noise), corpus)
                    rows += row([corpus, bound, amount, named], values)
    return markdown(["corpus", "bound", "noise", "", "seeds", *map(str, LENGTHS)], rows)


def differences() -> dict[tuple[str, str, int], list[Interval | None]]:
    """v = k = 10 minus v = 0, k = 1 on each corpus, by bound, noise and length."""
    results = read_all("objective")
    return {
        (bound, noise, bits): [
            over_both(*(runs(results, name(p, bound, noise), corpus, bits) for p in POSTERIORS))
            for corpus in MAIN
        ]
        for bound in BOUNDS
        for noise in NOISES
        for bits in LENGTHS
    }


def differences_table() -> str:
    """The correlated posterior minus the factorised one at β = 1."""
    rows = []
    for (bound, noise, bits), found in differences().items():
        if any(found):
            rows.append(
                [bound, NOISES[noise], str(bits), *map(shown, found), shown(mean_of(found))]
            )
    return markdown(["bound", "noise", "bits", *MAIN, "mean of the three"], rows)


def differences_summary() -> str:
    """On which side of 0 these differences lie, how many of them surely, and how large they are."""
    found = [interval for several in differences().values() for interval in several if interval]
    if not found:
        return ""
    above, below = (sum(sign * i.estimate > 0 for i in found) for sign in (1, -1))
    ends = [str(end(found, key=lambda i: i.estimate)).strip("*") for end in (min, max)]
    sure = [i for i in found if not isinstance(i, OverQueries)]
    beyond = [sum(i.excludes_zero and sign * i.estimate > 0 for i in sure) for sign in (1, -1)]
    more = (
        f" Of {len(sure)} intervals {beyond[0]} lie above 0 and {beyond[1]} below (without any "
        f"difference {(1 - CONFIDENCE) * len(sure):.1f} would miss it by chance)."
        if sure
        else ""
    )
    return (
        f"Of {len(found)} differences {above} are in favour of the correlated posterior and {below} of "
        f"independent bits; they lie between {ends[0]} and {ends[1]}.{more}\n"
    )


def pooled_table() -> str:
    """The mean of these differences over all corpora and lengths."""
    results = read_all("objective")
    rows = []
    for bound in BOUNDS:
        for noise, amount in NOISES.items():
            one, other = (name(p, bound, noise) for p in POSTERIORS)
            found = pooled(pairs_of(results, one, other))
            if found is not None:
                models, queries = found
                both = Interval(models.estimate, math.hypot(models.half_width, queries))
                widths = (short(models.half_width), short(queries))
                rows.append([bound, amount, *widths, str(both)])
    head = ["± over models", "± over queries", "difference, ± both"]
    return markdown(["bound", "noise", *head], rows)


Pairs = dict[str, list[tuple[Runs, Runs]]]  # of each corpus, at every length


def pairs_of(results: list[Result], one: str, other: str) -> Pairs:
    return {
        corpus: [
            (runs(results, one, corpus, bits), runs(results, other, corpus, bits))
            for bits in LENGTHS
        ]
        for corpus in MAIN
    }


def pooled(pairs: Pairs) -> tuple[Interval, float] | None:
    """Mean difference over cells, its interval over the models, and its half-width over queries.

    Every cell has models of its own, so the spread of the differences over cells is that of trainings,
    and of whatever differs between cells. All cells of a corpus ask the same queries, so their resamples
    are averaged before they are looked at; corpora are independent.
    """
    every = [pair for several in pairs.values() for pair in several]
    if any(not side.values or len(side.resamples) < len(side.values) for p in every for side in p):
        return None
    apart = [statistics.fmean(a.values) - statistics.fmean(b.values) for a, b in every]
    models = weighted_sum([(1.0, apart)])
    widths = []
    for several in pairs.values():
        moved = [np.mean(a.resamples, axis=0) - np.mean(b.resamples, axis=0) for a, b in several]
        widths.append(np.mean(moved, axis=0).std(ddof=1) / len(pairs))
    assert models is not None
    return models, float(norm.ppf((1 + CONFIDENCE) / 2) * math.hypot(*widths))


def bounds_table() -> str:
    """The printed bound minus the rearranged one, and noise minus none, all else equal."""
    results = read_all("objective")
    rows = []
    pairs = [
        *(
            ("printed − rearranged", NOISES[n], POSTERIORS[p], *(name(p, b, n) for b in BOUNDS))
            for n in NOISES
            for p in POSTERIORS
        ),
        *(
            ("noise − none", b, POSTERIORS[p], name(p, b, "noise"), name(p, b, "no-noise"))
            for b in BOUNDS
            for p in POSTERIORS
        ),
    ]
    for what, where, posterior, one, other in pairs:
        for corpus in MAIN:
            found = [
                over_both(*(runs(results, s, corpus, bits) for s in (one, other)))
                for bits in LENGTHS
            ]
            if any(found):
                rows.append([what, where, posterior, corpus, *map(shown, found)])
    return markdown(["", "bound or noise", "posterior", "corpus", *map(str, LENGTHS)], rows)


def ranks_table() -> str:
    """Table 5 with the objective as it is printed: β = 1, no noise, 64 bits."""
    found = cells(read_all("objective-rank", "objective"))
    points = [INDEPENDENT, (0, 10), *((v, k) for v in (1, 5, 10) for k in COMPONENTS)]
    rows = []
    for v, k in points:
        ours = [found.get((name((v, k), "printed", "no-noise"), c, 64)) for c in MAIN]
        if any(ours):
            theirs = paper.RANK.get(v) if k == 10 else paper.COMPONENTS[k] if v == 10 else None
            rows.append([str(v), str(k), seeds(ours), short(theirs), *map(spread, ours)])
    return markdown(["v", "k", "seeds", "the paper's (reuters)", *MAIN], rows)


def confidence_table() -> str:
    """How sure posteriors are of their bits at β = 1 and as published, at 32 bits."""
    results = [r for r in read_all("objective", "path", "ingredients") if r.get("posterior")]
    names = {
        **{
            name(CORRELATED, bound, noise): f"β = 1, {bound}, noise {amount}"
            for bound in BOUNDS
            for noise, amount in NOISES.items()
        },
        "to-contrast": "the earlier defaults",
    }
    rows = []
    for settings, title in names.items():
        for corpus in MAIN:
            found = [
                r["posterior"]
                for r in results
                if (r["settings"], r["corpus"], r["bits"]) == (settings, corpus, 32)
            ]
            if found:
                means = {key: sum(p[key] for p in found) / len(found) for key in found[0]}
                rows.append(
                    [
                        title,
                        corpus,
                        str(len(found)),
                        f"{means['mean_abs_location']:.1f}",
                        f"{means['mean_deviation']:.2f}",
                        f"{means['mean_abs_coupling']:.3f}",
                        f"{means['bits_differ']:.2%}",
                    ]
                )
    sizes = ["mean \\|μ\\|", "mean √Σᵢᵢ", "mean \\|Σᵢⱼ\\|", "bits that differ, conditional"]
    return markdown(["", "corpus", "seeds", *sizes], rows)


def half_table() -> str:
    """Straight-through with the factor ½ of eq. 19 minus the same with 1."""
    results = read_all("half-gradient", "objective", "quality", "tables")
    pairs = [
        ("SemanticHasher", "SemanticHasher-half", "SemanticHasher"),
        ("authors' recipe", "CorrSH-published-half", "CorrSH-published"),
        *(
            (f"as printed, {POSTERIORS[p]}", f"{one}-straight-through-half", one)
            for p in POSTERIORS
            for one in [name(p, "printed", "no-noise")]
        ),
    ]
    rows = []
    for title, half, whole in pairs:
        for corpus in MAIN:
            found = [
                over_both(*(runs(results, s, corpus, bits) for s in (half, whole)))
                for bits in LENGTHS
            ]
            if any(found):
                rows.append([title, corpus, *map(shown, found)])
    return markdown(["recipe", "corpus", *map(str, LENGTHS)], rows)


def half_summary() -> str:
    """The mean of these differences over all corpora and lengths, with the objective as printed."""
    results = read_all("half-gradient", "objective")
    told = []
    for posterior, named in POSTERIORS.items():
        one = name(posterior, "printed", "no-noise")
        found = pooled(pairs_of(results, f"{one}-straight-through-half", one))
        if found is not None:
            models, queries = found
            width = math.hypot(models.half_width, queries)
            told.append(f"{Interval(models.estimate, width)} with {named}")
    if not told:
        return ""
    return f"As printed, mean over the fifteen cells of corpora and lengths: {', '.join(told)}.\n"


def as_printed_table() -> str:
    """All that the paper prints at once: β = 1, energies, no noise, the factor ½."""
    found = cells(read_all("half-gradient"))
    rows = []
    for corpus in MAIN:
        printed = paper.TABLES[corpus]["CorrSH"]
        rows.append([corpus, "the paper's", "", *map(short, printed)])
        for posterior, named in POSTERIORS.items():
            settings = name(posterior, "printed", "no-noise") + "-straight-through-half"
            rows += row([corpus, named], by_length(found, settings, corpus))
    return markdown(["corpus", "", "seeds", *map(str, LENGTHS)], rows)


def combined_settings(part: str, posterior: tuple[int, int], beta: float) -> str:
    """The settings with that part; those without any belong to other experiments."""
    if part == "plain" and beta == 1:
        return name(posterior, "rearranged", "no-noise")
    if part == "plain" and posterior == CORRELATED:
        return "CorrSH-published"
    return "{}-v{}-k{}-beta-{:g}".format(part, *posterior, beta)


def combined_table() -> str:
    """Other priors and losses under the published recipe, with both posteriors."""
    found = cells(read_all("combined-published", "objective", "tables"))
    rows = []
    for beta in (0.1, 1.0):
        for corpus in MAIN:
            for part, named in PARTS.items():
                for posterior, kind in POSTERIORS.items():
                    settings = combined_settings(part, posterior, beta)
                    values = by_length(found, settings, corpus)
                    rows += row([f"{beta:g}", corpus, named, kind], values)
    return markdown(["β", "corpus", "", "posterior", "seeds", *map(str, LENGTHS)], rows)


def combined_differences_table() -> str:
    """Correlated minus factorised, with each prior and loss."""
    results = read_all("combined-published", "objective", "tables")
    rows = []
    for beta in (0.1, 1.0):
        for part, named in PARTS.items():
            for bits in LENGTHS:
                found = [
                    over_both(
                        *(
                            runs(results, combined_settings(part, p, beta), corpus, bits)
                            for p in POSTERIORS
                        )
                    )
                    for corpus in MAIN
                ]
                if any(found):
                    rows.append(
                        [f"{beta:g}", named, str(bits), *map(shown, found), shown(mean_of(found))]
                    )
    return markdown(["β", "", "bits", *MAIN, "mean of the three"], rows)


def path_table() -> str:
    """From the authors' recipe to SemanticHasher's defaults, one change after another."""
    found = cells(read_all("path", "tables", "quality"))
    steps = {
        "CorrSH-published": "the authors' recipe",
        **{f"to-{change}": f"+ {STEPS[change]}" for change in CHANGES},
        "SemanticHasher": "SemanticHasher: other neighbours, a second training, a contrast on bits",
    }
    rows = []
    for settings, title in steps.items():
        values = [found.get((settings, corpus, bits)) for bits in (32, 128) for corpus in MAIN]
        if any(values):
            rows.append([title, *map(mean, values)])
    head = [f"{corpus}, {bits}" for bits in (32, 128) for corpus in MAIN]
    return markdown(["", *head], rows)


def shortcut_table() -> str:
    """How far the shortcut is from the Boltzmann machine for posteriors that were trained."""
    titles = {
        "SemanticHasher": "SemanticHasher, as for longer codes",
        "CorrSH-published": "CorrSH as published",
    }
    rows = []
    order = [*titles, name(CORRELATED, "printed", "no-noise")]
    found = read_all("shortcut-trained")
    for r in sorted(found, key=lambda r: (order.index(r["settings"]), r["corpus"])):
        low, high = r["quartiles"]
        rows.append(
            [
                titles.get(r["settings"], "CorrSH, β = 1, as printed"),
                r["corpus"],
                f"{short(r['tv'])} ({short(low)}–{short(high)})",
                f"{r['mean_abs_location']:.1f}",
                f"{r['mean_deviation']:.2f}",
            ]
        )
    head = ["total variation (quartiles)", "mean \\|μ\\|", "mean √Σᵢᵢ"]
    return markdown(["recipe", "corpus", *head], rows)
