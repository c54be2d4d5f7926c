"""Which models are trained: every experiment is a list of runs, a run is one line of its result file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from boltzhash.hashers import CorrSH
from boltzhash.hashers.shared.deep import PUBLISHED_RECIPE
from experiments.results.files import read_all
from experiments.runs.snuh_settings import SEARCHED

MAIN = ("ng20", "reuters", "tmc")
LENGTHS = (8, 16, 32, 64, 128)
DEEP = ("NASH", "VDSH", "GMSH", "BMSH", "Doc2hash", "RBSH", "StackedRBM")
SHALLOW = ("LSH", "SpectralHashing", "SelfTaughtHashing", "ITQ")


@dataclass(frozen=True)
class Settings:
    """A name for a class and the arguments that are not its defaults."""

    name: str
    method: str
    arguments: dict[str, Any] = field(default_factory=dict)
    as_published: bool = False


@dataclass(frozen=True)
class Run:
    """One model to train and measure."""

    experiment: str
    settings: Settings
    corpus: str
    bits: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.settings.name}-{self.corpus}-{self.bits}-{self.seed}"


def grid(
    experiment: str,
    settings: Iterable[Settings],
    corpora: Iterable[str],
    lengths: Iterable[int],
    seeds: Iterable[int],
) -> list[Run]:
    """Every combination; seeds go slowest, so that an interrupted sweep has whole tables first."""
    return [
        Run(experiment, s, corpus, bits, seed)
        for seed, s, corpus, bits in itertools.product(seeds, settings, corpora, lengths)
    ]


def unfinished(runs: Iterable[Run]) -> list[Run]:
    """Those without a result; a file that is not understood is refused, not written anew."""
    runs = list(runs)
    sweeps = {run.experiment for run in runs}
    done = {(sweep, result["run"]) for sweep in sweeps for result in read_all(sweep)}
    return [run for run in runs if (run.experiment, run.name) not in done]


# Recorded before independent bits became the default, which lose nothing ("rank").
CORRELATED_BITS: dict[str, Any] = {"rank": 10, "n_components": 10}


def correlated(name: str, **changes: Any) -> Settings:
    """The defaults with correlated bits, and with something changed."""
    return Settings(name, "SemanticHasher", {**CORRELATED_BITS, **changes})


DEFAULT = correlated("SemanticHasher")
PUBLISHED = Settings("CorrSH-published", "CorrSH", as_published=True)
# The defaults until neighbours were found at several scales and by codes. What is compared with these
# was run with them, and is to be run with them again.
EARLIER: dict[str, Any] = {
    **CORRELATED_BITS,
    "neighbours__count": 20,
    "neighbours__dimensions": (64,),
    "neighbours__second_training": False,
    "neighbours__nearness": 1.0,
    "neighbours__share": 0.2,
    "neighbours__contrast": 1.0,
    "neighbours__contrast_codes": "means",
}


def earlier(name: str, **changes: Any) -> Settings:
    """The earlier defaults with something changed."""
    return Settings(name, "SemanticHasher", {**EARLIER, **changes})


EARLIER_DEFAULT = earlier("SemanticHasher")
FACTORISED = earlier("factorised", rank=0, n_components=1)
ONE_NETWORK = earlier("one-network", network__networks=1)

# What each ingredient of the defaults gives: the defaults with it taken away or put differently.
WITHOUT = [
    earlier("no-neighbours", neighbours__count=0),
    earlier("no-contrast", neighbours__contrast=0.0),
    earlier("no-neighbour-words", neighbours__share=0.0),
    FACTORISED,
    earlier("tfidf-target", objective__target="tfidf"),
    earlier("words-target", objective__target="words"),
    earlier("raw-input", network__input_length=None),
    earlier("random-start", network__unigram_start=False),
    earlier("rising-kl", objective__kl_weight=(0.0, 0.1), objective__kl_ramp=1.0),
    earlier("published-noise", objective__decoder_noise=(1.0, 0.9)),
    earlier("published-rate", training__learning_rate=1e-3),
    earlier("published-decay", training__learning_rate_decay="steps"),
    earlier("published-epochs", training__epochs=100),
    earlier("published-batch", training__batch_size=100),
    earlier(
        "published-optimiser",
        training__learning_rate=1e-3,
        training__learning_rate_decay="steps",
        training__epochs=100,
        training__batch_size=100,
    ),
]
COMBINED = [
    earlier("SemanticHasher-mixture-prior", objective__prior_groups=20),
    earlier("SemanticHasher-ranking", objective__ranking=1.0),
]
ESTIMATORS = [
    earlier(f"SemanticHasher-{name}", objective__gradient=name)
    for name in ("gumbel-softmax", "arm", "rebar", "relax")
]

# One recipe for all: what CorrSH.as_published has in common with the published codes of the others.
# Labels are given in experiments of their own.
RECIPE: dict[str, Any] = {
    name: value for name, value in PUBLISHED_RECIPE.items() if "__label_" not in name
}
BITS_KL, LATENTS_KL = (0.0, 0.1), (0.0, 1.0)
AS_PUBLISHED = [
    PUBLISHED,
    *(
        Settings(f"{name}-published", name, {**RECIPE, "objective__kl_weight": kl, **more})
        for name, kl, more in (
            ("NASH", BITS_KL, {"objective__decoder_noise": (1.0, 1.0)}),
            ("BMSH", BITS_KL, {"objective__decoder_noise": (1.0, 1.0)}),
            ("Doc2hash", BITS_KL, {}),
            ("RBSH", BITS_KL, {}),
            ("VDSH", LATENTS_KL, {}),
            ("GMSH", LATENTS_KL, {}),
        )
    ),
]


def ablation(rank: int, components: int, *, fixed_kl: bool) -> Settings:
    """CorrSH as published with other v and k, whose KL weight follows them or stays at .1."""
    kind = "fixed" if fixed_kl else "authors"
    arguments: dict[str, Any] = {"rank": rank, "n_components": components}
    if fixed_kl:
        arguments |= {"objective__kl_weight": BITS_KL, "objective__kl_ramp": 1.0}
    return Settings(f"v{rank}-k{components}-{kind}", "CorrSH", arguments, as_published=True)


RANKS, COMPONENTS = (0, 1, 5, 10), (1, 3, 5, 10)
ABLATIONS = [
    ablation(rank, components, fixed_kl=fixed_kl)
    for fixed_kl in (False, True)
    for rank, components in (
        (0, 1),  # independent bits, whose divergence h_1 gives exactly in expectation
        *((v, 10) for v in RANKS),
        *((10, k) for k in COMPONENTS[:-1]),
    )
]


def noise(rank: int, components: int, first: float, last: float) -> Settings:
    """CorrSH as published, KL weight to .1, with another amount of noise before the decoder."""
    fixed = ablation(rank, components, fixed_kl=True)
    return Settings(
        f"v{rank}-k{components}-noise-{first:g}",
        "CorrSH",
        {**fixed.arguments, "objective__decoder_noise": (first, last)},
        as_published=True,
    )


# Independent bits, as published: all that is left between CorrSH and NASH is noise. NASH learns how much
# of it the decoder gets, CorrSH as published has a fixed amount, of which the paper says nothing.
WITH_NOISE = [noise(0, 1, 1.0, 0.9), noise(0, 1, 0.5, 0.5)]
WITHOUT_NOISE = [noise(0, 1, 0.0, 0.0), noise(10, 10, 0.0, 0.0)]


def objective(rank: int, components: int, bound: str, noise: float, **more: Any) -> Settings:
    """CorrSH as published with the weight that the paper's eq. 24 gives the divergence: 1, throughout.

    The paper mentions no other weight and no rise. ``noise`` is 1 for the authors' noise before the
    decoder (1 falling to .9) and 0 for none, as the paper has it.
    """
    noisy = "noise" if noise else "no-noise"
    arguments: dict[str, Any] = {
        "rank": rank,
        "n_components": components,
        "objective__bound": bound,
        "objective__kl_weight": (1.0, 1.0),
        "objective__decoder_noise": (noise, 0.9 * noise),
    }
    extra = "".join(f"-{value}" for value in more.values())
    name = f"v{rank}-k{components}-{bound}-{noisy}{extra}"
    return Settings(name, "CorrSH", {**arguments, **more}, as_published=True)


CORRELATED, INDEPENDENT = (10, 10), (0, 1)
OBJECTIVE = [
    objective(v, k, bound, noise)
    for bound in ("printed", "rearranged")
    for noise in (0.0, 1.0)
    for v, k in (CORRELATED, INDEPENDENT)
]
# Table 5 with the objective as it is printed. (10, 10) is in the experiment above; (0, 10) is the
# paper's own row of v = 0.
OBJECTIVE_RANKS = [
    objective(v, k, "printed", 0.0)
    for v, k in ((0, 10), *((v, k) for v in (1, 5, 10) for k in (1, 3, 5, 10)))
    if (v, k) != CORRELATED
]
# Eq. 19 to the letter: in the defaults, in the authors' recipe, and in all that the paper prints.
HALF: dict[str, Any] = {"objective__gradient": "straight-through-half"}
HALF_AS_PRINTED = [objective(v, k, "printed", 0.0, **HALF) for v, k in (CORRELATED, INDEPENDENT)]


def combined(part: str, rank: int, components: int, beta: float) -> Settings:
    """CorrSH as published with a part of another method; KL weight rising to .1, or 1 throughout."""
    parts: dict[str, dict[str, Any]] = {
        "plain": {},
        "mixture-prior": {"objective__prior_groups": 20},
        "ranking": {"objective__ranking": 1.0},
    }
    if beta == 1:
        base = objective(rank, components, "rearranged", 0.0)
    else:
        base = ablation(rank, components, fixed_kl=True)
    name = f"{part}-v{rank}-k{components}-beta-{beta:g}"
    return Settings(name, "CorrSH", {**base.arguments, **parts[part]}, as_published=True)


# The paper's closing claim, that its posterior goes with every prior and loss, under its own recipe. The
# correlated one without any is CorrSH-published; at a weight of 1 both are in "objective".
COMBINED_PUBLISHED = [
    combined("plain", *INDEPENDENT, 0.1),
    *(
        combined(part, v, k, 0.1)
        for part in ("mixture-prior", "ranking")
        for v, k in (CORRELATED, INDEPENDENT)
    ),
]
COMBINED_AT_ONE = [
    combined(part, v, k, 1.0)
    for part in ("mixture-prior", "ranking")
    for v, k in (CORRELATED, INDEPENDENT)
]

# From the published recipe to the earlier defaults, one change after another. The KL weight comes first,
# since with the published one the defaults' learning rate would collapse codes.
CHANGES: dict[str, dict[str, Any]] = {
    "kl": {"objective__kl_weight": (0.3, 0.1), "objective__kl_ramp": 0.25},
    "optimiser": {
        "training__epochs": 25,
        "training__batch_size": 200,
        "training__learning_rate": 5e-3,
        "training__learning_rate_decay": "cosine",
    },
    "start": {"network__unigram_start": True},
    "noise": {"objective__decoder_noise": (0.2, 0.2)},
    "target": {"objective__target": "root-tfidf"},
    "input": {"network__input_length": 16.0},
    "neighbour-words": {**EARLIER, "neighbours__contrast": 0.0},
    "contrast": {"neighbours__contrast": EARLIER["neighbours__contrast"]},
    "networks": {"network__networks": None},
}
AUTHORS: dict[str, Any] = {
    name: value
    for name, value in CorrSH.as_published().get_params().items()
    if name.startswith(("objective__", "network__", "training__")) and name != "training__device"
}


def path(name: str) -> Settings:
    """All changes up to this one; the paper's model until there are neighbours."""
    names = list(CHANGES)
    changed = {k: v for done in names[: names.index(name) + 1] for k, v in CHANGES[done].items()}
    if not any(k.startswith("neighbours__") for k in changed):
        return Settings(f"to-{name}", "CorrSH", changed, as_published=True)
    return correlated(f"to-{name}", **{**AUTHORS, "network__networks": 1, **changed})


