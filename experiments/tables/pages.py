"""Tables in the docs from result files, and nothing else: ``make tables``.

A page says where a table goes: between ``<!-- table: NAME -->`` and ``<!-- end -->``. Whatever stands
there is replaced, so that the same results always give the same bytes.

    python -m experiments.tables            # write
    python -m experiments.tables --check    # say which pages are not what the results give
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from experiments.results.files import Result, read_all
from experiments.runs.sweeps import DEEP, EXPERIMENTS, LENGTHS, MAIN, SHALLOW, WITHOUT
from experiments.tables import (
    claims,
    drift,
    field,
    gradients,
    label_free,
    labels,
    margins,
    objective,
    paper_tables,
    posterior,
    retrieval,
    schedule,
)
from experiments.tables.cells import (
    PROTOCOLS,
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

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

INGREDIENTS = {
    "no-neighbours": "without neighbours (`neighbours__count=0`)",
    "no-contrast": "neighbours' words, but no contrast (`neighbours__contrast=0`)",
    "no-neighbour-words": "contrast, but not the neighbours' words (`neighbours__share=0`)",
    "one-network": "one network for the whole code (`network__networks=1`)",
    "factorised": "a factorised posterior (`rank=0, n_components=1`)",
    "tfidf-target": 'tf-idf itself as the target (`objective__target="tfidf"`)',
    "words-target": 'each word once as the target (`objective__target="words"`)',
    "raw-input": "tf-idf as it is (`network__input_length=None`)",
    "random-start": "decoder bias at random (`network__unigram_start=False`)",
    "rising-kl": "KL weight rising from 0 (`objective__kl_weight=(0, .1), objective__kl_ramp=1`)",
    "published-noise": "decoder noise as published (`objective__decoder_noise=(1, .9)`)",
    "published-rate": "Adam at the published rate (`training__learning_rate=1e-3`)",
    "published-decay": 'the published decay (`training__learning_rate_decay="steps"`)',
    "published-epochs": "as many epochs as published (`training__epochs=100`)",
    "published-batch": "batches as published (`training__batch_size=100`)",
    "published-optimiser": "these four together",
}
# Parts that SemanticHasher is combined with: prior and loss of other methods, other gradients.
PARTS = ("mixture-prior", "ranking", "gumbel-softmax", "arm", "rebar", "relax")
METHODS = (*DEEP, *SHALLOW)
# What the page of a method has beside it.
BESIDE = {
    "NASH": ("SemanticHasher",),
    "VDSH": ("SemanticHasher",),
    "GMSH": ("VDSH", "SemanticHasher"),
    "BMSH": ("NASH", "SemanticHasher", "SemanticHasher-mixture-prior"),
    "Doc2hash": ("NASH", "SemanticHasher", "SemanticHasher-gumbel-softmax"),
    "RBSH": ("NASH", "SemanticHasher", "SemanticHasher-ranking"),
}
WITH_CODES = ("quality", "quality-unseen", "baselines", "embeddings", "tables")
VECTOR = 384  # numbers in a vector of all-MiniLM-L6-v2, and bits in their signs
EMBEDDINGS = {
    "features": "`SemanticHasher` from vectors",
    "words": "`SemanticHasher` from words",
    "itq": "PCA + ITQ of the vectors",
    "sign": "sign of the centred vector",
    "cosine": "the vectors: cosine of floats",
}


OTHERS = ("debian", "stackoverflow")

CONFIDENCE = {
    "hamming": "Hamming distance",
    "weighted": "confidence",
    "reordered": "of the nearest 500",
}


def confidence() -> str:
    """The top 100 by Hamming distance and by bits weighted by the query's margins."""
    results = read_all("confidence")
    rows = [
        [corpus, shown, *map(mean, by_length(cells(results, way), "SemanticHasher", corpus))]
        for corpus in MAIN
        for way, shown in CONFIDENCE.items()
    ]
    return markdown(["corpus", "order", *map(str, LENGTHS)], rows)


def quality() -> str:
    """The defaults at every length."""
    found = cells(read_all("quality", "quality-unseen"))
    corpora = [c for c in (*MAIN, *OTHERS) if any(key[1] == c for key in found)]
    rows = [[c, *map(spread, by_length(found, "SemanticHasher", c))] for c in corpora]
    return markdown(["corpus", *map(str, LENGTHS)], rows)


