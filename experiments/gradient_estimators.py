"""Bias and variance of the gradient estimators on a decoder like the one that is trained.

    python experiments/gradient_estimators.py          # measure and draw, a minute on one core
    python experiments/gradient_estimators.py --draw   # draw what was measured

f(s) = −log p(x | s) for a few documents: a linear decoder with random weights, eight bits, and words
drawn from it at a code of each document. The posterior has |logit| the same on all bits, from nearly
undecided to sure; one bit in four leans away from the code the words were drawn from. Its exact
gradient is known from all 256 codes. All documents together are one long gradient g:

- *bias*, the norm of the mean error over the norm of g. It is never 0 in a finite number of draws:
  ``noise`` is the value that an unbiased estimator would have.
- *variance* of one draw, summed over the entries, over the squared norm of g.

RELAX is trained on these documents before it is measured. REINFORCE is REBAR without its control
variate.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import torch
from matplotlib import pyplot as plt
from torch import Tensor, nn

from boltzhash.distributions import Bernoulli, enumerate_codes
from boltzhash.gradients import REBAR, GradientEstimator, GumbelSoftmax, make_estimator

Record = dict[str, Any]

FIGURES = Path(__file__).parents[1] / "docs" / "models" / "figures"
MEASURED = FIGURES / "gradient_estimators.json"
DRAWING = FIGURES / "gradient_estimators.svg"

N_BITS, N_WORDS, DOCUMENTS, LENGTH = 8, 50, 8, 40
BATCHES, DRAWS_PER_BATCH = 30, 1000
TRAINING_STEPS, TRAINING_DRAWS = 300, 32
CONFIDENCES = np.geomspace(0.1, 5, 7)
TEMPERATURE = 0.5  # of both Gumbel-softmaxes; REBAR and RELAX have it as their default


class Problem(NamedTuple):
    """Some documents, the decoder, and which way every bit leans."""

    weights: Tensor
    counts: Tensor  # (documents, words)
    leanings: Tensor  # (documents, bits), +1 or −1

    @classmethod
    def draw(cls, seed: int) -> Problem:
        generator = torch.Generator().manual_seed(seed)
        weights = torch.randn(N_BITS, N_WORDS, generator=generator, dtype=torch.float64)
        shape = (DOCUMENTS, N_BITS)
        codes = torch.randint(2, shape, generator=generator).double()
        words = torch.multinomial(
            (codes @ weights).softmax(-1), LENGTH, replacement=True, generator=generator
        )
        counts = nn.functional.one_hot(words, N_WORDS).sum(1).double()
        flipped = torch.rand(shape, generator=generator) < 0.25
        return cls(weights, counts, torch.where(flipped, 1 - 2 * codes, 2 * codes - 1))

    def loss(self, s: Tensor) -> Tensor:
        """−log p(x | s) for codes (draws, documents, bits)."""
        return -((s @ self.weights).log_softmax(-1) * self.counts).sum(-1)

    def exact_gradient(self, confidence: float) -> Tensor:
        logits = (confidence * self.leanings).requires_grad_()
        codes = enumerate_codes(N_BITS).double().unsqueeze(1)
        mean = (Bernoulli(logits).log_prob(codes).exp() * self.loss(codes)).sum()
        (gradient,) = torch.autograd.grad(mean, logits)
        return gradient


def estimators() -> dict[str, GradientEstimator]:
    generator = torch.Generator().manual_seed(1)
    fixed = (TEMPERATURE, TEMPERATURE)
    made: dict[str, GradientEstimator] = {
        "straight-through": make_estimator("straight-through", N_BITS, generator),
        "gumbel-softmax, hard": GumbelSoftmax(fixed),
        "gumbel-softmax, soft": GumbelSoftmax(fixed, hard=False),
        "reinforce": REBAR(eta=0.0),
    }
    for name in ("arm", "rebar", "relax"):
        made[name] = make_estimator(name, N_BITS, generator)
    return made


def train(estimator: nn.Module, problem: Problem, logits: Tensor) -> None:
    """Fit the control variate while nothing else moves."""
    generator = torch.Generator().manual_seed(2)
    optimiser = torch.optim.Adam(estimator.parameters(), lr=0.01)
    for _ in range(TRAINING_STEPS):
        rows = logits.expand(TRAINING_DRAWS, -1, -1)
        value, _ = estimator(rows, problem.loss, generator, torch.tensor(0.0))
        optimiser.zero_grad()
        value.mean().backward()
        optimiser.step()


def measure_one(name: str, estimator: GradientEstimator, problem: Problem, x: float) -> Record:
    logits = x * problem.leanings
    if isinstance(estimator, nn.Module):
        estimator.double()
        train(estimator, problem, logits)
    exact = problem.exact_gradient(x)
    generator = torch.Generator().manual_seed(3)
    errors, squares = [], []  # of each batch: the mean error, and its mean square
    for _ in range(BATCHES):
        rows = logits.repeat(DRAWS_PER_BATCH, 1, 1).requires_grad_()
        value, _ = estimator(rows, problem.loss, generator, torch.tensor(0.0))
        (gradients,) = torch.autograd.grad(value.sum(), rows)
        errors.append((gradients - exact).mean(0))
        squares.append((gradients - exact).square().mean(0))
    n = BATCHES * DRAWS_PER_BATCH
    batches = torch.stack(errors)
    mean = batches.mean(0)
    variance = float((torch.stack(squares).mean(0) - mean.square()).sum()) * n / (n - 1)
    norm = float(exact.norm())
    left_out = (BATCHES * mean - batches) / (BATCHES - 1)  # the jackknife
    norms = left_out.flatten(1).norm(dim=1)
    spread = float((norms - norms.mean()).square().sum()) * (BATCHES - 1) / BATCHES
    return {
        "estimator": name,
        "x": float(x),
        "exact_norm": norm,
        "bias": float(mean.norm()) / norm,
        "standard_error": math.sqrt(spread) / norm,
        "noise": math.sqrt(variance / n) / norm,
        "variance": variance / norm**2,
    }


def rounded(value: Any) -> Any:
    """Six digits, so that the file does not change with the last bit of a sum."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def measure() -> None:
    problem = Problem.draw(seed=0)
    points = [
        measure_one(name, estimator, problem, float(x))
        for x in CONFIDENCES
        for name, estimator in estimators().items()
    ]
    result = {
        "measure": "bias and variance relative to the exact gradient of E[-log p(x | s)]",
        "bits": N_BITS,
        "words": N_WORDS,
        "documents": DOCUMENTS,
        "words_per_document": LENGTH,
        "draws": BATCHES * DRAWS_PER_BATCH,
        "temperature": TEMPERATURE,
        "relax_training_steps": TRAINING_STEPS,
        "points": points,
    }
    FIGURES.mkdir(parents=True, exist_ok=True)
    MEASURED.write_text(
        json.dumps(rounded(result), indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )


# --- drawing: reads the file and nothing else -----------------------------------------------------

# Okabe and Ito's palette, which the colour-blind can tell apart.
LINES = [
    ("reinforce", "REINFORCE", {"color": "#666666", "marker": "x"}),
    ("arm", "ARM", {"color": "#0072b2", "marker": "s"}),
    ("rebar", "REBAR", {"color": "#45a1d6", "marker": "D"}),
    ("relax", "RELAX, trained", {"color": "#009e73", "marker": "o"}),
    ("gumbel-softmax, hard", "Gumbel-softmax, hard", {"color": "#aa4499", "marker": "^"}),
    ("gumbel-softmax, soft", "Gumbel-softmax, soft", {"color": "#e69f00", "marker": "v"}),
    ("straight-through", "straight-through", {"color": "#d55e00", "marker": "P"}),
]
UNBIASED = ("reinforce", "arm", "rebar", "relax")

STYLE: Any = {  # matplotlib types its keys one by one, differently in every version
    "svg.hashsalt": "gradient_estimators",
    "svg.fonttype": "none",  # letters as text: a third of the size
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
}


def draw(measured: Path, drawing: Path) -> None:
    result = json.loads(measured.read_text(encoding="utf-8"))
    with mpl.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10.2, 4.4), layout="constrained")
        for name, label, style in LINES:
            points = [p for p in result["points"] if p["estimator"] == name]
            x = [p["x"] for p in points]
            unbiased = {"linestyle": ":", "linewidth": 1.0} if name in UNBIASED else {}
            left.errorbar(
                x,
                [p["bias"] for p in points],
                [p["standard_error"] for p in points],
                elinewidth=1.0,
                **style,
                **unbiased,
            )
            right.plot(x, [p["variance"] for p in points], label=label, **style)
        left.set(
            title="Bias (dotted: unbiased, what is seen is noise)", ylabel="‖mean error‖ / ‖g‖"
        )
        right.set(title="Variance of one draw", ylabel="variance / ‖g‖²")
        for axes in (left, right):
            axes.set(xscale="log", yscale="log", xlabel="|logit| of every bit")
            ticks = [0.1, 0.2, 0.5, 1, 2, 5]
            axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
            axes.minorticks_off()
        left.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
        right.set_yticks(
            [0.1, 1, 10, 100, 1000, 10_000], ["0.1", "1", "10", "100", "1,000", "10,000"]
        )
        left.set_ylim(top=1.1)
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
        # No date, so that the same measurements make the same file.
        metadata = {"Date": None} if drawing.suffix == ".svg" else None
        figure.savefig(drawing, metadata=metadata, dpi=150)
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--draw", action="store_true", help="draw the measurements that are there")
    if not parser.parse_args().draw:
        measure()
    draw(MEASURED, DRAWING)


if __name__ == "__main__":
    mpl.use("svg")
    main()