PATH = [path(name) for name in CHANGES]
RBSH_OWN = Settings("RBSH-own", "RBSH", as_published=True)

# What came after the paper: with our recipe, and as published. SNUH's figures are from settings that its
# authors searched for each corpus and length, none of 8 bits.
FIELD = [
    *(Settings(name, name) for name in ("SNUH", "PairRec")),
    *(Settings(f"{name}-published", name, as_published=True) for name in ("SNUH", "PairRec")),
]
SPANNING: dict[str, Any] = {
    "graph__tree": "spanning"
}  # as the paper writes, where its code has stars
# Also first weights as those of our other methods.
USUAL_START: dict[str, Any] = {**SPANNING, "initial_range": None}
FIELD.append(Settings("SNUH-published-usual-start", "SNUH", USUAL_START, as_published=True))
SNUH_SEARCHED = [
    Run(
        "field", Settings(name, "SNUH", {**searched, **more}, as_published=True), corpus, bits, seed
    )
    for name, more in (
        ("SNUH-searched", {}),
        ("SNUH-searched-spanning", SPANNING),
        ("SNUH-searched-usual-start", USUAL_START),
    )
    for seed in range(3)
    for (corpus, bits), searched in SEARCHED.items()
]
FIELD_LATER = [
    Settings(f"{name}-published", name, as_published=True) for name in ("WISH", "AMMI", "MISH")
]