def quality_against() -> str:
    """The defaults beside other codes, and beside tf-idf cosine without any."""
    found = cells(read_all(*WITH_CODES))
    plain = {result["corpus"]: [result["test_precision"]] for result in read_all("tfidf-cosine")}
    rows = []
    for corpus in (*MAIN, *OTHERS):
        for settings, name in (
            ("SemanticHasher", "**SemanticHasher**"),
            ("CorrSH-published", "CorrSH as published"),
            ("ITQ", "LSA + ITQ"),
            ("sign", "binary MiniLM"),
        ):
            values = [found.get((settings, corpus, bits)) for bits in (*LENGTHS, VECTOR)]
            if any(values):
                rows.append([corpus, name, *map(mean, values), ""])
        if corpus in plain:
            rows.append([corpus, "tf-idf cosine", *[""] * len(values), mean(plain[corpus])])
    return markdown(["corpus", "", *map(str, (*LENGTHS, VECTOR)), "no code"], rows)


def embeddings() -> str:
    """Codes from sentence embeddings, and the vectors themselves."""
    found = cells(read_all("embeddings"))
    rows = []
    for corpus in (*MAIN, "debian"):
        for settings, name in EMBEDDINGS.items():
            values = [found.get((settings, corpus, bits)) for bits in (*LENGTHS, VECTOR)]
            if any(values):
                rows.append([corpus, name, seeds(values), *map(mean, values)])
    return markdown(["corpus", "codes", "seeds", *map(str, (*LENGTHS, VECTOR))], rows)


def ingredients() -> str:
    """What precision becomes when one ingredient of the defaults is taken away or put differently."""
    found = cells(read_all("ingredients"))
    rows = []
    for bits in (32, 8, 128):
        defaults = [found.get(("SemanticHasher", c, bits)) for c in MAIN]
        if any(defaults):
            rows.append([str(bits), "**the defaults**", *(spread(v) for v in defaults)])
        for name in INGREDIENTS:
            values = [found.get((name, c, bits)) for c in MAIN]
            if any(values):
                shown = (_of_seeds(v, d) for v, d in zip(values, defaults, strict=True))
                rows.append([str(bits), INGREDIENTS[name], *shown])
    return markdown(["bits", "", *MAIN], rows)


def _of_seeds(values: list[float] | None, defaults: list[float] | None) -> str:
    """The spread, and how many seeds are in it where some are missing: a collapsed fit has no result."""
    missing = len(defaults or ()) - len(values or ())
    return f"{spread(values)}, {len(values)} seeds" if values and missing > 0 else spread(values)


def methods() -> str:
    """Every method at 32 bits with its own defaults."""
    names = ["SemanticHasher", "CorrSH-published", *field.METHODS, *DEEP, *SHALLOW]
    return _at_32_bits("method", names, read_all("tables", "baselines", "quality", "field"))


def variants() -> str:
    """SemanticHasher, with its earlier defaults, and with the parts of other methods, at 32 bits."""
    names = ["SemanticHasher", *(f"SemanticHasher-{part}" for part in PARTS)]
    results = read_all("combined", "estimators", "ingredients")
    return _at_32_bits("settings", names, results)


def _at_32_bits(head: str, names: list[str], results: list[Result]) -> str:
    found = cells(results)
    rows = []
    for name in names:
        rows += row([name], [found.get((name, corpus, 32)) for corpus in MAIN])
    return markdown([head, "seeds", *MAIN], rows)


def protocol_gap() -> str:
    """What the defaults lose by stopping without labels: label-free minus validation, run by run."""
    gaps: dict[tuple[str, int], list[float]] = {}
    for result in read_all("quality"):
        precision = result["precision"]
        if "validation" in precision:
            gap = precision["label-free"] - precision["validation"]
            gaps.setdefault((result["corpus"], result["bits"]), []).append(gap)
    rows = []
    for corpus in MAIN:
        values = [gaps.get((corpus, bits)) for bits in LENGTHS]
        if any(values):
            rows.append([corpus, seeds(values), *map(_signed_spread, values)])
    return markdown(["corpus", "seeds", *map(str, LENGTHS)], rows)


def lowest_seeds() -> str:
    """The worst of all seeds of the defaults, with the mean: whether a seed ever collapses."""
    found = cells(read_all("quality"))
    rows = []
    for corpus in MAIN:
        values = by_length(found, "SemanticHasher", corpus)
        shown = [f"{short(min(v))} ({short(statistics.fmean(v))})" if v else "" for v in values]
        if any(values):
            rows.append([corpus, seeds(values), *shown])
    return markdown(["corpus", "seeds", *map(str, LENGTHS)], rows)


def _signed_spread(values: list[float] | None) -> str:
    if not values:
        return ""
    return f"{signed(statistics.fmean(values))} ({signed(min(values))} to {signed(max(values))})"


def experiments() -> str:
    """How many runs of each experiment are there, where they ran and how long they took."""
    rows = []
    for name, runs in EXPERIMENTS.items():
        results = read_all(name)
        if name != "smoke" and results:
            hardware = Counter(r["hardware"].split(",")[0] for r in results)
            where = ", ".join(f"{n} {machine}" for machine, n in sorted(hardware.items()))
            minutes = sum(r["seconds"] for r in results) / 60
            rows.append([f"`{name}`", f"{len(results)} of {len(runs)}", where, f"{minutes:.0f}"])
    return markdown(["experiment", "runs", "where", "minutes, all runs"], rows)