EXPERIMENTS: dict[str, list[Run]] = {
    # The whole path in a minute or two: a deep method, a shallow one, one length, few epochs.
    "smoke": grid(
        "smoke",
        [
            Settings(
                "SemanticHasher",
                "SemanticHasher",
                {"training__epochs": 2, "neighbours__count": 5, "n_components": 2},
            ),
            Settings("NASH", "NASH", {"training__epochs": 2}),
            Settings("ITQ", "ITQ"),
        ],
        ["reuters"],
        [16],
        [0],
    ),
    # What a user gets from the defaults, and whether a seed ever collapses.
    "quality": grid("quality", [DEFAULT], MAIN, LENGTHS, range(5)),
    "quality-unseen": grid(
        "quality-unseen",
        [DEFAULT, Settings("ITQ", "ITQ")],
        ["debian", "stackoverflow"],
        LENGTHS,
        range(5),
    ),
    # Does the measure that needs no labels rank codes as labels do?
    "label-free": grid(
        "label-free",
        [
            correlated("no-neighbours", neighbours__count=0),
            correlated("one-training", neighbours__second_training=False),
            correlated(
                "one-scale",
                neighbours__second_training=False,
                neighbours__dimensions=(64,),
                neighbours__count=20,
            ),
            *(Settings(name, name) for name in ("NASH", "VDSH", "ITQ", "LSH")),
        ],
        [*MAIN, "debian", "stackoverflow", "headlines"],
        [8, 32, 128],
        [0],
    ),
    # Does the product's own model need the correlated posterior?
    "rank": grid(
        "rank",
        [
            correlated("rank-10"),
            Settings("rank-0", "SemanticHasher", {"rank": 0, "n_components": 1}),
        ],
        [*MAIN, "debian", "stackoverflow"],
        [16, 64],
        range(3),
    ),
    "baselines": grid("baselines", [Settings("ITQ", "ITQ")], MAIN, LENGTHS, range(5)),
    "ingredients": grid("ingredients", [EARLIER_DEFAULT], MAIN, [8, 32, 128], range(5))
    + grid("ingredients", WITHOUT, MAIN, [32], range(5))
    + grid("ingredients", [ONE_NETWORK], MAIN, [128], range(5))
    + grid("ingredients", [FACTORISED], MAIN, [8, 128], range(5)),
    # The paper's Tables 1 to 3: every method at every length, with its own defaults and as published.
    "tables": grid(
        "tables",
        [
            *(
                Settings(name, name) for name in (*DEEP, *SHALLOW) if name != "ITQ"
            ),  # in "baselines"
            *AS_PUBLISHED,
            RBSH_OWN,
        ],
        MAIN,
        LENGTHS,
        range(3),
    ),
    # Table 5: rank and components, at 64 bits.
    "ablations": grid("ablations", ABLATIONS, MAIN, [64], range(5)),
    # Where the margin over NASH comes from.
    "noise": grid("noise", WITH_NOISE, MAIN, [8, 128], range(3))
    + grid("noise", WITHOUT_NOISE, MAIN, LENGTHS, range(5))
    # The one length where seeds 0 to 4 differ by posterior: is it there with other seeds?
    + grid("noise", WITHOUT_NOISE, MAIN, [32], range(5, 10)),
    # The claim that the posterior goes with every prior and loss, at every length.
    "combined": grid("combined", COMBINED, MAIN, LENGTHS, range(3)),
    # The appendix: RBSH's preprocessing.
    "appendix": grid(
        "appendix",
        [
            EARLIER_DEFAULT,
            PUBLISHED,
            Settings(
                "CorrSH-published-no-noise",
                "CorrSH",
                {"objective__decoder_noise": (0.0, 0.0)},
                as_published=True,
            ),
            Settings("RBSH", "RBSH"),
            Settings("RBSH-published", "RBSH", AS_PUBLISHED[4].arguments),
            RBSH_OWN,
        ],
        ["ng20-rbsh", "tmc-rbsh"],
        LENGTHS,
        range(3),
    ),
    # The objective as the paper prints it, which the authors' code does not train: β = 1, with the
    # energies and without, with noise and without, correlated and independent bits.
    "objective": grid("objective", OBJECTIVE, MAIN, LENGTHS, range(5)),
    "objective-rank": grid("objective-rank", OBJECTIVE_RANKS, MAIN, [64], range(3)),
    "half-gradient": grid("half-gradient", HALF_AS_PRINTED, MAIN, LENGTHS, range(3))
    + grid(
        "half-gradient",
        [
            correlated("SemanticHasher-half", **HALF),
            Settings("CorrSH-published-half", "CorrSH", HALF, as_published=True),
        ],
        MAIN,
        [32],
        range(3),
    ),
    "combined-published": grid("combined-published", COMBINED_PUBLISHED, MAIN, LENGTHS, range(3))
    + grid("combined-published", COMBINED_AT_ONE, MAIN, [32, 128], range(3)),
    "path": grid("path", PATH, MAIN, [32, 128], range(3)),
    "field": grid("field", FIELD, MAIN, LENGTHS, range(3)) + SNUH_SEARCHED,
    # Methods that came after CorrSH, as published.
    "field-later": grid("field-later", FIELD_LATER, MAIN, LENGTHS, range(3)),
    # SemanticHasher with other ways to get a gradient through a bit.
    "estimators": grid("estimators", ESTIMATORS, MAIN, [32], range(3)),
}