def smoke() -> str:
    """What the small trial gave, under the three protocols."""
    results = read_all("smoke")
    rows = [
        [r["settings"], r["corpus"], str(r["bits"]), *(short(r["precision"][k]) for k in PROTOCOLS)]
        for r in results
    ]
    return markdown(["settings", "corpus", "bits", *PROTOCOLS], rows)


TABLES: dict[str, Callable[[], str]] = {
    "experiments": experiments,
    "smoke": smoke,
    "quality": quality,
    "quality-against": quality_against,
    "embeddings": embeddings,
    "ingredients": ingredients,
    "methods": methods,
    "variants": variants,
    "protocol-gap": protocol_gap,
    "seeds": lowest_seeds,
    **{f"paper-{corpus}": partial(paper_tables.paper_table, corpus) for corpus in MAIN},
    **{f"protocols-{corpus}": partial(paper_tables.protocols_table, corpus) for corpus in MAIN},
    **{f"method-{m}": partial(paper_tables.method_table, m, BESIDE.get(m, ())) for m in METHODS},
    **{f"field-{corpus}": partial(field.field_table, corpus) for corpus in MAIN},
    **{f"method-{m}": partial(field.method_table, m) for m in field.METHODS},
    "agreement": paper_tables.agreement_table,
    "best": claims.best_table,
    "best-published": claims.best_published_table,
    "margin": margins.over_nash_table,
    "noise": margins.noise_table,
    "longer": claims.longer_table,
    "order": claims.order_table,
    "couplings": claims.couplings_table,
    "maps": claims.maps_table,
    "disagreement": claims.disagreement_table,
    "ablation-rank": partial(paper_tables.ablation_table, "rank"),
    "ablation-components": partial(paper_tables.ablation_table, "components"),
    "combined": paper_tables.combined_table,
    "objective": objective.objective_table,
    "objective-differences": objective.differences_table,
    "objective-pooled": objective.pooled_table,
    "objective-summary": objective.differences_summary,
    "objective-bounds": objective.bounds_table,
    "objective-rank": objective.ranks_table,
    "objective-confidence": objective.confidence_table,
    "half-gradient": objective.half_table,
    "half-summary": objective.half_summary,
    "as-printed": objective.as_printed_table,
    "combined-published": objective.combined_table,
    "combined-differences": objective.combined_differences_table,
    "path": objective.path_table,
    "shortcut-trained": objective.shortcut_table,
    "appendix": paper_tables.appendix_table,
    "appendix-margin": margins.over_rbsh_table,
    "seconds": paper_tables.seconds_table,
    "seconds-summary": paper_tables.seconds_summary,
    "gradient-bias": gradients.bias_table,
    "gradient-variance": gradients.variance_table,
    "posterior": posterior.posterior_table,
    "rank": posterior.rank_table,
    "components": posterior.components_table,
    "posterior-summary": posterior.posterior_summary,
    "posterior-pairing": posterior.pairing,
    "confidence": confidence,
    "label-free": label_free.ranks_table,
    "label-free-picks": label_free.picks_table,
    "labels": labels.labels_table,
    "drift": drift.drift_table,
    "schedule-steps": schedule.steps_table,
    "schedule-documents": schedule.documents_table,
    "retrieval": retrieval.figures_table,
    "retrieval-ratios": retrieval.ratios_table,
    "retrieval-differences": retrieval.differences_table,
}


def filled(page: str) -> str:
    """The page with every table made anew."""

    def fill(match: re.Match[str]) -> str:
        if match[2] not in TABLES:
            raise SystemExit(f"no table is called {match[2]!r}: one of {', '.join(TABLES)}")
        return f"{match[1]}{TABLES[match[2]]()}{match[3]}"

    return BLOCK.sub(fill, page)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail where they differ"
    )
    parser.add_argument("--print", choices=TABLES, help="only print this table")
    options = parser.parse_args()
    if options.print:
        print(TABLES[options.print](), end="")
        return
    assert {s.name for s in WITHOUT} <= set(INGREDIENTS)
    stale = []
    for path in PAGES:
        before = path.read_text()
        after = filled(before)
        if after != before:
            stale.append(str(path.relative_to(ROOT)))
            if not options.check:
                path.write_text(after)
    if options.check and stale:
        raise SystemExit(f"not what the results give, run `make tables`: {', '.join(stale)}")
    print(f"{len(PAGES)} pages, {f'{len(stale)} changed' if stale else 'as they were'}")
